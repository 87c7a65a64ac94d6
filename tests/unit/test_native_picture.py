"""A picture of all threads, in C and in Python."""

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


def frames_of(picture: Any, ident: int | None) -> list[Any]:
    [at] = [at for at, row in enumerate(picture.threads()) if row[1] == ident]
    return list(picture.frames(at))


@native
def test_threads_frames_and_places(native: Any) -> None:
    waiting = Waiting()
    picture = native.Picture()
    assert picture.threads() == picture.places() == []
    picture.take(100)
    rows = picture.threads()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows), "the oldest first"
    assert (waiting.thread.ident, waiting.thread.native_id, True) in [row[1:] for row in rows]
    frames = frames_of(picture, waiting.thread.ident)
    names = [code.co_qualname for code, *_ in frames]
    assert names[-4:] == ["Waiting.run", "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"]
    frame = sys._current_frames()[waiting.thread.ident or 0]
    assert frames[0] == (frame.f_code, frame.f_lasti, ())
    assert (frame.f_code, frame.f_lasti, True) in picture.places()
    assert len(picture.places()) == len({(id(code), *rest) for code, *rest in picture.places()})
    picture.take(2)
    assert len(frames_of(picture, waiting.thread.ident)) == 2
    picture.clear()
    assert picture.threads() == []
    waiting.end()


@native
def test_what_is_wanted_is_kept(native: Any) -> None:
    waiting = Waiting()
    picture = native.Picture((type(waiting.lock),))
    picture.take(100)
    [(code, offset, _)] = [each for each in frames_of(picture, waiting.thread.ident) if each[0].co_name == "run"][:1]
    picture.want(code, offset, False, (0, 1, -1, 2))  # self, mine, globals, the block's exit
    picture.want(code, offset, True, (1,))  # where it is the innermost, which it is not
    picture.take(100)
    [kept] = [kept for each, _, kept in frames_of(picture, waiting.thread.ident) if each is code]
    assert kept[:3] == (waiting, waiting, globals())
    assert kept[3] is (waiting.lock if native.IMPLEMENTATION == "c" else None)
    other = native.Picture()  # no type is wanted
    other.want(code, offset, False, (2,))
    other.take(100)
    assert [kept for each, _, kept in frames_of(other, waiting.thread.ident) if each is code] == [(None,)]
    waiting.end()
    gone = weakref.ref(waiting)
    del waiting, kept
    gc.collect()
    assert gone() is not None, "the picture has it"
    picture.clear()
    gc.collect()
    assert gone() is None


def test_what_no_frame_has_is_refused() -> None:
    from vmscope import native

    if native.IMPLEMENTATION != "c":
        pytest.skip("the twin asks for names and finds none")
    picture = native.Picture()

    def function(first: int) -> int:
        return first

    wrong: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: picture.want(function.__code__, 0, True, (1 << 20,)), ValueError),
        (lambda: picture.want(function.__code__, 0, True, (-2,)), ValueError),
        (lambda: picture.want(function.__code__, 0, True, (0,) * 100), ValueError),
        (lambda: picture.want(None, 0, True, (0,)), TypeError),  # type: ignore[arg-type]
        (lambda: picture.frames(0), IndexError),
        (lambda: native.Picture((1,)), TypeError),  # type: ignore[arg-type]
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
    picture = native.Picture((type(threading.Lock()),))
    try:
        for _ in range(200):
            picture.take(100)
            for code, offset, innermost in picture.places():
                picture.want(code, offset, innermost, tuple(range(-1, min(code.co_nlocals, 20))))
            for at in range(len(picture.threads())):
                picture.frames(at)
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
