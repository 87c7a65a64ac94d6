"""Locks that know who has them: what they tell, and that they are as CPython's own else."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from tests.implementations import both
from tests.support import PATIENCE
from tests.wait import wait_for


class Shared:
    """The locks of one VM, and what they have told."""

    def __init__(self, native: Any) -> None:
        self.native = native.IMPLEMENTATION
        self.quiet = False
        self.told: list[tuple[bool, object]] = []
        self.raising: dict[bool, BaseException] = {}
        self.state = native.thread_state  # each form has its own numbers
        self.threads: list[SimpleNamespace] = []
        library = threading.Condition.__init__.__code__.co_filename
        self.monitors = native.Monitors(self.current, self.tell, lambda: "here", library)
        shared = {"__slots__": (), "monitors": self.monitors}
        self.Lock: Any = type("Lock", (native.MonitorLock,), shared)
        self.RLock: Any = type("RLock", (native.MonitorRLock,), shared)

    def current(self) -> SimpleNamespace:
        self.threads.append(SimpleNamespace(contended=None, patient=True))
        return self.threads[-1]

    def tell(self, entered: bool, thread: SimpleNamespace, lock: object) -> None:
        if self.quiet:
            return
        self.told.append((entered, lock))
        assert thread is self.threads[-1]
        assert (thread.contended is lock) is not entered
        if entered in self.raising:
            raise self.raising[entered]


@pytest.fixture(params=both())
def shared(request: pytest.FixtureRequest) -> Shared:
    if not hasattr(request.param, "MonitorLock"):
        pytest.skip("without a GIL the twin serves")
    return Shared(request.param)


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_who_has_it(shared: Shared, kind: str) -> None:
    lock = getattr(shared, kind)()
    assert (lock.made, lock.owner, lock.entered, lock.waiters, lock.locked()) == ("here", 0, 0, [], False)
    with lock as got:
        assert got is True
        assert (lock.owner, lock.entered, lock.locked()) == (shared.state(), 1, True)
        assert shared.monitors.held(shared.state()) == [lock]
        assert shared.monitors.held(shared.state() + 1000) == []
        assert f"<locked {kind} object at 0x" in repr(lock)
    assert (lock.owner, lock.entered, lock.locked()) == (0, 0, False)
    assert shared.monitors.held(shared.state()) == []
    assert f"<unlocked {kind} object at 0x" in repr(lock)
    assert shared.told == []


def test_the_first_taken_first(shared: Shared) -> None:
    one, other, third = shared.Lock(), shared.RLock(), shared.Lock()
    for lock in (other, third, one, other):
        lock.acquire()
    assert shared.monitors.held(shared.state()) == [other, third, one]
    third.release()
    other.release()
    assert shared.monitors.held(shared.state()) == [other, one]
    other.release()
    assert shared.monitors.held(shared.state()) == [one]
    del one, lock
    gc.collect()
    third.acquire()
    assert third in shared.monitors.held(shared.state())


def test_again_and_again(shared: Shared) -> None:
    lock = shared.RLock()
    with lock, lock:
        assert lock.acquire(blocking=False)
        assert (lock.entered, lock._is_owned(), lock._recursion_count()) == (3, True, 3)
        saved = lock._release_save()
        assert (lock.entered, lock._is_owned(), lock._recursion_count(), lock.locked()) == (0, False, 0, False)
        lock._acquire_restore(saved)
        assert (lock.entered, lock.owner) == (3, shared.state())
        lock.release()
    for wrong in (lock.release, lock._release_save):
        with pytest.raises(RuntimeError, match="cannot release un-acquired lock"):
            wrong()
    with pytest.raises(TypeError):
        lock._acquire_restore(None)
    with pytest.raises(TypeError):
        lock._acquire_restore(("x", 1))
    if shared.native == "c":  # the twin's leaves it to CPython's, which takes it no times
        with pytest.raises(ValueError, match="once or more"):
            lock._acquire_restore((0, 1))


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), {}),
        ((True,), {}),
        ((1, -1), {}),
        ((False,), {}),
        ((0, -1.0), {}),
        ((), {"blocking": False}),
        ((), {"timeout": 0}),
        ((), {"timeout": 0.001}),
        ((True,), {"timeout": 2}),
        ((True, threading.TIMEOUT_MAX), {}),
        ((False, 1), {}),
        ((True, -2), {}),
        ((True, -0.5), {}),
        ((True, float("nan")), {}),
        ((True, float("inf")), {}),
        ((True, 1e30), {}),
        ((True, 1 << 70), {}),
        ((True, "x"), {}),
        ((True, 1, 1), {}),
        ((True,), {"blocking": True}),
        ((), {"wait": True}),
    ],
)
def test_arguments_are_those_of_cpython_s(shared: Shared, kind: str, arguments: Any, named: Any) -> None:
    theirs, ours = getattr(threading, kind)(), getattr(shared, kind)()
    assert outcome(ours, arguments, named) == outcome(theirs, arguments, named)


def outcome(lock: Any, arguments: Any, named: Any) -> tuple[object, bool]:
    try:
        return lock.acquire(*arguments, **named), not elsewhere(lambda: lock.acquire(False))
    except Exception as error:
        return type(error), not elsewhere(lambda: lock.acquire(False))


def elsewhere(body: Any) -> Any:
    """What a function gives on another thread."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(body()))
    thread.start()
    thread.join(PATIENCE)
    return found[0]


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_wait(shared: Shared, kind: str) -> None:
    lock = getattr(shared, kind)()
    lock.acquire()
    assert elsewhere(lambda: (lock.acquire(False), lock.acquire(timeout=0))) == (False, False)
    assert shared.told == []
    begun = time.monotonic()
    assert elsewhere(lambda: lock.acquire(timeout=0.05)) is False
    assert time.monotonic() - begun >= 0.05
    assert shared.told == [(False, lock)]
    assert (lock.waiters, shared.threads[-1].contended, shared.threads[-1].patient) == ([], None, True)
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append((lock.acquire(), lock.owner == shared.state())))
    thread.start()
    wait_for(lambda: lock.waiters)
    assert lock.waiters == shared.threads[-1:]
    assert (shared.threads[-1].contended, shared.threads[-1].patient) == (lock, True)
    lock.release()
    thread.join(PATIENCE)
    assert got == [(True, True)]
    assert shared.told[1:] == [(False, lock), (True, lock)]
    assert (lock.waiters, shared.threads[-1].contended) == ([], None)


