"""Thread states and the gate, in C and in Python."""

from __future__ import annotations

import _thread
import gc
import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from tests.implementations import both
from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope.native.stacks import thread_states as twin

native = pytest.mark.parametrize("native", both())


class Waiting:
    """A thread that waits, two frames above its start."""

    def __init__(self, native: Any) -> None:
        self.over, self.inside = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self.state = 0
        self.native = native
        self.python = threading.Thread(target=self.run)
        self.python.start()
        assert self.inside.wait(PATIENCE)

    def run(self) -> None:
        self.state = self.native.thread_state()
        try:
            self.loop()
        except LookupError as error:
            self.error = error

    def loop(self) -> None:
        self.inside.set()
        while not self.over.is_set():
            time.sleep(0.001)  # a loop in whose calls it can be stopped

    def end(self) -> None:
        self.over.set()
        self.python.join(PATIENCE)


@native
def test_each_thread_has_a_number_of_its_own(native: Any) -> None:
    waiting = [Waiting(native) for _ in range(3)]
    rows = {state: (ident, native_id, framed) for state, ident, native_id, framed in native.thread_states()}
    assert list(rows) == sorted(rows), "the oldest first"
    for each in waiting:
        assert rows[each.state] == (each.python.ident, each.python.native_id, True)
    assert rows[native.thread_state()][:2] == (_thread.get_ident(), _thread.get_native_id())
    for each in waiting:
        each.end()
    wait_for(lambda: not {each.state for each in waiting} & {state for state, *_ in native.thread_states()})
    later = Waiting(native)
    assert later.state not in rows, "no number comes twice"
    later.end()


@native
def test_stacks_of_all_or_of_one_and_only_so_deep(native: Any) -> None:
    waiting = Waiting(native)
    stacks = dict(native.thread_stacks(1000))
    assert [code.co_name for code, _ in stacks[waiting.state]][-5:] == [
        "loop", "run", "run", "_bootstrap_inner", "_bootstrap"
    ]  # fmt: skip
    frame = sys._getframe()
    own = [code for code, _ in stacks[native.thread_state()]]
    assert own[own.index(frame.f_code) + 1] is frame.f_back.f_code if frame.f_back else True
    [(state, stack)] = native.thread_stacks(2, waiting.state)
    assert (state, len(stack)) == (waiting.state, 2)
    assert native.thread_stacks(5, 1 << 60) == []
    waiting.end()
    with pytest.raises(TypeError):
        native.thread_stacks("1")


@native
def test_a_thread_is_stopped_by_its_number(native: Any) -> None:
    waiting = Waiting(native)
    assert native.stop_thread(waiting.state, KeyError)
    waiting.python.join(PATIENCE)
    assert type(waiting.error) is KeyError
    wait_for(lambda: waiting.state not in {state for state, *_ in native.thread_states()})
    assert not native.stop_thread(waiting.state, KeyError)


@native
def test_what_is_tied_to_a_thread_goes_with_it(native: Any) -> None:
    waiting, gone = Waiting(native), []

    class Tied:
        def __del__(self) -> None:
            gone.append(_thread.get_ident())

    tied = native.tie_thread(waiting.state, Tied())
    ident = waiting.python.ident
    assert gone == ([] if tied else [_thread.get_ident()])
    waiting.end()
    wait_for(lambda: gone)
    assert gone == [ident if tied else _thread.get_ident()]
    assert not native.tie_thread(1 << 60, object())
    assert tied == (native.IMPLEMENTATION == "c")


@native
def test_the_gate_holds_who_has_a_lock(native: Any) -> None:
    gate = native.SuspendGate("/own/", "/called/", ())
    code = compile("", "/program/a.py", "exec")
    own = compile("", "/own/a.py", "exec")
    names: dict[str, Any] = {}
    exec(compile("def called(gate):\n    gate(called.__code__, 1, 2)", "/called/a.py", "exec"), names)
    exec(compile("def own_call(gate):\n    called(gate)", "/own/a.py", "exec"), names)
    own_call = names["own_call"]
    passed: list[str] = []
    assert gate(code, 1) is None
    locks = [_thread.allocate_lock() for _ in range(2)]
    state: list[int] = []

    def run() -> None:
        state.append(native.thread_state())
        for lock in locks:
            lock.acquire()
        gate.locks[state[0]] = locks[0]
        gate(own, 1)
        passed.append("own")
        own_call(gate)
        passed.append("called by own")
        gate(code, 1, 2)
        passed.append("program")

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: gate.parked == set(state) and state)
    assert passed == ["own", "called by own"]
    gate.locks[state[0]] = locks[1]  # it is held again before it has gone on
    locks[0].release()
    time.sleep(0.02)  # one that is let through would be there by now
    assert (passed, gate.parked) == (["own", "called by own"], set(state))
    del gate.locks[state[0]]
    locks[1].release()
    thread.join(PATIENCE)
    assert (passed, gate.parked) == (["own", "called by own", "program"], set())


def test_a_thread_that_comes_during_a_look_keeps_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin took it for one that had ended, as the look did not show it."""
    frames, numbers = sys._current_frames, list[int]()
    ready, go = threading.Event(), threading.Event()

    def run() -> None:
        numbers.append(twin.thread_state())
        ready.set()
        go.wait(PATIENCE)

    thread = threading.Thread(target=run)

    def before_it_comes() -> dict[int, FrameType]:
        found = frames()
        thread.start()
        assert ready.wait(PATIENCE)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(sys, "_current_frames", before_it_comes)
        twin.thread_states()
    try:
        assert numbers[0] in [number for number, *_ in twin.thread_states()]
    finally:
        go.set()
        thread.join(PATIENCE)


def test_the_twin_s_looks_leave_no_garbage() -> None:
    twin.thread_states()
    gc.collect()
    twin.thread_states()
    twin.thread_stacks(10)
    assert gc.collect() == 0
