"""Threads, their groups, states and storage; threads of agents; stop and interrupt."""

from __future__ import annotations

import _thread
import gc
import logging
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.model.thread_state import ThreadState
from vmscope.tool.model.threads import Thread
from vmscope.tool.sources import event_sources
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import (
    InvalidObject,
    InvalidPriority,
    InvalidThread,
    InvalidThreadGroup,
    NullPointer,
    ThreadNotAlive,
)
from vmscope.tool.spec.events import Event


@pytest.fixture
def env() -> Environment:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env(agent="tester")
    env.add_capabilities({Capability.CAN_SIGNAL_THREAD})
    return env


class Runner:
    """Threads that do something until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.endings: list[Callable[[], object]] = [self.over.set]
        self.started: list[threading.Thread] = []

    def start(self, body: Callable[[], object], **options: bool) -> threading.Thread:
        thread = threading.Thread(target=body, **options)  # type: ignore[arg-type]
        thread.start()
        self.started.append(thread)
        return thread

    def end(self) -> None:
        while self.endings:
            self.endings.pop()()
        for thread in self.started:
            thread.join(PATIENCE)


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.end()


def found(env: Environment, thread: threading.Thread) -> Thread:
    """The tool interface's, for one of `threading`."""
    wait_for(lambda: any(each.ident == thread.ident for each in env.get_all_threads()))
    return next(each for each in env.get_all_threads() if each.ident == thread.ident)


# -- which threads there are ------------------------------------------------------------------------


def test_all_threads_are_those_of_the_interpreter(env: Environment, runner: Runner) -> None:
    before = {each.ident for each in env.get_all_threads()}
    assert before == set(sys._current_frames())
    started = [runner.start(runner.over.wait) for _ in range(5)]
    wait_for(lambda: {each.ident for each in started} <= set(sys._current_frames()))
    everyone = env.get_all_threads()
    assert {each.ident for each in everyone} == before | {each.ident for each in started}
    assert {each.native_id for each in everyone} >= {each.native_id for each in started}
    assert everyone == env.get_all_threads(), "one object for each thread"
    assert env.get_current_thread() in everyone
    assert [each.ident for each in everyone if each.ident not in before] == [each.ident for each in started]
    runner.end()
    wait_for(lambda: not any(each.alive for each in everyone if each.ident not in before))
    assert {each.ident for each in env.get_all_threads()} == before


def test_a_thread_is_the_same_object_from_outside_and_from_within(env: Environment, runner: Runner) -> None:
    seen: list[Thread] = []
    go = threading.Event()

    def run() -> None:
        go.wait(PATIENCE)
        seen.append(threads.current())
        runner.over.wait(PATIENCE)

    outside = found(env, runner.start(run))
    go.set()
    wait_for(lambda: seen)
    assert seen == [outside]
    assert outside in env.get_all_threads()


def test_an_ident_that_is_used_again_is_another_thread(env: Environment) -> None:
    seen: dict[int, list[Thread]] = {}
    for _ in range(20):
        over = _thread.allocate_lock()
        over.acquire()
        thread = threading.Thread(target=over.acquire)
        thread.start()
        each = found(env, thread)
        seen.setdefault(each.ident, []).append(each)
        over.release()
        thread.join()
    assert max(map(len, seen.values())) > 1, "idents are used again"
    if native.IMPLEMENTATION == "c":
        assert len({each for those in seen.values() for each in those}) == 20
        wait_for(lambda: not any(each.alive for those in seen.values() for each in those))


def test_threads_unknown_to_threading_are_found_and_get_no_dummy(env: Environment) -> None:
    over, started = _thread.allocate_lock(), _thread.allocate_lock()
    over.acquire()
    started.acquire()
    known = set(threading._active)  # type: ignore[attr-defined]

    def run() -> None:
        started.release()
        over.acquire()

    ident = _thread.start_new_thread(run, ())
    assert started.acquire(timeout=PATIENCE)
    other = next(each for each in env.get_all_threads() if each.ident == ident)
    info = env.get_thread_info(other)
    assert (info.name, info.is_daemon, info.thread_group) == ("", True, threads.SYSTEM)
    assert set(threading._active) == known  # type: ignore[attr-defined]
    over.release()
    wait_for(lambda: not other.alive)


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin's end of a thread is Python code")
def test_no_debugger_or_profiler_sees_that_the_end_of_a_thread_is_told(env: Environment) -> None:
    """They would ask `threading` which thread it is, which does not know it any more and makes a dummy."""
    seen: list[str] = []
    made: list[Thread] = []
    ended = threading.Event()

    def run() -> None:
        made.append(threads.current())
        made[0].endings.add(lambda thread: ended.set())
        sys.setprofile(lambda frame, event, argument: seen.append(frame.f_code.co_qualname))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended.wait(PATIENCE)
    assert not made[0].alive
    assert seen[-1] == "Thread._bootstrap"