@pytest.mark.parametrize("entered", [False, True])
@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_what_is_raised_meanwhile_goes_to_who_asked_for_it(shared: Shared, kind: str, entered: bool) -> None:
    lock = getattr(shared, kind)()
    shared.raising[entered] = LookupError("no")
    raised: list[BaseException] = []

    def want() -> None:
        try:
            with lock:
                raised.append(AssertionError("it was not to be had"))
        except LookupError as error:
            raised.append(error)

    lock.acquire()
    thread = threading.Thread(target=want)
    thread.start()
    wait_for(lambda: shared.told)
    if entered:
        lock.release()
    thread.join(PATIENCE)
    assert raised == [shared.raising[entered]]
    assert (lock.waiters, shared.threads[-1].contended, shared.threads[-1].patient) == ([], None, True)
    assert lock.entered == (0 if entered else 1)
    if not entered:
        lock.release()
    assert lock.acquire(timeout=0)


def test_the_frame_that_took_it(shared: Shared) -> None:
    lock, condition = shared.Lock(), threading.Condition(shared.RLock())
    lock.acquire()
    assert not lock.taken_in(sys._getframe())
    lock.release()
    shared.monitors.places = True

    def inner() -> None:
        with condition:
            assert lock.taken_in(sys._getframe(1))
            assert not lock.taken_in(sys._getframe())
            assert condition._lock.taken_in(sys._getframe())  # type: ignore[attr-defined]

    with lock:
        assert lock.taken_in(sys._getframe())
        inner()
    assert not lock.taken_in(sys._getframe())
    assert not condition._lock.taken_in(sys._getframe())  # type: ignore[attr-defined]


def test_a_plain_lock_is_given_back_by_anybody(shared: Shared) -> None:
    lock = shared.Lock()
    lock.acquire()
    elsewhere(lock.release)
    assert (lock.owner, shared.monitors.held(shared.state())) == (0, [])
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        lock.release()
    again = shared.RLock()
    again.acquire()
    with pytest.raises(RuntimeError):
        raise elsewhere(lambda: failure(again.release))


def failure(call: Any) -> BaseException | None:
    try:
        call()
    except RuntimeError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_after_a_fork_it_is_free(shared: Shared, kind: str) -> None:
    lock = getattr(shared, kind)()
    elsewhere(lock.acquire)
    assert lock.locked()
    lock._at_fork_reinit()
    assert (lock.locked(), lock.owner, lock.entered) == (False, 0, 0)
    assert lock.acquire(timeout=0)
    lock._at_fork_reinit()
    lock._at_fork_reinit()
    assert lock.acquire(timeout=0)


def test_what_is_no_lock_s_to_do(shared: Shared) -> None:
    for make in (shared.Lock, shared.RLock):
        lock: Any = make()
        reference = weakref.ref(lock)
        assert reference() is not None
        with pytest.raises((TypeError, pickle.PicklingError)):
            pickle.dumps(lock)
        with pytest.raises(TypeError):
            copy.deepcopy(lock)
        lock.acquire()
        del lock
        gc.collect()
        assert (reference() is None) == (shared.monitors.held(shared.state()) == [])
        for kept in shared.monitors.held(shared.state()):
            kept.release()


def test_threads_that_want_the_same(shared: Shared) -> None:
    lock, again = shared.Lock(), shared.RLock()
    total = 0

    def add() -> None:
        nonlocal total
        for _ in range(300):
            with again, lock:
                was = total
                if was % 7 == 0:
                    time.sleep(0)
                total = was + 1

    shared.quiet = True
    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert total == 1200
    assert (lock.entered, again.entered, lock.waiters, again.waiters) == (0, 0, [], [])
