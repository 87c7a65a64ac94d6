"""Stacks and local variables, of the calling thread and of others."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType

import pytest

from tests.support import PATIENCE
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.functions.local_variables import WRITABLE
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import (
    IllegalArgument,
    InvalidSlot,
    InvalidThread,
    MustPossessCapability,
    NoMoreFrames,
    OpaqueFrame,
    ThreadNotAlive,
    ToolError,
    TypeMismatch,
)
from vmscope.tool.spec.events import Event


@pytest.fixture
def env() -> Environment:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_ACCESS_LOCAL_VARIABLES})
    return env


class Deep:
    """A thread that stands still, some frames deep."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.inside = threading.Event()
        self.result: object = None
        self.python = threading.Thread(target=self.outer, daemon=True)
        self.python.start()
        assert self.inside.wait(PATIENCE)
        self.thread = next(each for each in threads.living() if each.ident == self.python.ident)
        end = time.monotonic() + PATIENCE
        before: object = None
        while True:
            frame = sys._current_frames()[self.thread.ident]
            # Once it has let go of the condition's lock, only the wait itself is left.
            now = walked(frame) if "saved_state" in frame.f_locals else None
            if now is not None and now == before:
                break
            assert time.monotonic() < end
            before = now
            time.sleep(0.02)  # a thread that runs goes on

    def outer(self) -> None:
        self.result = self.descend(5, 0.5, "text")

    def descend(self, left: int, half: float, text: str) -> object:
        if left:
            return self.descend(left - 1, half, text)
        huge, nothing, flag = 1 << 40, None, True
        self.wait()
        return left, half, text, huge, nothing, flag

    def wait(self) -> None:
        self.inside.set()
        self.over.wait(PATIENCE)

    def end(self) -> None:
        self.over.set()
        self.python.join(PATIENCE)


@pytest.fixture
def deep() -> Iterator[Deep]:
    deep = Deep()
    yield deep
    deep.end()


