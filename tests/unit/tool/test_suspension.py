"""Threads that are suspended, and go on."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope import native
from vmscope.commands import thread_print
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.model.thread_state import ThreadState
from vmscope.tool.model.threads import Thread
from vmscope.tool.sources import event_sources
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Error, Phase
from vmscope.tool.spec.errors import (
    InvalidThread,
    NotAvailable,
    ThreadNotAlive,
    ThreadNotSuspended,
    ThreadSuspended,
)
from vmscope.tool.spec.events import Event

monitoring: Any = getattr(sys, "monitoring", None)
pytestmark = pytest.mark.skipif(monitoring is None, reason="threads can be suspended since 3.12")


@pytest.fixture
def env() -> Iterator[Environment]:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    event_sources.install(vm)
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_SUSPEND, Capability.CAN_ACCESS_LOCAL_VARIABLES, Capability.CAN_SIGNAL_THREAD})
    yield env
    for thread in threads.living():
        if thread.suspended:
            env.resume_thread(thread)
    assert holders() == [None] * 6
    env.dispose_environment()


def holders() -> list[str | None]:
    return [monitoring.get_tool(number) for number in range(6)]


class Counting:
    """A thread that counts, in a way of its own."""

    def __init__(self, body: Callable[[Counting], None]) -> None:
        self.number = 0
        self.over = False
        self.ended: list[str] = []
        self.python = threading.Thread(target=self.run, args=(body,), daemon=True)
        self.python.start()
        self.wait_for_more()
        self.thread = next(each for each in threads.living() if each.ident == self.python.ident)

    def run(self, body: Callable[[Counting], None]) -> None:
        body(self)
        self.ended.append("over")

    def wait_for_more(self) -> None:
        before = self.number
        wait_for(lambda: self.number != before, "it stands still")

    def stands_still(self) -> bool:
        before = self.number
        time.sleep(0.05)  # a thread that runs counts on
        return self.number == before

    def end(self) -> None:
        self.over = True
        self.python.join(PATIENCE)
        assert self.ended == ["over"]


def loop(self: Counting) -> None:
    while not self.over:
        self.number += 1


def calls(self: Counting) -> None:
    def add() -> None:
        self.number += 1

    while not self.over:
        add()


def sleeps(self: Counting) -> None:
    while not self.over:
        time.sleep(0.001)  # a loop in whose calls it can be stopped
        self.number += 1


def generates(self: Counting) -> None:
    def numbers() -> Iterator[int]:
        while not self.over:
            yield 1

    for number in numbers():
        self.number += number


SUSPENDED = ThreadState.ALIVE | ThreadState.RUNNABLE | ThreadState.SUSPENDED


def innermost(env: Environment, thread: Thread) -> list[object]:
    """Its state and the function that it executes, by all functions that tell of them."""
    (stack,) = env.get_thread_list_stack_traces([thread], 1)
    return [
        env.get_thread_state(thread),
        stack.state,
        env.get_frame_location(thread, 0).method,
        env.get_stack_trace(thread, 0, 1)[0].method,
        stack.frames[0].method,
    ]


def test_a_suspended_thread_shows_what_it_was_doing_and_no_lock_of_ours(env: Environment) -> None:
    counting = Counting(loop)
    env.suspend_thread(counting.thread)
    assert counting.stands_still()
    assert innermost(env, counting.thread) == [SUSPENDED, SUSPENDED, loop.__code__, loop.__code__, loop.__code__]
    rows = {row.seen.state: row for row in thread_print.ThreadDump().rows}
    assert rows[counting.thread.state].state == "RUNNABLE"
    env.resume_thread(counting.thread)
    counting.end()


def test_a_thread_that_suspends_itself_stops_where_it_says_so(env: Environment) -> None:
    """And not in what vmscope calls for it, in the standard library, before."""

    def stop(self: Counting) -> None:
        loop(self)
        env.suspend_thread(None)

    counting = Counting(stop)
    counting.over = True
    wait_for(lambda: counting.thread.parked, "it does not stop")
    assert innermost(env, counting.thread) == [SUSPENDED, SUSPENDED, stop.__code__, stop.__code__, stop.__code__]
    env.resume_thread(counting.thread)
    counting.end()


@pytest.mark.parametrize("body", [loop, calls, sleeps, generates])
def test_a_suspended_thread_makes_no_progress_and_goes_on(env: Environment, body: Callable[[Counting], None]) -> None:
    counting = Counting(body)
    for _ in range(3):
        env.suspend_thread(counting.thread)
        assert counting.stands_still()
        assert env.get_thread_state(counting.thread) & ThreadState.SUSPENDED
        with pytest.raises(ThreadSuspended):
            env.suspend_thread(counting.thread)
        env.resume_thread(counting.thread)
        assert not env.get_thread_state(counting.thread) & ThreadState.SUSPENDED
        counting.wait_for_more()
        with pytest.raises(ThreadNotSuspended):
            env.resume_thread(counting.thread)
    assert holders() == [None] * 6, "nothing is instrumented while nobody is suspended"
    counting.end()


def test_a_thread_in_the_standard_library_stops_while_starts_are_reported(env: Environment) -> None:
    """Then code of vmscope's calls what the thread runs, as it calls what it needs itself of the standard library."""
    started: list[Thread] = []
    env.set_event_callbacks({Event.THREAD_START: lambda _, thread: started.append(thread)})
    env.set_event_notification_mode(True, Event.THREAD_START)
    python = threading.Thread(target=random.shuffle, args=(bytearray(1_000_000),))
    python.start()
    wait_for(lambda: started, "the thread's start")
    env.suspend_thread(started[0])
    wait_for(lambda: started[0].state in env.host.suspension.gate.parked, "the thread stands still")
    env.resume_thread(started[0])
    python.join(PATIENCE)


