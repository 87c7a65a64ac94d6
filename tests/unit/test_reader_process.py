"""Facts of processes out of /proc: of this one, of children with odd names, of those that have ended."""

from __future__ import annotations

import os
import time

import pytest

from vmscope.reader.process import Process, namespace_pids, pids, process, read_file, user_ids


def test_this_process() -> None:
    me = process(os.getpid())
    assert me.pid == os.getpid()
    assert me.uid == os.geteuid()
    assert me.alive
    assert me.threads >= 1
    assert 1 << 20 < me.rss < 1 << 40
    assert 0 <= me.uptime_seconds < 86400
    assert me.cpu_seconds == pytest.approx(time.process_time(), abs=1.0)
    assert abs(me.start_time - (time.time() - me.uptime_seconds) * 1000) < 1000
    assert user_ids(os.getpid())[:3] == list(os.getresuid())
    assert namespace_pids(os.getpid())[-1] == os.getpid()
    assert os.getpid() in pids()


def test_the_fields_of_a_line() -> None:
    fields = [b"S", *(b"%d" % number for number in range(4, 53))]
    found = Process(7, 1000, b"7 (we) (ird) " + b" ".join(fields) + b"\n")
    assert (found.name, found.state, found.pid, found.uid) == ("we) (ird", "S", 7, 1000)
    assert (found.user_ticks, found.system_ticks, found.threads, found.start_ticks) == (14, 15, 20, 22)
    assert found.rss == 24 * os.sysconf("SC_PAGE_SIZE")


def test_a_long_file_is_read_to_its_limit() -> None:
    with open("/proc/self/maps", "rb") as file:
        whole = len(file.read())
    assert len(read_file("/proc/self/maps", 100)) == 100
    assert len(read_file("/proc/self/maps", 1 << 24)) == pytest.approx(whole, rel=0.5)
    assert read_file("/proc/self/maps", 0) == b""
