"""Changes that come in the middle of a change: finalizers, signal handlers, other threads."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

import pytest

from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.events import Event

ENTRY = Event.METHOD_ENTRY
monitored = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")


def listening(vm: Host, log: list[Any], name: str) -> Environment:
    env = vm.get_env(agent=name)
    env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    env.set_event_callbacks({ENTRY: lambda env, thread, code: log.append((name, code.co_name))})
    return env


def called() -> None:
    pass


class Recorder:
    """A mechanism that does something once, in the middle of being told."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.depth = 0
        self.deepest = 0
        self.during: Any = None

    def update(self, host: Host) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        during, self.during = self.during, None
        if during is not None:
            during()
        self.told.append(len(host.environments))
        self.depth -= 1


def test_a_change_in_the_middle_of_one_is_told_after_it(vm: Host) -> None:
    recorder = Recorder()
    vm.add_event_source(recorder)
    recorder.told.clear()
    made: list[Environment] = []
    recorder.during = lambda: made.append(vm.get_env())
    env = vm.get_env()
    assert recorder.deepest == 1  # never told while it is being told
    assert recorder.told == [2, 2]
    assert vm.environments == [env, *made]


def test_a_mechanism_that_fails_is_told_again(vm: Host) -> None:
    recorder = Recorder()
    vm.add_event_source(recorder)

    def fails() -> None:
        raise ZeroDivisionError

    recorder.during = fails
    with pytest.raises(ZeroDivisionError):
        vm.get_env()
    recorder.told.clear()
    vm.get_env()
    assert recorder.told == [2]


@monitored
def test_what_a_callback_leaves_behind_goes_without_the_lock(vm: Host) -> None:
    """A finalizer waits for another thread, which itself needs the lock: it would be waited for in vain."""
    others: list[bool] = []

    class Callback:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, *_: object) -> None:
            self.calls += 1

        def __del__(self) -> None:
            done = threading.Event()

            def other() -> None:
                vm.get_env().dispose_environment()
                done.set()

            thread = threading.Thread(target=other, daemon=True)
            thread.start()
            others.append(done.wait(10))

    env = vm.get_env()
    env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    env.set_event_callbacks({ENTRY: Callback()})
    env.set_event_notification_mode(True, ENTRY)
    called()
    env.set_event_callbacks({ENTRY: Callback()})
    assert others == [True]
    env.dispose_environment()
    assert others == [True, True]
    third = vm.get_env()
    third.set_environment_local_storage(Callback())
    third.dispose_environment()
    assert others == [True] * 3


@monitored
def test_a_finalizer_changes_something(vm: Host) -> None:
    log: list[Any] = []
    other = listening(vm, log, "other")

    class Held:
        def __del__(self) -> None:
            other.set_event_notification_mode(True, ENTRY)

    env = listening(vm, log, "first")
    env.set_event_notification_mode(True, ENTRY)
    env.set_environment_local_storage(Held())
    called()
    env.dispose_environment()
    called()
    mine = [line for line in log if line[1] == "called"]
    assert mine == [("first", "called"), ("other", "called")]


@monitored
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers by signal")
def test_a_signals_handler_in_the_middle_of_changes(vm: Host) -> None:
    log: list[Any] = []
    first, second = listening(vm, log, "first"), listening(vm, log, "second")
    came: list[int] = []

    def handler(number: int, frame: object) -> None:
        on = len(came) % 2 == 0
        second.set_event_notification_mode(on, ENTRY)
        if on:
            third = listening(vm, log, "third")
            third.set_event_notification_mode(True, ENTRY)
            third.dispose_environment()
        came.append(number)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for turn in range(100_000):
            first.set_event_notification_mode(turn % 2 == 0, ENTRY)
            if len(came) >= 50:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(came) >= 50
    first.set_event_notification_mode(True, ENTRY)
    second.set_event_notification_mode(True, ENTRY)
    log.clear()
    called()
    assert [line for line in log if line[1] == "called"] == [("first", "called"), ("second", "called")]
    first.set_event_notification_mode(False, ENTRY)
    second.set_event_notification_mode(False, ENTRY)
    log.clear()
    called()
    assert log == []


@monitored
def test_eight_threads_enable_and_disable(vm: Host) -> None:
    wrong: list[BaseException] = []
    counts: list[int] = []

    def work(number: int) -> None:
        try:
            calls = 0

            def count(env: Environment, thread: threads.Thread, code: Any) -> None:
                nonlocal calls
                calls += code is called.__code__

            env = vm.get_env()
            env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
            own = threads.current()
            for turn in range(60):
                env.set_event_callbacks({ENTRY: count})
                env.set_event_notification_mode(True, ENTRY, own)
                called()
                env.set_event_notification_mode(False, ENTRY, own)
                called()
                if turn % 10 == 9:
                    env.dispose_environment()
                    env = vm.get_env()
                    env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
            counts.append(calls)
            env.dispose_environment()
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert wrong == []
    assert counts == [60] * 8
    assert vm.environments == []