def test_the_others_go_on(env: Environment) -> None:
    one, other = Counting(loop), Counting(calls)
    env.suspend_thread(one.thread)
    other.wait_for_more()
    assert one.stands_still()
    env.resume_thread(one.thread)
    one.end()
    other.end()


def test_a_thread_that_waits_in_c_stops_when_it_comes_back(env: Environment) -> None:
    lock = threading.Lock()
    lock.acquire()
    seen: list[str] = []

    def wait() -> None:
        lock.acquire()
        seen.append("went on")

    python = threading.Thread(target=wait)
    python.start()
    thread = next(each for each in threads.living() if each.ident == python.ident)
    state = ThreadState.BLOCKED_ON_MONITOR_ENTER
    wait_for(lambda: not native.runtime_span()[1] or env.get_thread_state(thread) & state)
    env.suspend_thread(thread)
    lock.release()
    time.sleep(0.05)  # one that is not suspended takes it by now
    assert (seen, lock.locked()) == ([], True)
    env.resume_thread(thread)
    python.join(PATIENCE)
    assert seen == ["went on"]


def test_the_stack_of_a_suspended_thread_is_the_program_s(env: Environment) -> None:
    counting = Counting(loop)
    env.suspend_thread(counting.thread)
    assert env.get_frame_location(counting.thread, 0).method is loop.__code__
    assert env.get_local_object(counting.thread, 0, 0) is counting
    assert env.get_stack_trace(counting.thread, 0, 100) == env.get_stack_trace(counting.thread, 0, 100)
    if native.IMPLEMENTATION == "c":
        assert sys._current_frames()[counting.thread.ident].f_code is loop.__code__
    env.resume_thread(counting.thread)
    counting.end()


def test_the_current_thread_suspends_itself_until_another_resumes_it(env: Environment) -> None:
    seen: list[object] = []

    def run() -> None:
        seen.append(threads.current())
        env.suspend_thread(None)
        seen.append("resumed")

    python = threading.Thread(target=run)
    python.start()
    wait_for(lambda: env.host.suspension.gate.parked)
    assert len(seen) == 1
    thread = seen[0]
    assert isinstance(thread, Thread)
    env.resume_thread(thread)
    python.join(PATIENCE)
    assert seen[1:] == ["resumed"]


