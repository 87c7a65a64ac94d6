"""ThreadStart and ThreadEnd."""

from __future__ import annotations

import _thread
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.agents import live_vm
from tests.wait import wait_for
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.events import Event

START, END = Event.THREAD_START, Event.THREAD_END
Log = list[tuple[str, threads.Thread, str, int]]


def functions() -> list[object]:
    names = ("start_new_thread", "start_joinable_thread", "_start_new_thread", "_start_joinable_thread", "_delete")
    return [vars(module).get(name) for module in (_thread, threading, threading.Thread) for name in names]


@pytest.fixture
def vm() -> Iterator[Host]:
    before = functions()
    with live_vm() as vm:
        yield vm
    assert functions() == before


@pytest.fixture
def env(vm: Host) -> Environment:
    return vm.get_env()


@pytest.fixture
def log(env: Environment) -> Log:
    """What it is sent: the event, its thread, the thread's name, and where it was sent."""
    log: Log = []

    def writer(event: Event) -> Callable[..., None]:
        def write(env: Environment, thread: threads.Thread) -> None:
            assert thread.alive
            assert thread is threads.current()
            log.append((event.name, thread, thread.name, _thread.get_ident()))

        return write

    env.set_event_callbacks({event: writer(event) for event in (START, END)})
    env.set_event_notification_mode(True, START)
    env.set_event_notification_mode(True, END)
    return log


def test_a_thread_of_threading(log: Log) -> None:
    during: list[Any] = []
    thread = threading.Thread(target=lambda: during.append((list(log), threads.current())), name="Ann")
    thread.start()
    thread.join()
    wait_for(lambda: len(log) == 2)
    ((seen, own),) = during
    assert [line[:3] for line in seen] == [("THREAD_START", own, "Ann")]
    assert [line[:3] for line in log] == [("THREAD_START", own, "Ann"), ("THREAD_END", own, "Ann")]
    assert {line[3] for line in log} == {thread.ident}


def test_a_thread_of_the_low_module(log: Log) -> None:
    done = threading.Event()
    _thread.start_new_thread(lambda *_, **__: done.set(), (1,), {"named": 2})
    done.wait(60)
    wait_for(lambda: len(log) == 2)
    assert [line[0] for line in log] == ["THREAD_START", "THREAD_END"]
    assert log[0][1] is log[1][1]


def test_threads_that_raise_and_many_at_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def run(number: int) -> None:
        if number % 2:
            raise ValueError

    made = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()
    wait_for(lambda: len(log) == 40)
    starts = [line[1] for line in log if line[0] == "THREAD_START"]
    ends = [line[1] for line in log if line[0] == "THREAD_END"]
    assert len(set(starts)) == 20
    assert set(starts) == set(ends)


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin is not told when a thread state goes")
def test_a_thread_that_ran_before(env: Environment, vm: Host) -> None:
    go = threading.Event()
    low: list[threads.Thread] = []
    high: list[threads.Thread] = []
    waits = threading.Thread(target=go.wait, args=(60,), name="old")
    waits.start()
    ready = threading.Event()

    def run() -> None:
        ready.set()
        go.wait(60)

    _thread.start_new_thread(run, ())
    ready.wait(60)

    def ended(env: Environment, thread: threads.Thread) -> None:
        (high if thread.name == "old" else low).append(thread)

    env.set_event_callbacks({END: ended})
    env.set_event_notification_mode(True, END)
    go.set()
    waits.join()
    wait_for(lambda: len(low) == 1)
    assert len(high) == 1


def test_the_end_of_one_thread(env: Environment) -> None:
    go, ready = threading.Event(), threading.Event()
    own: list[threads.Thread] = []
    ends: list[threads.Thread] = []

    def run() -> None:
        own.append(threads.current())
        ready.set()
        go.wait(60)

    one, other = threading.Thread(target=run), threading.Thread(target=go.wait, args=(60,))
    one.start()
    ready.wait(60)
    env.set_event_callbacks({END: lambda env, thread: ends.append(thread)})
    env.set_event_notification_mode(True, END, own[0])
    other.start()
    go.set()
    one.join()
    other.join()
    assert ends == own


def test_a_callback_that_raises_does_not_keep_a_thread_from_running(env: Environment) -> None:
    ran: list[int] = []

    def raises(env: Environment, thread: threads.Thread) -> None:
        raise SystemExit

    env.set_event_callbacks({START: raises, END: raises})
    env.set_event_notification_mode(True, START)
    env.set_event_notification_mode(True, END)
    for number in range(3):
        thread = threading.Thread(target=ran.append, args=(number,))
        thread.start()
        thread.join()
    assert ran == [0, 1, 2]


def test_wrong_arguments_are_the_programs(log: Log) -> None:
    start: Any = _thread.start_new_thread
    with pytest.raises(TypeError):
        start(1, ())
    with pytest.raises(TypeError):
        start()
    with pytest.raises(TypeError):
        start(print, 3)
    assert log == []


def test_what_a_thread_raises_is_shown_as_ever(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda unraisable: shown.append(f"{unraisable.err_msg} {unraisable.object!r}")
    )

    def fails() -> None:
        raise ValueError

    _thread.start_new_thread(fails, ())
    wait_for(lambda: bool(shown))
    assert repr(fails) in shown[0]


def test_an_agents_thread(env: Environment, log: Log) -> None:
    done = threading.Event()
    thread = threads.Thread(name="helper")
    env.run_agent_thread(thread, lambda *_: done.set())
    done.wait(60)
    wait_for(lambda: len(log) == 2)
    assert [line[:3] for line in log] == [("THREAD_START", thread, "helper"), ("THREAD_END", thread, "helper")]


def test_logging_that_fails_keeps_no_thread_from_running(vm: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())
            raise ValueError("no place left on the device")

    def fails(*_: object) -> None:
        raise LookupError

    told: list[str] = []
    ran: list[bool] = []
    monkeypatch.setattr(logging.getLogger("vmscope.tool"), "handlers", [Failing()])
    env = vm.get_env(agent="mine")
    env.set_event_callbacks({START: fails, END: fails})
    env.set_event_notification_mode(True, START)
    env.set_event_notification_mode(True, END)
    thread = threading.Thread(target=ran.append, args=(True,))
    thread.start()
    thread.join()
    assert ran == [True]
    assert told == [f"agent mine: its callback for THREAD_{what} raised" for what in ("START", "END")]
