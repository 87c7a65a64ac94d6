"""The command lines of jstat and jps, thousands of them, against the JDK's own parsers."""

from __future__ import annotations

import random

import pytest

from tests.oracle.jdk_tools import ask
from tests.support import JDK
from vmscope.cli import _jstat_request, jps, jstat
from vmscope.cli.vmid import HostIdentifier
from vmscope.errors import CommandLineError, VMIdentifierError

# User views play no part here: the home directory has none.
HOME = "/nonexistent"

JSTAT_FIRST = [
    "-gc",
    "-gcutil",
    "-class",
    "-list",
    "-snap",
    "-name",
    "-t",
    "-foo",
    "-h",
    "-h3",
    "-timestamp",
    "-",
    "17",
]
JSTAT_FIRST += ["--help", "-help", "-?", "-options", "-name=java.x", "-5", "-c", "-gc@1", "file:/x", "-d"]
JSTAT_MORE = [
    "-t",
    "-h2",
    "-h",
    "-hx",
    "-h-1",
    "-v",
    "-c",
    "-constants",
    "-s",
    "-strings",
    "-a",
    "-d",
    "-snap",
    "-list",
]
JSTAT_MORE += ["-name", "-name=java.y", "java.*,sun.*", "(", "-x", "-gc", "-7", "-7@host", "-1", "--", "-name=z"]
JSTAT_LAST = [
    "17",
    "17@host",
    "host",
    "//17",
    "file:/x",
    "1",
    "0",
    "10ms",
    "2s",
    "1sms",
    "s",
    "ms",
    "5x",
    "3ss",
    "-1",
    "-3",
]
JSTAT_LAST += ["+4", "99999999999", "3000000s", "2147483647", "0s", "-2s", "1 s", "٣", ""]

JPS = [
    "-q",
    "-m",
    "-l",
    "-v",
    "-V",
    "-mlvV",
    "-lm",
    "-ll",
    "-",
    "--",
    "-qm",
    "-x",
    "-lx",
    "-?",
    "-h",
    "--help",
    "-help",
]
JPS += ["localhost", "host", "host:1", "//host", "rmi://host:1099/x", "a b", "file:///x", "1234", "//"]


def our_jstat(line: list[str]) -> str:
    if not line or line[0] in jstat.HELP_OPTIONS:
        return "help"
    if line[0] == "-options":
        return "options"
    try:
        request = _jstat_request.parse(line)
        if request.option is not None:
            jstat.find_view(request, HOME)
        jstat.locate(request.vmid)
    except (CommandLineError, VMIdentifierError) as error:
        return f"!{error}"
    names = r"\w*" if request.names is None else request.names.replace(",", "|")
    flags = ("D" if request.descending else "A") + "t" * request.timestamp + "v" * request.verbose
    flags += "c" * request.constants + "s" * request.strings
    what = "list" if request.list else "snap" if request.snap else "sample"
    option = "null" if request.option is None else request.option
    vmid = "null" if request.vmid is None else request.vmid
    times = f"{request.header_rate} {request.interval} {request.count}"
    return f"{what} {option} {names} {flags} {times} {vmid}"


def our_jps(line: list[str]) -> str:
    if line in ([option] for option in jps.HELP_OPTIONS):
        return "help"
    try:
        letters, host = jps.parse(line)
        HostIdentifier(host)
    except VMIdentifierError:
        return f"!Malformed Host Identifier: {line[-1]}"
    except CommandLineError as error:
        return f"!{error}"
    return f"{''.join(letter for letter in 'mlvVq' if letter in letters)} {'null' if host is None else host}"


def test_jstat(jdk17: JDK) -> None:
    dice = random.Random(3)
    lines = []
    for _ in range(20_000):
        line = [dice.choice(JSTAT_FIRST)] if dice.random() < 0.97 else []
        line += dice.choices(JSTAT_MORE, k=dice.choice([0, 0, 0, 1, 1, 2, 3]))
        line += dice.choices(JSTAT_LAST, k=dice.choice([0, 1, 1, 2, 2, 3, 3, 4]))
        # The one thing that jstat dies of, with a Java exception: an empty name after "-name=".
        lines.append(line or ["-gc", "17"])
    answers = ask(jdk17, (("jstat", *line) for line in lines))
    assert len(set(answers)) > 500
    wrong = []
    for line, java in zip(lines, answers, strict=True):
        ours = our_jstat(line)
        if java.startswith("!Bad name pattern: "):  # the reason is the regular expressions' own
            java, ours = java[:18], ours[:18]
        if ours != java:
            wrong.append((line, java, ours))
    assert not wrong, f"{len(wrong)} of {len(lines)}: {wrong[:10]}"


def test_jps(jdk17: JDK) -> None:
    dice = random.Random(4)
    lines = [[text] for text in JPS] + [dice.choices(JPS, k=dice.randint(1, 4)) for _ in range(5_000)]
    answers = ask(jdk17, (("jps", *line) for line in lines))
    assert len(set(answers)) > 50
    wrong = [(t, java, ours) for t, java in zip(lines, answers, strict=True) if (ours := our_jps(t)) != java]
    assert not wrong, f"{len(wrong)} of {len(lines)}: {wrong[:10]}"


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "1_000", " 1", "1 ", "+", "-", "", "--1", "0x1"])
def test_integers_that_java_refuses(text: str) -> None:
    from vmscope.cli._java import parse_int

    with pytest.raises(ValueError):
        parse_int(text)
