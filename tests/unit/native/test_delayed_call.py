"""One call, a moment from now: in C and in Python."""

from __future__ import annotations

import os
import threading
import time
from _thread import get_ident
from collections.abc import Iterator
from typing import Any

import pytest

from tests.implementations import both

MS = 1_000_000


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield request.param
    assert request.param.cancel_call()


class Calls(list[float]):
    """When it was called, in seconds since it was made, and on which threads."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.threads: list[int] = []
        self.came = threading.Event()

    def __call__(self) -> None:
        self.append(time.monotonic() - self.began)
        self.threads.append(get_ident())
        self.came.set()


def test_it_comes_once_after_the_delay_on_a_thread_of_its_own(native: Any) -> None:
    calls = Calls()
    native.call_later(50 * MS, calls)
    assert calls.came.wait(10)
    time.sleep(0.1)  # a second call would come by now
    assert len(calls) == 1
    assert round(calls[0], 6) >= 0.05  # the difference of two floats
    assert calls.threads != [get_ident()]
    assert get_ident() in threading._active  # type: ignore[attr-defined]
    assert calls.threads[0] not in threading._active  # type: ignore[attr-defined]


def test_cancelled_it_never_comes(native: Any) -> None:
    calls = Calls()
    native.call_later(1500 * MS, calls)  # long: a busy machine may keep this thread waiting
    assert native.cancel_call()
    assert not calls.came.wait(2)
    assert native.cancel_call()


def test_a_later_one_takes_its_place(native: Any) -> None:
    first, second = Calls(), Calls()
    native.call_later(60_000 * MS, first)
    native.call_later(0, second)
    assert second.came.wait(10)
    assert (len(first), len(second)) == (0, 1)
    native.call_later(0, first)
    assert first.came.wait(10)


def test_what_it_raises_is_nobodys_business(native: Any, capfd: pytest.CaptureFixture[str]) -> None:
    came = threading.Event()

    def fails() -> None:
        came.set()
        raise OSError("not heard")

    native.call_later(0, fails)
    assert came.wait(10)
    assert native.cancel_call()
    assert capfd.readouterr() == ("", "")


def test_exit_does_not_wait_for_a_thread_that_sleeps(native: Any) -> None:
    calls = Calls()
    native.call_later(30 * MS, calls)
    assert native.cancel_call(False)
    time.sleep(0.1)  # the call would come by now
    assert calls == []
    native.call_later(0, calls)  # the process goes on after all
    assert calls.came.wait(10)


@pytest.mark.parametrize("wait", [False, True])
def test_exit_waits_for_a_call_under_way(native: Any, wait: bool) -> None:
    came, ended = threading.Event(), []

    def takes_time() -> None:
        came.set()
        time.sleep(0.1)  # longer than it is waited for
        ended.append(True)

    native.call_later(0, takes_time)
    assert came.wait(10)
    assert native.cancel_call(wait)
    assert ended == [True]


def test_a_negative_delay_is_refused(native: Any) -> None:
    with pytest.raises(ValueError, match="0 ns"):
        native.call_later(-1, print)


def test_the_program_sees_no_descriptor_of_it_and_it_says_nothing(
    native: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin's thread shares the descriptor table")
    came, go = threading.Event(), threading.Event()
    opened: list[int] = []

    def opens() -> None:
        opened.append(os.open("/proc/self/stat", os.O_RDONLY))
        os.write(1, b"not heard")
        os.write(2, b"not heard")
        came.set()
        go.wait(10)

    r, w = os.pipe()
    before = os.listdir("/proc/self/fd")
    native.call_later(0, opens)
    assert came.wait(10)
    assert os.listdir("/proc/self/fd") == before
    os.close(w)
    assert os.read(r, 1) == b""  # the thread does not keep the pipe open
    os.close(r)
    go.set()
    assert native.cancel_call()
    assert opened == [3]
    assert capfd.readouterr() == ("", "")
