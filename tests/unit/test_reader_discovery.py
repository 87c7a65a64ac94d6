"""Which files are found, in which order, and that no odd file holds the search up."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.published import cpython, publish
from vmscope.reader import candidates, discovery, vms
from vmscope.reader.discovery import Candidate, java_order


def listed(tmp: Path) -> list[tuple[int, str, str]]:
    return [(found.pid, found.user, found.path) for found in candidates(str(tmp)) if not found.container]


def test_files_that_are_pids_are_found(tmp_path: Path) -> None:
    one = publish(tmp_path, 301, b"x")
    two = publish(tmp_path, 302, b"", user="other", mode=0o644)
    for name in ("notes.txt", "301.tmp", "-1", "+5", "١٢", " 7", "4294967297", "99999999999999999999", "", "0x10"):
        if name:
            publish(tmp_path, name, b"x")
    (tmp_path / "hsperfdata_file").write_bytes(b"x")
    (tmp_path / "other_dir").mkdir()
    (tmp_path / "other_dir" / "5").write_bytes(b"x")
    assert sorted(listed(tmp_path)) == [(301, "someone", str(one)), (302, "other", str(two))]


def test_a_name_with_zeros_is_looked_for_without(tmp_path: Path) -> None:
    """As jps does it: it lists the number, and attaches by the number."""
    publish(tmp_path, "007", b"x")
    assert listed(tmp_path) == [(7, "someone", str(tmp_path / "hsperfdata_someone" / "7"))]


def test_a_fifo_and_a_directory_named_as_pids_are_left_out(tmp_path: Path) -> None:
    publish(tmp_path, 1, b"x")
    os.mkfifo(tmp_path / "hsperfdata_someone" / "2")
    (tmp_path / "hsperfdata_someone" / "3").mkdir()
    begin = time.monotonic()
    assert [pid for pid, _, _ in listed(tmp_path)] == [1]
    assert vms(tmp=str(tmp_path), stale=True) == []
    assert time.monotonic() - begin < 5


def test_no_such_tmp_directory(tmp_path: Path) -> None:
    assert candidates(str(tmp_path / "none")) == []
    assert vms(tmp=str(tmp_path / "none")) == []


def test_a_directory_of_very_many_files_is_read_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_MAX_FILES", 50)
    for pid in range(1000, 1080):
        publish(tmp_path, pid, b"x")
    assert len(listed(tmp_path)) == 50


@pytest.mark.parametrize(
    ("added", "iterated"),
    [  # as JDK 17's jps printed them
        ([8, 9, 51], [51, 8, 9]),
        ([8, 72, 9], [8, 72, 9]),
        ([9, 8, 115], [115, 8, 9]),
    ],
)
def test_the_order_is_a_java_hash_sets(added: list[int], iterated: list[int]) -> None:
    found = {pid: Candidate(pid, pid, "u", f"/{pid}", False) for pid in added}
    assert [candidate.pid for candidate in java_order(found)] == iterated


def test_the_order_of_many() -> None:
    """Against a hash set written out: buckets that double when they are three quarters full."""
    random.seed(1)
    for count in (0, 1, 12, 13, 24, 25, 48, 49, 300, 3000):
        pids = random.sample(range(1, 1 << 22), count)
        buckets: list[list[int]] = [[] for _ in range(16)]
        for held, pid in enumerate(pids, 1):
            buckets[(pid ^ pid >> 16) % len(buckets)].append(pid)
            if held > len(buckets) * 0.75:
                flat = [kept for bucket in buckets for kept in bucket]
                buckets = [[] for _ in range(2 * len(buckets))]
                for kept in flat:
                    buckets[(kept ^ kept >> 16) % len(buckets)].append(kept)
        found = {pid: Candidate(pid, pid, "u", "", False) for pid in pids}
        assert [candidate.pid for candidate in java_order(found)] == [pid for bucket in buckets for pid in bucket]


def test_two_files_that_claim_one_process(tmp_path: Path) -> None:
    """An old one in another user's directory: jps sees one pid, and the newer file is the process's."""
    me = os.getpid()
    publish(tmp_path, me, cpython(me, "old"), user="a")
    time.sleep(0.02)  # times of files differ by a tick of the clock
    newer = publish(tmp_path, me, cpython(me, "new"), user="b")
    publish(tmp_path, me, cpython(me, "wrong", ticks=5), user="c")
    assert len(candidates(str(tmp_path))) == 1
    (found,) = vms(tmp=str(tmp_path))
    with found:
        assert (found.path, found.main, found.state) == (str(newer), "new", "live")
    everything = vms(tmp=str(tmp_path), stale=True)
    assert sorted((each.main, each.state) for each in everything) == [("new", "live"), ("wrong", "stale")]
    for each in everything:
        each.close()


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"\xca\xfe\xc0\xc0\x01\x07\0\0" + bytes(4088), b"x" * 5000])
def test_files_that_are_no_regions_are_left_out(tmp_path: Path, content: bytes) -> None:
    me = os.getpid()
    publish(tmp_path, me, content)
    publish(tmp_path, os.getppid(), cpython(os.getppid()))
    assert [each.pid for each in vms(tmp=str(tmp_path), stale=True)] == [os.getppid()]