def test_many_threads_that_come_and_go_are_forgotten(env: Environment) -> None:
    for _ in range(30):
        started = [threading.Thread(target=threads.current) for _ in range(10)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        env.get_all_threads()
    assert len(threads._known) < 64


# -- what is told of one ----------------------------------------------------------------------------


def test_thread_info_is_what_threading_says(env: Environment, runner: Runner) -> None:
    info = env.get_thread_info(None)
    assert info == (threading.current_thread().name, 5, False, threads.MAIN, None)
    thread = runner.start(runner.over.wait, daemon=True)
    other = found(env, thread)
    thread.name = "another"
    assert env.get_thread_info(other) == ("another", 5, True, threads.MAIN, None)
    runner.end()
    wait_for(lambda: not other.alive)
    assert env.get_thread_info(other).thread_group is None
    for wrong in (thread, 7, "x"):
        with pytest.raises(InvalidThread):
            env.get_thread_info(wrong)  # type: ignore[arg-type]


def test_groups(env: Environment, runner: Runner) -> None:
    [system] = env.get_top_thread_groups()
    assert env.get_thread_group_info(system) == (None, "system", 10, False)
    _, [main] = env.get_thread_group_children(system)
    assert env.get_thread_group_info(main) == (system, "main", 10, False)
    other = found(env, runner.start(runner.over.wait))
    members, groups = env.get_thread_group_children(main)
    assert (groups, {each.ident for each in members}) == ([], {each.ident for each in threading.enumerate()})
    assert other in members
    for wrong in (None, other, "main"):
        with pytest.raises(InvalidThreadGroup):
            env.get_thread_group_info(wrong)  # type: ignore[arg-type]


def state(env: Environment, thread: Thread, wanted: ThreadState) -> None:
    wait_for(lambda: env.get_thread_state(thread) == wanted | ThreadState.ALIVE)


def test_states_of_threads_that_wait(env: Environment, runner: Runner) -> None:
    if not native.runtime_span()[1]:
        pytest.skip("here a wait for a lock cannot be told from a wait for the GIL")
    lock = threading.Lock()
    lock.acquire()
    runner.endings.append(lock.release)
    condition = threading.Condition()
    ours, theirs = socket.socketpair()
    runner.endings.append(lambda: ours.sendall(b"x"))
    waiting = ThreadState.WAITING | ThreadState.WAITING_WITH_TIMEOUT

    def hold() -> None:
        with lock:
            pass

    def hold_for_a_time() -> None:
        while not runner.over.is_set():
            if lock.acquire(timeout=PATIENCE):
                lock.release()

    def sleep() -> None:
        while not runner.over.is_set():
            time.sleep(0.2)  # it is asleep, with a limit

    def spin() -> None:
        while not runner.over.is_set():
            pass

    expected: list[tuple[Callable[[], object], ThreadState]] = [
        (hold, ThreadState.BLOCKED_ON_MONITOR_ENTER),
        (hold_for_a_time, waiting | ThreadState.PARKED),
        (sleep, waiting | ThreadState.SLEEPING),
        (lambda: theirs.recv(1), ThreadState.RUNNABLE | ThreadState.IN_NATIVE),
        (runner.over.wait, ThreadState.WAITING | ThreadState.WAITING_INDEFINITELY | ThreadState.IN_OBJECT_WAIT),
        (lambda: runner.over.wait(PATIENCE), waiting | ThreadState.IN_OBJECT_WAIT),
        (spin, ThreadState.RUNNABLE),
    ]
    with condition:
        for body, wanted in expected:
            state(env, found(env, runner.start(body)), wanted)
    assert env.get_thread_state(None) == ThreadState.ALIVE | ThreadState.RUNNABLE
    runner.end()
    ours.close()
    theirs.close()


def test_states_before_and_after(env: Environment, runner: Runner) -> None:
    assert env.get_thread_state(Thread(name="new")) == 0
    ended = found(env, runner.start(runner.over.wait))
    runner.end()
    wait_for(lambda: not ended.alive)
    assert env.get_thread_state(ended) == ThreadState.TERMINATED


# -- storage ----------------------------------------------------------------------------------------


def test_storage_is_a_thread_s_and_an_environment_s_own(env: Environment, runner: Runner) -> None:
    another = env.host.get_env()
    other = found(env, runner.start(runner.over.wait))

    class Data:
        pass

    data = Data()
    gone: list[str] = []
    weakref.finalize(data, gone.append, "gone")
    env.set_thread_local_storage(other, data)
    env.set_thread_local_storage(None, 1)
    assert env.get_thread_local_storage(other) is data
    assert (env.get_thread_local_storage(), another.get_thread_local_storage(other)) == (1, None)
    env.set_thread_local_storage(None, None)
    assert env.get_thread_local_storage(None) is None
    del data
    runner.end()
    wait_for(lambda: not other.alive)
    assert env.thread_storage == {threads.current(): None}
    gc.collect()
    assert gone == ["gone"]
    for call in (env.get_thread_local_storage, lambda thread: env.set_thread_local_storage(thread, 1)):
        with pytest.raises(ThreadNotAlive):
            call(other)
        with pytest.raises(InvalidThread):
            call(5)  # type: ignore[arg-type]


# -- threads of agents ------------------------------------------------------------------------------


def test_an_agent_s_thread(env: Environment, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[object] = []
    go = threading.Event()
    thread = Thread(name="worker")

    def run(environment: Environment, argument: object) -> None:
        seen.append((environment, argument, environment.get_current_thread()))
        go.wait(PATIENCE)
        logging.getLogger("elsewhere").info("this asks threading for the current thread")
        raise LookupError("an agent's own")

    env.run_agent_thread(thread, run, "argument", 1)
    assert thread.alive
    wait_for(lambda: seen)
    assert seen == [(env, "argument", thread)]
    assert thread in env.get_all_threads()
    assert thread.ident not in {each.ident for each in threading.enumerate()}
    assert env.get_thread_info(thread) == ("worker", 1, True, None, None)
    assert [
        group for group in (threads.SYSTEM, threads.MAIN) if thread in env.get_thread_group_children(group)[0]
    ] == []
    with pytest.raises(InvalidThread):
        env.run_agent_thread(thread, run)
    go.set()
    wait_for(lambda: not thread.alive)
    assert "agent tester: its thread worker raised" in caplog.text
    assert not [each for each in threading.enumerate() if each.name.startswith("Dummy")]


def test_an_agent_s_thread_starts_and_ends_for_everyone(env: Environment) -> None:
    seen: list[tuple[str, Thread]] = []
    env.set_event_callbacks(
        {
            Event.THREAD_START: lambda env, thread: seen.append(("start", thread)),
            Event.THREAD_END: lambda env, thread: seen.append(("end", thread)),
        }
    )
    event_sources.install(env.host)
    go = threading.Event()
    first, second = Thread(name="first"), Thread(name="second")
    env.run_agent_thread(first, lambda env, argument: go.wait(PATIENCE))
    for event in (Event.THREAD_START, Event.THREAD_END):
        env.set_event_notification_mode(True, event)
    env.run_agent_thread(second, lambda env, argument: None)
    wait_for(lambda: not second.alive)
    assert seen == [("start", second), ("end", second)]
    go.set()
    wait_for(lambda: not first.alive)
    assert seen[2:] == [("end", first)]
    env.dispose_environment()


def test_wrong_arguments_for_an_agent_s_thread(env: Environment) -> None:
    thread = Thread(name="never")
    with pytest.raises(NullPointer):
        env.run_agent_thread(thread, None)  # type: ignore[arg-type]
    for priority in (0, 11, -1):
        with pytest.raises(InvalidPriority):
            env.run_agent_thread(thread, print, None, priority)
        with pytest.raises(InvalidThread):
            env.run_agent_thread(threads.current(), print, None, priority)
    with pytest.raises(InvalidThread):
        env.run_agent_thread(None, print)  # type: ignore[arg-type]
    assert not thread.started


# -- stop and interrupt -----------------------------------------------------------------------------


def test_stop_raises_in_a_running_thread(env: Environment, runner: Runner) -> None:
    class Own(Exception):
        pass

    given, inside = Own("given"), threading.Event()

    def spin() -> None:  # a function of its own: not all of a loop within a try is covered by it
        inside.set()
        while not runner.over.is_set():
            pass

    for exception, expected in ((Own, Own), (given, Own), (SystemExit, SystemExit)):
        raised: list[BaseException] = []

        def run(raised: list[BaseException] = raised) -> None:
            try:
                spin()
            except BaseException as error:
                raised.append(error)

        thread = runner.start(run)
        assert inside.wait(PATIENCE)
        inside.clear()
        env.stop_thread(found(env, thread), exception)
        wait_for(lambda raised=raised: raised)  # type: ignore[misc]
        assert type(raised[0]) is expected
        assert raised[0] is given or exception is not given
        raised.clear()


def test_stop_wants_an_exception_and_a_live_thread(env: Environment, runner: Runner) -> None:
    other = found(env, runner.start(runner.over.wait))
    for wrong in (5, int, "x"):
        with pytest.raises(InvalidObject):
            env.stop_thread(other, wrong)
    with pytest.raises(NullPointer):
        env.stop_thread(other, None)
    runner.end()
    wait_for(lambda: not other.alive)
    with pytest.raises(ThreadNotAlive):
        env.stop_thread(other, ValueError)
    with pytest.raises(ThreadNotAlive):
        env.interrupt_thread(other)
