"""Clocks, processors, and memory for agents."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from vmscope.tool.environment import Environment
from vmscope.tool.functions.system import LocationFormat, TimerKind
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, InvalidThread, OutOfMemory, ThreadNotAlive


@pytest.fixture
def env() -> Environment:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_GET_CURRENT_THREAD_CPU_TIME, Capability.CAN_GET_THREAD_CPU_TIME})
    return env


def spin(until: int) -> None:
    while time.thread_time_ns() < until:
        pass


def test_time_goes_on(env: Environment) -> None:
    first = env.get_time()
    assert env.get_time() >= first
    info = env.get_timer_info()
    assert (info.kind, info.may_skip_backward, info.may_skip_forward) == (TimerKind.ELAPSED, False, False)
    assert info.max_value == (1 << 63) - 1


def test_processor_time_of_the_calling_thread(env: Environment) -> None:
    before = time.thread_time_ns()
    inside = env.get_current_thread_cpu_time()
    by_thread = env.get_thread_cpu_time(threads.current())
    assert before <= inside <= by_thread <= env.get_thread_cpu_time() <= time.thread_time_ns()
    assert env.get_current_thread_cpu_timer_info().kind == TimerKind.TOTAL_CPU
    assert env.get_thread_cpu_timer_info().kind == TimerKind.TOTAL_CPU


def test_processor_time_of_another_thread_and_of_one_that_has_ended(env: Environment) -> None:
    busy, go = threading.Event(), threading.Event()
    seen: list[threads.Thread] = []
    own: list[int] = []

    def run() -> None:
        seen.append(threads.current())
        spin(20_000_000)
        own.append(time.thread_time_ns())
        busy.set()
        go.wait(30)

    thread = threading.Thread(target=run)
    thread.start()
    assert busy.wait(30)
    measured = env.get_thread_cpu_time(seen[0])
    go.set()
    thread.join()
    assert own[0] <= measured < own[0] + 1_000_000_000
    with pytest.raises(ThreadNotAlive):
        env.get_thread_cpu_time(seen[0])
    with pytest.raises(InvalidThread):
        env.get_thread_cpu_time(thread)  # type: ignore[arg-type]


def test_a_native_id_that_no_thread_has_is_an_error_and_no_crash(env: Environment) -> None:
    for native_id in (None, 4_000_000):  # above the highest that Linux gives
        with pytest.raises(ThreadNotAlive):
            env.get_thread_cpu_time(threads.Thread(1, native_id))


def test_processors(env: Environment) -> None:
    allowed = os.sched_getaffinity(0)
    assert env.get_available_processors() == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert env.get_available_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_locations_are_not_a_jvm_s(env: Environment) -> None:
    assert env.get_jlocation_format() == LocationFormat.OTHER


def test_memory(env: Environment) -> None:
    memory = env.allocate(64)
    assert memory == bytes(64)
    view = memoryview(memory)
    with pytest.raises(IllegalArgument, match="in use"):
        env.deallocate(memory)
    view.release()
    env.deallocate(memory)
    assert memory == b""
    env.deallocate(None)
    assert env.allocate(0) == b""
    for size in (-1, 1 << 63):
        with pytest.raises(IllegalArgument):
            env.allocate(size)
    with pytest.raises(IllegalArgument):
        env.deallocate(b"")  # type: ignore[arg-type]
    with pytest.raises(OutOfMemory) as raised:
        env.allocate(sys.maxsize)
    assert isinstance(raised.value, MemoryError)
