"""What the kernel knows of native threads, in C and in Python."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from tests.implementations import both
from tests.support import PATIENCE

native = pytest.mark.parametrize("native", both())


@native
def test_threads_and_what_they_do(native: Any) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, args=(PATIENCE,))
    thread.start()
    try:
        ids = native.os_thread_ids()
        assert {os.getpid(), thread.native_id} <= set(ids)
        deadline = time.monotonic() + PATIENCE
        while True:
            [(stat, call, cpu)] = native.read_os_threads([thread.native_id])
            if call and call != b"running\n":
                break
            assert time.monotonic() < deadline
        with open(f"/proc/self/task/{thread.native_id}/syscall", "rb") as file:
            assert call == file.read()
        assert stat.split()[0] == str(thread.native_id).encode()
        assert cpu >= 0
        rows = native.read_os_threads(ids)
        assert [int(row[0].split()[0]) for row in rows] == ids
    finally:
        over.set()
        thread.join(PATIENCE)


@native
def test_one_that_is_not_there(native: Any) -> None:
    assert native.read_os_threads([]) == []
    assert native.read_os_threads([1 << 22]) == [(b"", b"", -1)], "no id is so large"
    with pytest.raises(TypeError):
        native.read_os_threads(["one"])
    with pytest.raises(TypeError):
        native.read_os_threads(1)
