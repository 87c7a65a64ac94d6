"""VM and host identifiers and the order of a set, against the JDK's own classes."""

from __future__ import annotations

import random
import re

import pytest

from tests.oracle.jdk_tools import ask
from tests.support import JDK
from vmscope.cli.vmid import FileURIError, HostIdentifier, VMIdentifier
from vmscope.errors import VMIdentifierError
from vmscope.reader.discovery import Candidate, java_order

PIECES = [
    *["local", "file", "rmi", "foo", "localhost", "host", "my_host", "server", "a.b", "a.1", "10.0.0.1", "[::1]", "é"],
    *["1234", "0", "-1", "+5", "1099", "99999999999", "local://5", "file:///tmp/x", "1234@localhost:1099/server"],
    *["@", ":", "/", "//", "///", "?", "#", "mode=r", "mode=rw", "?mode=r+x", "%31", "%zz", "::", "rmi:", "a-", "-a"],
    *[*" [].-_~=&,;$!*'(\\^|\"<{"],
]


def our_vm(text: str) -> str:
    try:
        vm = VMIdentifier(text)
    except (VMIdentifierError, FileURIError):
        return "!"
    if vm.scheme == "file":
        assert vm.path is not None
        return "file " + re.sub("(?<=.)/$", "", re.sub("/+", "/", vm.path))  # as java.io.File shows it
    return f"{vm.scheme} {vm.lvmid} {vm.host or ''} {vm.mode}"


def our_host(text: str) -> str:
    try:
        host = HostIdentifier(text)
    except VMIdentifierError:
        return "!"
    return f"{host.scheme} {host.host}"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    dice = random.Random(5)
    return ["1234", "", "x", *("".join(dice.choices(PIECES, k=dice.randint(1, 6))) for _ in range(20_000))]


def test_vm_identifiers(jdk17: JDK, texts: list[str]) -> None:
    answers = ["!" if answer.startswith("!") else answer for answer in ask(jdk17, (("vm", text) for text in texts))]
    assert len(set(answers)) > 100
    wrong = [(t, java, ours) for t, java in zip(texts, answers, strict=True) if (ours := our_vm(t)) != java]
    assert not wrong, f"{len(wrong)} of {len(texts)}: {wrong[:10]}"


def test_host_identifiers(jdk17: JDK, texts: list[str]) -> None:
    answers = ["!" if answer.startswith("!") else answer for answer in ask(jdk17, (("host", text) for text in texts))]
    wrong = [(t, java, ours) for t, java in zip(texts, answers, strict=True) if (ours := our_host(t)) != java]
    assert not wrong, f"{len(wrong)} of {len(texts)}: {wrong[:10]}"


def test_order_of_a_set(jdk17: JDK) -> None:
    dice = random.Random(7)
    sets = [[dice.randint(1, 4_194_304) for _ in range(size)] for size in (1, 2, 11, 12, 13, 24, 25, 49, 97, 400)]
    sets += [[16, 1, 48, 33, 17], [65536, 65537, 1, 131072]]
    for numbers, answer in zip(sets, ask(jdk17, (("order", " ".join(map(str, s))) for s in sets)), strict=True):
        found = {pid: Candidate(pid, pid, "", "", False) for pid in numbers}
        assert [candidate.pid for candidate in java_order(found)] == [int(pid) for pid in answer.split()]


def test_others_in_the_set(jdk17: JDK) -> None:
    """jps counts itself: a thirteenth VM makes the set use one bit more of the pids of the other twelve."""
    pids = [16, 32, 1, 17, 48, 3, 19, 35, 51, 67, 83, 99]
    (answer,) = ask(jdk17, [("order", " ".join(map(str, [*pids, 5])))])
    found = {pid: Candidate(pid, pid, "", "", False) for pid in pids}
    ordered = [candidate.pid for candidate in java_order(found, more=1)]
    assert ordered == [int(pid) for pid in answer.split() if pid != "5"]
    assert ordered != [candidate.pid for candidate in java_order(found)]