def walked(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    """What Python itself says of a stack, from a frame down."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def names(frames: Sequence[tuple[CodeType, int]]) -> list[str]:
    return [code.co_name for code, _ in frames]


DEEP = ["wait", *["descend"] * 6, "outer"]


# -- stacks -----------------------------------------------------------------------------------------


def test_the_calling_thread_s_stack_is_that_of_its_frames(env: Environment) -> None:
    ours, theirs = walked(sys._getframe()), env.get_stack_trace(None, 0, 1000)
    assert [code for code, _ in theirs] == [code for code, _ in ours]
    assert [at for _, at in theirs[1:]] == [at for _, at in ours[1:]]
    assert env.get_frame_count() == env.get_frame_count(threads.current()) == len(ours)
    assert env.get_frame_location(None, 1) == ours[1]
    assert env.get_frame_location(None, 0).method is test_the_calling_thread_s_stack_is_that_of_its_frames.__code__


def test_another_thread_s_stack(env: Environment, deep: Deep) -> None:
    frames = env.get_stack_trace(deep.thread, 0, 1000)
    assert frames == walked(sys._current_frames()[deep.thread.ident])
    assert names(frames)[2 : 2 + len(DEEP)] == DEEP
    assert env.get_frame_location(deep.thread, 3) == frames[3]
    assert env.get_frame_count(deep.thread) == len(frames)


def test_a_part_of_a_stack(env: Environment, deep: Deep) -> None:
    frames = env.get_stack_trace(deep.thread, -8, 1000)
    count = len(frames)
    assert count == 8
    assert env.get_stack_trace(deep.thread, -1, 5) == frames[-1:]
    assert env.get_stack_trace(deep.thread, -3, 2) == frames[-3:-1]
    assert env.get_stack_trace(deep.thread, 2, 0) == []
    whole = env.get_frame_count()
    assert env.get_stack_trace(None, whole - 1, 5) == env.get_stack_trace(None, -1, 1)
    for depth in (whole, whole + 1, -whole - 1, 1 << 30):
        with pytest.raises(IllegalArgument):
            env.get_stack_trace(None, depth, 5)
    with pytest.raises(IllegalArgument):
        env.get_stack_trace(None, 0, -1)
    for depth in (whole, 1 << 30):
        with pytest.raises(NoMoreFrames):
            env.get_frame_location(None, depth)
    with pytest.raises(IllegalArgument):
        env.get_frame_location(None, -1)


def test_all_stacks_at_once(env: Environment, deep: Deep) -> None:
    stacks = {stack.thread: stack for stack in env.get_all_stack_traces(1000)}
    assert list(stacks) == env.get_all_threads()
    assert stacks[deep.thread].frames == walked(sys._current_frames()[deep.thread.ident])
    here = stacks[threads.current()]
    assert here.frames[0].method is test_all_stacks_at_once.__code__
    assert here.state == env.get_thread_state(None)
    listed = env.get_thread_list_stack_traces([deep.thread, threads.current(), deep.thread], 2)
    assert [stack.thread for stack in listed] == [deep.thread, threads.current(), deep.thread]
    assert [len(stack.frames) for stack in listed] == [2, 2, 2]
    assert [stack.frames for stack in env.get_thread_list_stack_traces([deep.thread], 0)] == [[]]
    deep.end()
    [ended] = env.get_thread_list_stack_traces([deep.thread], 5)
    assert (ended.state, ended.frames) == (env.get_thread_state(deep.thread), [])
    for wrong in (None, deep.python, 3):
        with pytest.raises(InvalidThread):
            env.get_thread_list_stack_traces([wrong], 5)  # type: ignore[list-item]


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin reads the stacks one after the other")
def test_stacks_are_of_one_moment(env: Environment) -> None:
    """Two threads, of which at each moment at most one is within `alone`."""
    lock, over = threading.Lock(), threading.Event()

    def alone() -> int:
        return sum(number for number in range(200))

    def work() -> None:
        while not over.is_set():
            with lock:
                alone()

    working = [threading.Thread(target=work) for _ in range(2)]
    for thread in working:
        thread.start()
    seen: set[int] = set()
    deadline = time.monotonic() + PATIENCE
    while len(seen) < 2 and time.monotonic() < deadline:
        within = [
            sum(frame.method is alone.__code__ for frame in stack.frames) for stack in env.get_all_stack_traces(10)
        ]
        assert sum(within) <= 1
        seen.add(sum(within))
    over.set()
    for thread in working:
        thread.join(PATIENCE)
    assert seen == {0, 1}


def test_within_a_callback_the_stack_is_the_program_s(env: Environment) -> None:
    seen: list[object] = []

    def on_dump(environment: Environment) -> None:
        seen.append(environment.get_frame_location(None, 0).method)
        seen.append(environment.get_frame_count())

    env.set_event_callbacks({Event.DATA_DUMP_REQUEST: on_dump})
    env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)

    def program() -> None:
        env.host.post(Event.DATA_DUMP_REQUEST)

    program()
    assert seen == [program.__code__, len(walked(sys._getframe())) + 1]


@pytest.mark.flaky(
    condition=native.IMPLEMENTATION == "python",
    reason="the twin knows a thread by its ident, which another thread of this process may have by the next look",
)
def test_a_thread_that_ended_has_no_stack(env: Environment, deep: Deep) -> None:
    deep.end()
    assert not deep.thread.alive, (deep.thread.state, native.thread_states(), threading.enumerate())
    calls: list[Callable[[Thread], object]] = [
        env.get_frame_count,
        lambda thread: env.get_frame_location(thread, 0),
        lambda thread: env.get_stack_trace(thread, 0, 1),
        lambda thread: env.get_local_object(thread, 0, 0),
        lambda thread: env.get_local_instance(thread, 0),
        lambda thread: env.set_local_int(thread, 0, 0, 1),
    ]
    for call in calls:
        with pytest.raises(ThreadNotAlive):
            call(deep.thread)
        with pytest.raises(InvalidThread):
            call(deep.python)  # type: ignore[arg-type]


# -- local variables --------------------------------------------------------------------------------


def depth_of(env: Environment, deep: Deep, name: str) -> int:
    return names(env.get_stack_trace(deep.thread, 0, 100)).index(name)


def slot(name: str) -> int:
    return Deep.descend.__code__.co_varnames.index(name)


def test_variables_of_another_thread(env: Environment, deep: Deep) -> None:
    def get(function: Callable[[Thread, int, int], object], name: str) -> object:
        return function(deep.thread, depth_of(env, deep, "descend"), slot(name))

    assert get(env.get_local_object, "self") is deep
    assert get(env.get_local_object, "text") == "text"
    assert get(env.get_local_object, "nothing") is None
    assert get(env.get_local_int, "left") == 0
    assert get(env.get_local_int, "flag") is True
    assert get(env.get_local_long, "huge") == 1 << 40
    assert (get(env.get_local_float, "half"), get(env.get_local_double, "half")) == (0.5, 0.5)
    wrong: list[tuple[Callable[[Thread, int, int], object], str]] = [
        (env.get_local_int, "huge"),
        (env.get_local_int, "half"),
        (env.get_local_long, "text"),
        (env.get_local_float, "left"),
        (env.get_local_double, "nothing"),
    ]
    for function, name in wrong:
        with pytest.raises(TypeMismatch):
            get(function, name)


def test_slots_and_depths_that_there_are_not(env: Environment) -> None:
    unset: object
    values = [1]
    if not values:
        unset = 1
    own = test_slots_and_depths_that_there_are_not.__code__
    slots = [*own.co_varnames, *own.co_cellvars]
    assert env.get_local_object(None, 0, slots.index("values")) is values
    for number in (-1, len(slots), slots.index("unset"), 1 << 30):
        with pytest.raises(InvalidSlot):
            env.get_local_object(None, 0, number)
    calls: list[Callable[[None, int, int], object]] = [
        env.get_local_object,
        env.get_local_int,
        lambda thread, depth, slot: env.set_local_int(thread, depth, slot, 1),
    ]
    for call in calls:
        with pytest.raises(IllegalArgument):
            call(None, -1, 0)
        with pytest.raises(NoMoreFrames):
            call(None, 100_000, -1)
    if values != [1]:
        print(unset)


def test_cells_and_free_variables(env: Environment) -> None:
    shared = ["shared"]

    def inner() -> object:
        assert shared
        code = sys._getframe().f_code
        return env.get_local_object(None, 0, code.co_nlocals + code.co_freevars.index("shared"))

    assert inner() is shared


class Base:
    def method(self, env: Environment) -> object:
        return env.get_local_instance(None, 0)

    @property
    def value(self) -> object:
        return self.env.get_local_instance(None, 0)

    env: Environment

    @staticmethod
    def static(first: object, env: Environment) -> object:
        return env.get_local_instance(None, 0)

    @classmethod
    def of_class(cls, env: Environment) -> object:
        return env.get_local_instance(None, 0)


class Derived(Base):
    pass


def test_the_instance_of_a_method(env: Environment) -> None:
    made = Derived()
    made.env = env
    assert made.method(env) is made
    assert made.value is made

    def function(thing: object) -> object:
        return env.get_local_instance(None, 0)

    wrong: list[Callable[[], object]] = [
        lambda: function(made),
        lambda: Base.static(made, env),
        lambda: Derived.of_class(env),
        lambda: env.get_local_instance(None, 0),
    ]
    for call in wrong:
        with pytest.raises(InvalidSlot):
            call()
    with pytest.raises(NoMoreFrames):
        env.get_local_instance(None, 100_000)


@pytest.mark.skipif(not WRITABLE, reason="variables can be written to since 3.13")
def test_variables_are_written_to(env: Environment, deep: Deep) -> None:
    def put(function: Callable[..., None], name: str, value: object) -> None:
        function(deep.thread, depth_of(env, deep, "descend"), slot(name), value)

    put(env.set_local_int, "left", 7)
    put(env.set_local_double, "half", 2)
    put(env.set_local_object, "text", ["another"])
    put(env.set_local_long, "huge", 1 << 50)
    put(env.set_local_object, "nothing", deep)
    put(env.set_local_object, "flag", None)
    errors: list[tuple[Callable[..., None], str, object, type[ToolError]]] = [
        (env.set_local_int, "half", 1, TypeMismatch),
        (env.set_local_float, "left", 1.0, TypeMismatch),
        (env.set_local_long, "text", 1, TypeMismatch),
        (env.set_local_int, "left", 1 << 31, IllegalArgument),
        (env.set_local_double, "half", "1", IllegalArgument),
    ]
    for function, name, value, error in errors:
        with pytest.raises(error):
            put(function, name, value)
    deep.end()
    assert deep.result == (7, 2.0, ["another"], 1 << 50, deep, None)


@pytest.mark.skipif(WRITABLE, reason="variables can be written to since 3.13")
def test_where_they_cannot_be_written_to_every_frame_is_opaque(env: Environment) -> None:
    for function in (env.set_local_object, env.set_local_int, env.set_local_double):
        with pytest.raises(OpaqueFrame):
            function(None, 0, 0, 1)
        with pytest.raises(NoMoreFrames):
            function(None, 100_000, 0, 1)


def test_the_capability_is_needed(env: Environment) -> None:
    env.relinquish_capabilities({Capability.CAN_ACCESS_LOCAL_VARIABLES})
    for name in ("get_local_object", "get_local_int", "get_local_instance", "set_local_object", "set_local_double"):
        with pytest.raises(MustPossessCapability):
            getattr(env, name)(None, 0, *[0, 0, 0][: 3 if name.startswith("set") else 2])
