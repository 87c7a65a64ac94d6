"""What is asked of sys.monitoring: its events by their names, and what that means for threads that run already."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

from tests.wait import wait_for
from vmscope.tool.environment import Environment
from vmscope.tool.functions.extensions import Extension
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.sources import monitoring
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.events import Event

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")

ENTRY, EXIT, STEP, STOP = Event.METHOD_ENTRY, Event.METHOD_EXIT, Event.SINGLE_STEP, Event.BREAKPOINT
SENT = (ENTRY, EXIT, STEP, STOP, Event.FRAME_POP, Event.EXCEPTION, Event.EXCEPTION_CATCH, *Extension)


# -- numbers -----------------------------------------------------------------------------------------


class Renumbered:
    """sys.monitoring as a version would have it in which each event has another number: 3.14 moved most of them."""

    def __init__(self, real: Any) -> None:
        self.real = real
        names = [name for name in dir(real.events) if name.isupper() and getattr(real.events, name)]
        numbers = [getattr(real.events, name) for name in names]
        shifted = [1 << number.bit_length() + 20 for number in numbers]
        self.pairs = list(zip(numbers, shifted, strict=True))
        self.events = SimpleNamespace(**dict(zip(names, shifted, strict=True)), NO_EVENTS=0)
        self.asked: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def theirs(self, events: int) -> int:
        self.asked.add(events)
        known = sum(there for _, there in self.pairs)
        if events & ~known:
            raise ValueError(f"invalid event set 0x{events:x}")
        return sum(here for here, there in self.pairs if events & there)

    def ours(self, events: int) -> int:
        return sum(there for here, there in self.pairs if events & here)

    def register_callback(self, tool: int, event: int, function: object) -> object:
        return self.real.register_callback(tool, self.theirs(event), function)

    def set_events(self, tool: int, events: int) -> None:
        self.real.set_events(tool, self.theirs(events))

    def get_events(self, tool: int) -> int:
        return self.ours(self.real.get_events(tool))

    def set_local_events(self, tool: int, code: CodeType, events: int) -> None:
        self.real.set_local_events(tool, code, self.theirs(events))

    def get_local_events(self, tool: int, code: CodeType) -> int:
        return self.ours(self.real.get_local_events(tool, code))


def numbers() -> Iterator[int]:
    yield 1
    yield 2


def inner(env: Environment | None) -> list[int]:
    if env is not None:
        env.notify_frame_pop(None, 0)
    return list(numbers())


def program(env: Environment | None = None) -> int:
    for key in "ab":
        try:
            {"c": 1}.pop(key)
        except KeyError:
            inner(env)
    return len("abc")


def sent(vm: Host, event: Event | Extension) -> list[object]:
    """What comes of one event while the program runs."""
    log: list[object] = []

    def write(env: Environment, thread: threads.Thread, code: CodeType, *arguments: object) -> None:
        if code.co_filename == __file__ and code.co_name in ("program", "inner", "numbers"):
            log.append((code.co_name, *(argument for argument in arguments if isinstance(argument, (int, bool)))))

    env = vm.get_env()
    env.add_capabilities(env.get_potential_capabilities())
    if isinstance(event, Extension):
        env.set_extension_event_callback(event, write)
    else:
        env.set_event_callbacks({event: write})
        if event == STOP:
            location = [start for start, _ in env.get_line_number_table(inner.__code__)][-1]
            env.set_breakpoint(inner.__code__, location)
        env.set_event_notification_mode(True, event)
    try:
        program(env if event == Event.FRAME_POP else None)
    finally:
        env.dispose_environment()
    return log


@pytest.mark.parametrize("event", SENT, ids=lambda event: event.name)
def test_events_have_other_numbers_in_another_version(
    vm: Host, monkeypatch: pytest.MonkeyPatch, event: Event | Extension
) -> None:
    expected = sent(vm, event)
    assert expected
    renumbered = Renumbered(monitoring.monitoring)
    monkeypatch.setattr(monitoring, "monitoring", renumbered)
    assert sent(vm, event) == expected
    assert any(renumbered.asked), renumbered.asked


# -- threads that run already ------------------------------------------------------------------------


class Loop:
    """A thread that is within `run`, and stays there."""

    def __init__(self) -> None:
        self.ended = False
        self.rounds = 0
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.ended:
            self.rounds += 1
            self.leaf()

    def leaf(self) -> None:
        pass

    def __enter__(self) -> Loop:
        self.thread.start()
        wait_for(lambda: self.rounds > 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self.thread.join()


@pytest.mark.parametrize("event", [ENTRY, STEP, STOP], ids=lambda event: event.name)
def test_threads_that_run_already_are_reached(vm: Host, event: Event) -> None:
    """In code that they are within since before; and when it is switched off again, they are left alone."""
    seen: list[tuple[threads.Thread, CodeType]] = []
    env = vm.get_env()
    env.add_capabilities(env.get_potential_capabilities())

    def write(env: Environment, thread: threads.Thread, code: CodeType, *_: object) -> None:
        seen.append((thread, code))

    env.set_event_callbacks({event: write})
    with Loop() as loop:
        ident = loop.thread.ident
        there = next(each for each in env.get_all_threads() if each.ident == ident)
        code = (Loop.leaf if event == ENTRY else Loop.run).__code__
        if event == STOP:
            call = code.co_firstlineno + 3
            env.set_breakpoint(code, next(at for at, line in env.get_line_number_table(code) if line == call))
        env.set_event_notification_mode(True, event)
        wait_for(lambda: (there, code) in seen)
        env.set_event_notification_mode(False, event)
        rounds = loop.rounds
        wait_for(lambda: loop.rounds > rounds + 2)  # what was under way is over
        seen.clear()
        rounds = loop.rounds
        wait_for(lambda: loop.rounds > rounds + 100)
        assert seen == []


def test_of_threads_that_run_already_the_one_that_is_listened_to(vm: Host) -> None:
    """CPython has no mask of threads: all are instrumented, and one is told of."""
    seen: set[tuple[threads.Thread, CodeType]] = set()
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_GENERATE_SINGLE_STEP_EVENTS})
    env.set_event_callbacks({STEP: lambda env, thread, code, location: seen.add((thread, code))})
    with Loop() as one, Loop() as other:
        there = next(each for each in env.get_all_threads() if each.ident == one.thread.ident)
        env.set_event_notification_mode(True, STEP, there)
        wait_for(lambda: (there, Loop.run.__code__) in seen)
        rounds = other.rounds
        wait_for(lambda: other.rounds > rounds + 10)
        assert {thread for thread, _ in seen} == {there}
