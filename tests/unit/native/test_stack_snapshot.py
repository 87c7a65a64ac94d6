"""A snapshot of all threads, in C and in Python."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.implementations import both
from tests.support import PATIENCE

native = pytest.mark.parametrize("native", both())


class Waiting:
    """A thread that waits within a `with` block, with a variable."""

    def __init__(self) -> None:
        self.inside, self.over = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.inside.wait(PATIENCE)

    def run(self) -> None:
        mine = self
        with self.lock:
            mine.inside.set()
            self.over.wait(PATIENCE)

    def end(self) -> None:
        self.over.set()
        self.thread.join(PATIENCE)


def at_of(snapshot: Any, ident: int | None) -> int:
    [at] = [at for at, row in enumerate(snapshot.threads()) if row[1] == ident]
    return at


@native
def test_threads_frames_and_places(native: Any) -> None:
    waiting = Waiting()
    ident = waiting.thread.ident
    snapshot = native.StackSnapshot()
    assert snapshot.threads() == snapshot.places() == snapshot.instructions() == []
    assert snapshot.os_threads() is None
    assert snapshot.reserve() >= 2
    snapshot.take(100)
    rows = snapshot.threads()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows), "the oldest first"
    assert (ident, waiting.thread.native_id, False, False) in [row[1:] for row in rows]
    places = snapshot.places()
    stack = [places[number] for number in snapshot.frames(at_of(snapshot, ident))]
    assert [name for name, *_ in stack][-4:] == [
        "Waiting.run", "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"
    ]  # fmt: skip
    frame = sys._current_frames()[ident or 0]
    assert stack[0] == (frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)
    assert (frame.f_code, frame.f_lasti, True) in snapshot.instructions()
    assert len(snapshot.instructions()) == len({(id(code), *rest) for code, *rest in snapshot.instructions()})
    snapshot.take(2)
    at = at_of(snapshot, ident)
    assert (len(snapshot.frames(at)), snapshot.threads()[at][3]) == (2, True), "it is cut"
    snapshot.clear()
    assert snapshot.threads() == []
    waiting.end()


def run_of(waiting: Waiting, snapshot: Any) -> Any:
    """(code, offset) of its frame that has the variables."""
    snapshot.take(100)
    code = waiting.run.__func__.__code__  # type: ignore[attr-defined]
    [offset] = [offset for each, offset, _ in snapshot.instructions() if each is code]
    return code, offset


def kept_of(snapshot: Any, other: Any, waiting: Waiting) -> Any:
    ident = waiting.thread.ident
    return snapshot.kept(at_of(snapshot, ident), other, at_of(other, ident))


@native
def test_what_is_wanted_is_kept(native: Any) -> None:
    waiting = Waiting()
    first, snapshot = native.StackSnapshot(), native.StackSnapshot((type(waiting.lock),))
    code, offset = run_of(waiting, first)
    stack = range(2, 2 + code.co_stacksize)
    snapshot.want(code, offset, False, (0, 1, -1, *stack))  # self, mine, globals, what stands on the stack
    snapshot.want(code, offset, True, (1,))  # where it is the innermost, which it is not
    snapshot.take(100)
    [kept] = [kept for _, each, at, kept in kept_of(snapshot, first, waiting) if (each, at) == (code, offset)]
    assert kept[:3] == (waiting, waiting, globals())
    assert [each for each in kept[3:] if each is not None] == [waiting.lock] * (native.IMPLEMENTATION == "c")
    other = native.StackSnapshot()  # no type is wanted
    other.want(code, offset, False, tuple(stack))
    other.take(100)
    [kept] = [kept for _, each, _, kept in kept_of(other, first, waiting) if each is code]
    assert set(kept) == {None}
    waiting.end()
    gone = weakref.ref(waiting)
    del waiting, kept
    gc.collect()
    assert gone() is not None, "the snapshot has it"
    snapshot.clear()
    gc.collect()
    assert gone() is None


@native
def test_what_has_moved_on_since_another_picture_is_not_kept(native: Any) -> None:
    steps = [threading.Event() for _ in range(2)]
    inside = [threading.Event() for _ in range(2)]

    def outer() -> None:
        inner()

    def inner() -> None:
        for at in range(2):
            if at == 0:
                wait(at)
            else:  # at another instruction
                wait(at)

    def wait(at: int) -> None:
        inside[at].set()
        steps[at].wait(PATIENCE)

    thread = threading.Thread(target=outer)
    thread.start()
    first, second = native.StackSnapshot(), native.StackSnapshot()
    assert inside[0].wait(PATIENCE)
    first.take(100)
    for code, offset, innermost in first.instructions():
        second.want(code, offset, innermost, (-1,))
    steps[0].set()
    assert inside[1].wait(PATIENCE)
    second.take(100)
    places, at = first.places(), at_of(first, thread.ident)
    names = [places[number][0].rpartition(".")[2] for number in first.frames(at)]
    kept = second.kept(at_of(second, thread.ident), first, at)
    assert [names[depth] for depth, *_ in kept] == ["outer", "run", "_bootstrap_inner", "_bootstrap"]
    steps[1].set()
    thread.join(PATIENCE)


def test_what_no_frame_has_is_refused() -> None:
    from vmscope import native

    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin asks for names and finds none")
    snapshot = native.StackSnapshot()

    def function(first: int) -> int:
        return first

    wrong: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: snapshot.want(function.__code__, 0, True, (1 << 20,)), ValueError),
        (lambda: snapshot.want(function.__code__, 0, True, (-2,)), ValueError),
        (lambda: snapshot.want(function.__code__, 0, True, (0,) * 100), ValueError),
        (lambda: snapshot.want(None, 0, True, (0,)), TypeError),  # type: ignore[arg-type]
        (lambda: snapshot.frames(0), IndexError),
        (lambda: native.StackSnapshot((1,)), TypeError),  # type: ignore[arg-type]
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()


@native
def test_threads_that_come_and_go_and_run(native: Any) -> None:
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            threading.Thread(target=sorted, args=([3, 1, 2],)).start()
            with threading.Lock(), threading.RLock():
                sum(number for number in range(20))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    snapshot = native.StackSnapshot((type(threading.Lock()),))
    try:
        for _ in range(200):
            snapshot.take(100)
            for code, offset, innermost in snapshot.instructions():
                snapshot.want(code, offset, innermost, tuple(range(-1, min(code.co_nlocals, 20))))
            for at in range(len(snapshot.threads())):
                snapshot.frames(at)
                snapshot.kept(at, snapshot, at)
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