def test_lists_tell_what_became_of_each(env: Environment) -> None:
    one, other = Counting(loop), Counting(sleeps)
    ended = Counting(loop)
    ended.end()
    assert env.resume_thread_list([one.thread]) == [Error.THREAD_NOT_SUSPENDED]
    wrong: Any = [one.thread, "x", one.thread, ended.thread, other.thread, None]
    assert env.suspend_thread_list(wrong) == [
        Error.NONE,
        Error.INVALID_THREAD,
        Error.THREAD_SUSPENDED,
        Error.THREAD_NOT_ALIVE,
        Error.NONE,
        Error.INVALID_THREAD,
    ]
    assert one.stands_still()
    assert other.stands_still()
    assert env.resume_thread_list([*wrong[:2], other.thread, one.thread, ended.thread]) == [
        Error.NONE,
        Error.INVALID_THREAD,
        Error.NONE,
        Error.THREAD_NOT_SUSPENDED,
        Error.THREAD_NOT_ALIVE,
    ]
    one.end()
    other.end()
    assert env.suspend_thread_list([]) == env.resume_thread_list([]) == []


def test_disposal_lets_go_on_what_it_has_suspended_and_no_other(env: Environment) -> None:
    one, other, third = Counting(loop), Counting(calls), Counting(sleeps)
    agent = env.host.get_env()
    agent.add_capabilities({Capability.CAN_SUSPEND})
    agent.suspend_thread(one.thread)
    assert agent.suspend_thread_list([third.thread]) == [Error.NONE]
    env.suspend_thread(other.thread)
    env.resume_thread(third.thread)
    env.suspend_thread(third.thread)  # now it is this one's
    agent.dispose_environment()
    one.wait_for_more()
    assert other.stands_still()
    assert third.stands_still()
    assert (one.thread.suspended, other.thread.suspended, third.thread.suspended) == (False, True, True)
    assert env.resume_thread_list([other.thread, third.thread]) == [Error.NONE] * 2
    assert holders() == [None] * 6
    for each in (one, other, third):
        each.end()


def test_errors(env: Environment) -> None:
    ended = Counting(loop)
    ended.end()
    for call in (env.suspend_thread, env.resume_thread):
        with pytest.raises(ThreadNotAlive):
            call(ended.thread)
        with pytest.raises(InvalidThread):
            call(ended.python)  # type: ignore[arg-type]
    with pytest.raises(ThreadNotSuspended):
        env.resume_thread(None)


def test_where_every_tool_id_is_taken_nobody_is_suspended(env: Environment, caplog: pytest.LogCaptureFixture) -> None:
    counting = Counting(loop)
    taken = [number for number in range(6) if monitoring.get_tool(number) is None]
    for number in taken:
        monitoring.use_tool_id(number, "another")
    try:
        with pytest.raises(NotAvailable):
            env.suspend_thread(counting.thread)
        assert not env.get_thread_state(counting.thread) & ThreadState.SUSPENDED
        counting.wait_for_more()
    finally:
        for number in taken:
            monitoring.free_tool_id(number)
    counting.end()
    assert "another" in caplog.text


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin waits in a frame of its own, where the stop arrives")
def test_a_stop_reaches_a_suspended_thread_when_it_goes_on(env: Environment) -> None:
    raised: list[BaseException] = []

    def body(self: Counting) -> None:
        try:
            loop(self)
        except ValueError as error:
            raised.append(error)

    counting = Counting(body)
    env.suspend_thread(counting.thread)
    env.stop_thread(counting.thread, ValueError)
    assert counting.stands_still()
    assert raised == []
    env.resume_thread(counting.thread)
    counting.python.join(PATIENCE)
    assert [type(error) for error in raised] == [ValueError]
