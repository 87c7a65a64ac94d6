"""VMObjectAlloc and SampledObjectAlloc: what is told of new objects, when, and what never is."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.agents import live_vm
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.available_capabilities import TRACER, features
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.errors import MustPossessCapability, NotAvailable
from vmscope.tool.spec.events import Event

pytestmark = pytest.mark.skipif(TRACER not in features(), reason="PyRefTracer came with 3.13, and needs the GIL")

ALL = Capability.CAN_GENERATE_VM_OBJECT_ALLOC_EVENTS
SOME = Capability.CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS
EVERY, SAMPLED = Event.VM_OBJECT_ALLOC, Event.SAMPLED_OBJECT_ALLOC


@pytest.fixture
def vm() -> Iterator[Host]:
    with live_vm() as vm:
        yield vm
    assert native.tracer_holder() in ("", "tracemalloc")


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Collections here leave alone what a worker has collected: thousands of tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def env(vm: Host) -> Environment:
    env = vm.get_env(agent="allocations")
    env.add_capabilities({ALL, SOME})
    return env


@pytest.fixture
def before() -> int:
    """How many were lost in other tests."""
    return native.allocations_lost()


def during(env: Environment, event: Event, run: Callable[[], object], callback: Callable[..., object]) -> None:
    env.set_event_callbacks({event: callback})
    env.set_event_notification_mode(True, event)
    try:
        run()
    finally:
        env.set_event_notification_mode(False, event)


class Made:
    def __init__(self) -> None:
        self.text = str(id(self))


class Boxed:
    def __init__(self, value: int) -> None:
        self.value = [value]


def test_each_object_is_told_once(env: Environment, before: int) -> None:
    kept: list[Made] = []
    told: list[tuple[int, bool, bool, bool]] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if isinstance(thing, Made):
            told.append((id(thing), klass is Made, size >= 16, thread is threads.current()))

    def run() -> None:
        for _ in range(200):
            kept.append(Made())
        kept.extend(Made() for _ in range(200))

    during(env, EVERY, run, callback)
    assert [number for number, *_ in told] == [id(each) for each in kept]  # in the order of their making
    assert {tuple(rest) for _, *rest in told} == {(True, True, True)}
    assert native.allocations_lost() == before


def test_what_c_code_is_still_filling_is_told_when_it_is_full(env: Environment) -> None:
    """tuple(generator) would fail if anybody else had it before it is done."""
    told: list[tuple[object, ...]] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if klass is tuple:
            told.append(thing)  # type: ignore[arg-type]
            repr(thing)

    made: list[tuple[object, ...]] = []

    def run() -> None:
        for count in (3, 30, 300):
            made.append(tuple([each] for each in range(count)))
        made.append(tuple(map(Boxed, range(50))))

    during(env, EVERY, run, callback)
    assert [len(each) for each in made] == [3, 30, 300, 50]
    assert [each for each in made if not any(each is known for known in told)] == []


def test_nothing_is_kept_alive_and_what_has_gone_is_not_told(env: Environment) -> None:
    events: list[str] = []

    class Short:
        def __del__(self) -> None:
            events.append("gone")

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if klass is Short:
            events.append("told")

    def run() -> None:
        for _ in range(50):
            Short()
            events.append("next")

    during(env, EVERY, run, callback)
    gone = [at for at, each in enumerate(events) if each == "gone"]
    assert len(gone) == events.count("next") == 50
    assert [at for at in gone if events[at + 1] != "next"] == []  # at once, as ever
    gc.collect()


def test_memory_that_is_used_again_and_moved(env: Environment) -> None:
    """Floats from a free list, strings and tuples that grow in place: all that is told is alive and of its class."""
    wrong: list[object] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if type(thing) is not klass or sys.getrefcount(thing) < 2:
            wrong.append((klass, size))
        if klass in (str, bytes, float, int, tuple, list, dict):
            hash(repr(thing))

    def run() -> None:
        value = 1.5
        text = ""
        for number in range(3000):
            value = value * 1.0001 + number
            text += str(number)
            bytes(number % 50) + b"x"
            tuple(iter([number, value]))
            {str(number): [value]}
        assert len(text) == 10890

    during(env, EVERY, run, callback)
    assert wrong == []


def test_a_text_that_somebody_is_still_writing(env: Environment) -> None:
    """io.StringIO moves its str as it grows, whoever else has it: so no str is told."""
    told: list[object] = []
    texts: list[str] = []

    def run() -> None:
        for _ in range(20):
            text = io.StringIO()
            for number in range(500):
                text.write(str(number))
            texts.append(text.getvalue())

    during(env, EVERY, run, lambda env, thread, thing, klass, size: told.append(thing))
    assert texts == ["".join(map(str, range(500)))] * 20
    assert sum(type(each) is io.StringIO for each in told) == 20
    assert str not in map(type, told)


def test_what_callbacks_and_vmscope_make_is_not_told(vm: Host, env: Environment) -> None:
    depth = 0
    deepest = 0

    class Own:
        pass

    told: list[type] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        told.append(klass)
        Own()
        vm.wanted()
        depth -= 1

    kept: list[Made] = []

    def run() -> None:
        kept.extend([Made() for _ in range(20)])  # the list goes, which has what has become whole told, if it was not

    during(env, EVERY, run, callback)
    assert deepest == 1
    assert Own not in told
    assert told.count(Made) == 20


class Watched:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1


OTHERS = (
    Event.EXCEPTION,
    Event.EXCEPTION_CATCH,
    Event.METHOD_ENTRY,
    Event.METHOD_EXIT,
    Event.FIELD_ACCESS,
    Event.FIELD_MODIFICATION,
    Event.CLASS_LOAD,
    Event.THREAD_START,
    Event.GARBAGE_COLLECTION_START,
)


@pytest.mark.parametrize("other", OTHERS, ids=lambda event: event.name)
@pytest.mark.parametrize("event", [EVERY, SAMPLED], ids=lambda event: event.name)
def test_other_events_make_it_no_dearer(env: Environment, event: Event, other: Event) -> None:
    """Counted in calls of the evaluation loop: what another event's callback runs asks for none, and is not told."""

    class Own:
        pass

    own: list[Own] = []
    told: list[type] = []
    env.add_capabilities({*env.get_potential_capabilities()})
    env.set_heap_sampling_interval(0)
    env.set_field_access_watch(Watched, "value")
    env.set_field_modification_watch(Watched, "value")

    def heard(*arguments: object) -> None:
        own.extend(Own() for _ in range(50))

    def made(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        told.append(klass)

    def work() -> None:
        for number in range(5):
            watched = Watched()
            try:
                raise KeyError(number)
            except (IndexError, KeyError):
                watched.value += 1
            exec("class Empty: pass")
            threading.Thread(target=Made).start()
            gc.collect()

    env.set_event_callbacks({event: made, other: heard})
    env.set_event_notification_mode(True, event)
    before = native.allocations_served()
    work()
    alone = native.allocations_served() - before
    env.set_event_notification_mode(True, other)
    before = native.allocations_served()
    work()
    both = native.allocations_served() - before
    assert len(own) >= 5 * 50
    assert Own not in told
    assert told.count(Watched) == 10
    assert both < 2 * alone


def test_what_is_made_as_others_trace_is_told_when_they_have_done(env: Environment) -> None:
    told: list[type] = []

    def traced(frame: object, event: str, argument: object) -> Any:
        for _ in range(100):
            str(event)
        return traced

    def work() -> None:
        for _ in range(10):
            kept.append(Made())
        str(kept)

    kept: list[Made] = []
    before = native.allocations_served()
    had = sys.gettrace()

    def run() -> None:
        sys.settrace(traced)
        try:
            work()
        finally:
            sys.settrace(had)

    during(env, EVERY, run, lambda env, thread, thing, klass, size: told.append(klass))
    assert told.count(Made) == 10
    assert native.allocations_served() - before < 300


def test_samples_come_by_bytes(env: Environment) -> None:
    told: list[int] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if klass is bytes:
            told.append(size)

    def run(count: int) -> None:
        kept = [bytes(10_000) for _ in range(count)]
        assert len(kept) == count

    env.set_heap_sampling_interval(100_000)
    during(env, SAMPLED, lambda: run(5000), callback)
    assert 350 < len(told) < 650  # 500 expected
    assert set(told) == {10_033}
    told.clear()
    env.set_heap_sampling_interval(0)
    during(env, SAMPLED, lambda: run(50), callback)
    assert len(told) == 50


def test_samples_come_by_bytes_each_time_that_they_are_switched_on(env: Environment) -> None:
    kept: list[list[int]] = []
    told: list[int] = []
    env.set_heap_sampling_interval(10_000)
    for _ in range(6):
        for event in (EVERY, SAMPLED):
            told.clear()
            during(
                env,
                event,
                lambda: kept.extend([number] for number in range(1000)),
                lambda env, thread, thing, klass, size: told.append(size),
            )
        assert len(told) < 100


def test_samples_of_one_thread(env: Environment) -> None:
    told: list[threads.Thread] = []
    ready, go = threading.Event(), threading.Event()
    others: list[threads.Thread] = []
    kept: list[Made] = []
    env.set_heap_sampling_interval(0)
    env.set_event_callbacks({SAMPLED: lambda env, thread, *_: told.append(thread)})

    def run() -> None:
        others.append(threads.current())
        ready.set()
        go.wait(10)
        kept.extend([Made() for _ in range(100)])

    other = threading.Thread(target=run)
    other.start()
    assert ready.wait(10)
    env.set_event_notification_mode(True, SAMPLED, others[0])
    go.set()
    kept.extend([Made() for _ in range(1000)])
    other.join(10)
    for _ in range(3):
        kept.append(Made())
    assert len(told) >= 100
    assert set(told) == {others[0]}


def test_threads_that_all_make_objects(env: Environment) -> None:
    told: dict[threads.Thread, int] = {}

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        if klass is Made:
            told[thread] = told.get(thread, 0) + 1

    kept: list[Made] = []

    def work() -> None:
        threads.current()
        kept.extend([Made() for _ in range(300)])

    def run() -> None:
        workers = [threading.Thread(target=work) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        for _ in range(3):  # what a thread made last is told by whoever comes next
            [object() for _ in range(3)]

    during(env, EVERY, run, callback)
    assert list(told.values()) == [300] * 6


def test_a_callback_that_raises_harms_nobody(env: Environment, caplog: pytest.LogCaptureFixture) -> None:
    def callback(*_: object) -> None:
        raise ZeroDivisionError

    during(env, EVERY, lambda: [Made() for _ in range(50)], callback)
    assert "10 times in a row" in caplog.text


def test_it_needs_the_capability(vm: Host) -> None:
    env = vm.get_env()
    for event in (EVERY, SAMPLED):
        with pytest.raises(MustPossessCapability):
            env.set_event_notification_mode(True, event)
    with pytest.raises(MustPossessCapability):
        env.set_heap_sampling_interval(1)
    env.add_capabilities({ALL})
    other = vm.get_env()
    assert ALL not in other.get_potential_capabilities()
    with pytest.raises(NotAvailable):
        other.add_capabilities({ALL})


def test_while_tracemalloc_traces_it_is_not_available(vm: Host, caplog: pytest.LogCaptureFixture) -> None:
    env = vm.get_env(agent="allocations")
    tracemalloc.start()
    try:
        assert not {ALL, SOME} & set(env.get_potential_capabilities())
        with pytest.raises(NotAvailable, match="held by tracemalloc"):
            env.add_capabilities({SOME})
        assert "agent allocations" in caplog.text
        assert len(tracemalloc.take_snapshot().traces) > 0
    finally:
        tracemalloc.stop()
    env.add_capabilities({ALL, SOME})  # though 3.13.0 leaves tracemalloc's tracer in its place


def test_tracemalloc_starts_and_stops_in_the_middle(env: Environment) -> None:
    told: list[type] = []

    def callback(env: Environment, thread: threads.Thread, thing: object, klass: type, size: int) -> None:
        told.append(klass)

    def run() -> None:
        tracemalloc.start()
        kept = [Made() for _ in range(100)]
        assert tracemalloc.get_object_traceback(kept[0]) is not None
        tracemalloc.stop()

    during(env, EVERY, run, callback)
    told.clear()
    kept = [Made() for _ in range(100)]
    during(env, EVERY, lambda: kept.extend([Made() for _ in range(100)]), callback)
    assert told.count(Made) == 100


def test_what_c_code_keeps_is_not_looked_at_again_each_time(env: Environment, before: int) -> None:
    """The decoder calls back 10,000 times, with all that it has made so far still in its hands."""
    told: list[type] = []
    text = json.dumps([{"a": [number]} for number in range(10_000)])
    during(
        env,
        EVERY,
        lambda: json.loads(text, object_hook=lambda each: Boxed(len(each))),
        lambda env, thread, thing, klass, size: told.append(klass),
    )
    assert told.count(Boxed) == 10_000
    assert native.allocations_lost() == before


def test_what_another_greenlet_is_still_filling(env: Environment) -> None:
    """Its frames are not on the thread's stack while it waits, and its tuple is not done."""
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()
    told: list[object] = []

    def items() -> Iterator[list[int]]:
        for number in range(10):
            main.switch()
            yield [number]

    made: list[tuple[list[int], ...]] = []
    lets = [greenlet.greenlet(lambda: made.append(tuple(items()))) for _ in range(10)]

    def run() -> None:
        for _ in range(11):
            for each in lets:
                each.switch()
            [object() for _ in range(5)]

    during(env, EVERY, run, lambda env, thread, thing, klass, size: told.append(thing))
    assert [len(each) for each in made] == [10] * 10
    assert sum(each == [0] for each in told) == 10


def deep(kept: list[Made]) -> None:
    kept.append(Made())
    deep(kept)


def deep_in_c(kept: list[Made]) -> None:
    kept.append(Made())
    list(map(deep_in_c, [kept]))


@pytest.mark.parametrize(("recurse", "limit"), [(deep, 1000), (deep_in_c, 1_000_000)], ids=["Python's", "C's"])
def test_a_stack_without_room_for_a_callback(
    env: Environment, monkeypatch: pytest.MonkeyPatch, recurse: Callable[[list[Made]], None], limit: int
) -> None:
    told: list[object] = []
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    before = sys.getrecursionlimit()

    def run() -> None:
        kept: list[Made] = []
        sys.setrecursionlimit(limit)
        try:
            with pytest.raises(RecursionError):
                recurse(kept)
        finally:
            sys.setrecursionlimit(before)
        [object() for _ in range(5)]
        # The last one may have been made where there was no room to keep it.
        assert len([each for each in told if type(each) is Made]) - len(kept) in (0, 1)

    during(env, EVERY, run, lambda env, thread, thing, klass, size: told.append(thing))
    assert unraisable == []


class Asking:
    def __init__(self) -> None:
        self.answer = native.traces_allocations()


def test_it_can_be_had_while_an_object_is_made() -> None:
    """A call of a class that the interpreter has specialized has a frame of its own, which Python does not show."""
    assert [number for number in range(100) if not Asking().answer] == []


OBJECTS = 2  # PYMEM_DOMAIN_OBJ


class Allocator(ctypes.Structure):
    """PyMemAllocatorEx: a context and four functions."""

    _fields_ = [("members", ctypes.c_void_p * 5)]


def test_an_allocator_that_takes_ours_out_as_it_goes() -> None:
    """What is freed then is not heard of, so that nothing that was noted before can be told."""
    told: list[object] = []
    theirs = Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(OBJECTS, ctypes.byref(theirs))
    native.trace_allocations(lambda thing, *_: told.append(type(thing)), "/nowhere/", True, -1)
    try:
        ctypes.pythonapi.PyMem_SetAllocator(OBJECTS, ctypes.byref(theirs))  # as tracemalloc does when it stops
        for number in range(1000):
            value = number * 1.5
            [value, bytes(number % 30)]
        kept = [Made() for _ in range(100)]
        assert told.count(Made) == len(kept)
    finally:
        native.stop_tracing()
