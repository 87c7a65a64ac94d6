"""Raw monitors: owners, waiting, notifying, interrupting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.model.monitors import RawMonitor
from vmscope.tool.model.thread_state import ThreadState
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, Interrupted, InvalidMonitor, NotMonitorOwner, NullPointer


@pytest.fixture
def env() -> Environment:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_SIGNAL_THREAD})
    return env


@pytest.fixture
def monitor(env: Environment) -> RawMonitor:
    return env.create_raw_monitor("of a test")


def in_thread(body: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=body)
    thread.start()
    return thread


def wait_for_waiters(env: Environment, monitor: RawMonitor, number: int) -> None:
    def waiting() -> int:
        env.raw_monitor_enter(monitor)
        found = len(monitor._waiters)
        env.raw_monitor_exit(monitor)
        return found

    wait_for(lambda: waiting() == number, lambda: f"{waiting()} wait, not {number}")


def test_it_excludes_others_and_counts_its_owner_s_entries(env: Environment, monitor: RawMonitor) -> None:
    total = 0

    def add() -> None:
        nonlocal total
        for _ in range(300):
            env.raw_monitor_enter(monitor)
            env.raw_monitor_enter(monitor)
            before = total
            time.sleep(0)
            total = before + 1
            env.raw_monitor_exit(monitor)
            env.raw_monitor_exit(monitor)

    adding = [in_thread(add) for _ in range(4)]
    for thread in adding:
        thread.join(PATIENCE)
    assert total == 1200


def test_only_its_owner_may_do_what_needs_it(env: Environment, monitor: RawMonitor) -> None:
    calls: list[Callable[[], None]] = [
        lambda: env.raw_monitor_exit(monitor),
        lambda: env.raw_monitor_notify(monitor),
        lambda: env.raw_monitor_notify_all(monitor),
        lambda: env.raw_monitor_wait(monitor, 1),
    ]
    for call in calls:
        with pytest.raises(NotMonitorOwner):
            call()
    env.raw_monitor_enter(monitor)
    errors: list[BaseException] = []

    def elsewhere() -> None:
        destroy: Callable[[], None] = lambda: env.destroy_raw_monitor(monitor)  # noqa: E731
        for call in [*calls, destroy]:
            try:
                call()
            except NotMonitorOwner as error:
                errors.append(error)

    in_thread(elsewhere).join(PATIENCE)
    assert len(errors) == 5
    env.destroy_raw_monitor(monitor)
    with pytest.raises(InvalidMonitor):
        env.raw_monitor_enter(monitor)


def test_wrong_arguments(env: Environment) -> None:
    with pytest.raises(NullPointer):
        env.create_raw_monitor(None)  # type: ignore[arg-type]
    for wrong in (None, 3, threading.Lock()):
        with pytest.raises(InvalidMonitor):
            env.raw_monitor_enter(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidMonitor):
            env.raw_monitor_wait(wrong, "x")  # type: ignore[arg-type]
    monitor = env.create_raw_monitor("m")
    with pytest.raises(IllegalArgument):
        env.raw_monitor_wait(monitor, "x")  # type: ignore[arg-type]


def test_a_wait_ends_in_time_and_owns_the_monitor_as_before(env: Environment, monitor: RawMonitor) -> None:
    env.raw_monitor_enter(monitor)
    env.raw_monitor_enter(monitor)
    begin = time.monotonic()
    env.raw_monitor_wait(monitor, 30)
    assert time.monotonic() - begin >= 0.029
    assert (monitor.owner, monitor.entered) == (threads.current(), 2)
    env.raw_monitor_exit(monitor)
    env.raw_monitor_exit(monitor)
    with pytest.raises(NotMonitorOwner):
        env.raw_monitor_exit(monitor)


def test_notify_wakes_one_and_notify_all_the_rest(env: Environment, monitor: RawMonitor) -> None:
    woken: list[int] = []

    def wait(number: int) -> None:
        env.raw_monitor_enter(monitor)
        env.raw_monitor_wait(monitor, 0)
        woken.append(number)
        env.raw_monitor_exit(monitor)

    waiting = []
    for number in range(4):
        waiting.append(in_thread(lambda number=number: wait(number)))  # type: ignore[misc]
        wait_for_waiters(env, monitor, number + 1)
    env.raw_monitor_enter(monitor)
    env.raw_monitor_notify(monitor)
    env.raw_monitor_exit(monitor)
    waiting[0].join(PATIENCE)
    assert woken == [0], "the one that has waited longest"
    env.raw_monitor_enter(monitor)
    env.raw_monitor_notify_all(monitor)
    env.raw_monitor_exit(monitor)
    for thread in waiting:
        thread.join(PATIENCE)
    assert sorted(woken) == [0, 1, 2, 3]


def test_an_interrupt_ends_a_wait_or_the_next_one(env: Environment, monitor: RawMonitor) -> None:
    seen: list[object] = []
    go = threading.Event()

    def wait() -> None:
        seen.append(threads.current())
        env.raw_monitor_enter(monitor)
        for millis in (0, PATIENCE * 1000):
            try:
                env.raw_monitor_wait(monitor, int(millis))
            except Interrupted as error:
                seen.append(error.code)
            go.wait(PATIENCE)
        env.raw_monitor_exit(monitor)

    waiting = in_thread(wait)
    wait_for_waiters(env, monitor, 1)
    thread = seen[0]
    assert isinstance(thread, threads.Thread)
    env.interrupt_thread(thread)
    wait_for(lambda: len(seen) >= 2)
    assert not env.get_thread_state(thread) & ThreadState.INTERRUPTED
    env.interrupt_thread(thread)
    assert env.get_thread_state(thread) & ThreadState.INTERRUPTED
    go.set()
    waiting.join(PATIENCE)
    assert seen[1:] == [52, 52]


def test_whoever_waits_in_one_that_is_destroyed_wakes(env: Environment, monitor: RawMonitor) -> None:
    def wait() -> None:
        env.raw_monitor_enter(monitor)
        env.raw_monitor_wait(monitor, 0)
        monitor.exit()

    waiting = in_thread(wait)
    wait_for_waiters(env, monitor, 1)
    env.destroy_raw_monitor(monitor)
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
