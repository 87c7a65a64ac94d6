"""Events of running code, by sys.monitoring: what is sent, in which order, and what never reaches the program."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import CodeType
from typing import Any

import pytest

from tests.agents import live_vm
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.functions.extensions import Extension
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.sources import exception_handlers
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.errors import Duplicate, InvalidEnvironment, InvalidLocation, NoMoreFrames, NotFound
from vmscope.tool.spec.events import KINDS, Event

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")

ENTRY, EXIT = Event.METHOD_ENTRY, Event.METHOD_EXIT
THROWN, CAUGHT = Event.EXCEPTION, Event.EXCEPTION_CATCH
STEP, STOP, POP = Event.SINGLE_STEP, Event.BREAKPOINT, Event.FRAME_POP
monitoring: Any = getattr(sys, "monitoring", None)


@pytest.fixture
def vm() -> Iterator[Host]:
    """A VM in LIVE; nothing of it is left when the test ends."""
    before = tools()
    with live_vm() as vm:
        yield vm
    assert tools() == before


def tools() -> list[str | None]:
    return [monitoring.get_tool(number) for number in range(6)]


class Agent:
    """An environment that writes down what it is sent of the functions below, by name."""

    def __init__(self, vm: Host, *events: Event, name: str = "agent", log: list[Any] | None = None) -> None:
        self.name = name
        self.log: list[Any] = [] if log is None else log
        self.env = vm.get_env(agent=name)
        self.env.add_capabilities(self.env.get_potential_capabilities() - solo() | needed(events))
        self.callbacks: dict[Event, Callable[..., object]] = {event: self.writer(event) for event in events}
        self.env.set_event_callbacks(self.callbacks)
        self.on(*events)

    def writer(self, event: Event) -> Callable[..., object]:
        def write(env: Environment, thread: threads.Thread, *arguments: object) -> None:
            assert env is self.env
            self.seen(event, thread, arguments)

        return write

    def seen(self, event: Event, thread: threads.Thread, arguments: tuple[object, ...]) -> None:
        code = arguments[0]
        assert isinstance(code, CodeType)
        if code.co_filename == __file__ and thread is threads.current():
            shown = tuple(each.co_name if isinstance(each, CodeType) else each for each in arguments)
            self.log.append((event.name, *shown))

    def on(self, *events: Event, thread: threads.Thread | None = None) -> None:
        for event in events:
            self.env.set_event_notification_mode(True, event, thread)

    def off(self, *events: Event) -> None:
        for event in events:
            self.env.set_event_notification_mode(False, event)

    def during(self, run: Callable[[], object]) -> list[Any]:
        """What comes while this runs, of what it calls."""
        self.log.clear()
        try:
            run()
        finally:
            log = self.log[:]
        return [line for line in log if not {"during", "off", "on"} & set(map(str, line))]


def solo() -> set[Capability]:
    return {
        Capability.CAN_GENERATE_BREAKPOINT_EVENTS,
        Capability.CAN_SUSPEND,
        Capability.CAN_GENERATE_FIELD_MODIFICATION_EVENTS,
        Capability.CAN_GENERATE_FIELD_ACCESS_EVENTS,
    }


def needed(events: tuple[Event, ...]) -> set[Capability]:
    found = (KINDS[event].capability for event in events)
    return {Capability(capability) for capability in found if capability is not None}


# -- what runs in the tests ------------------------------------------------------------------------


def leaf(value: int = 1) -> int:
    return value


def outer() -> int:
    return leaf(2)


def recursive(depth: int) -> int:
    return recursive(depth - 1) if depth else 0


def throws() -> None:
    raise KeyError("x")


def passes() -> None:
    try:
        throws()
    except ValueError:
        raise
    finally:
        leaf()


def catches() -> int:
    try:
        passes()
    except (TypeError, LookupError):
        return 3
    return 4


def generator() -> Iterator[int]:
    yield 1
    yield 2


def entries(*names: str) -> list[tuple[str, str]]:
    return [("METHOD_ENTRY", name) for name in names]


# -- entry and exit --------------------------------------------------------------------------------


def test_calls_and_their_ends(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)
    assert agent.during(outer) == [
        ("METHOD_ENTRY", "outer"),
        ("METHOD_ENTRY", "leaf"),
        ("METHOD_EXIT", "leaf", False, 2),
        ("METHOD_EXIT", "outer", False, 2),
    ]


def test_an_end_by_exception(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)
    assert agent.during(catches) == [
        ("METHOD_ENTRY", "catches"),
        ("METHOD_ENTRY", "passes"),
        ("METHOD_ENTRY", "throws"),
        ("METHOD_EXIT", "throws", True, None),
        ("METHOD_ENTRY", "leaf"),
        ("METHOD_EXIT", "leaf", False, 1),
        ("METHOD_EXIT", "passes", True, None),
        ("METHOD_EXIT", "catches", False, 3),
    ]


def test_recursion(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)
    lines = agent.during(lambda: recursive(100))
    assert [line for line in lines if line[1] == "recursive"] == entries(*["recursive"] * 101) + [
        ("METHOD_EXIT", "recursive", False, 0)
    ] * 101


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin gives no room near the limit of recursion")
def test_a_recursion_without_end(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)

    def endless() -> None:
        endless()

    def run() -> None:
        with pytest.raises(RecursionError):
            endless()

    lines = [line for line in agent.during(run) if line[1] == "endless"]
    began = lines.count(("METHOD_ENTRY", "endless"))
    assert began > 100
    assert lines.count(("METHOD_EXIT", "endless", True, None)) == began


def test_a_generator_is_one_call(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)
    assert agent.during(lambda: list(generator()))[1:-1] == [
        ("METHOD_ENTRY", "generator"),
        ("METHOD_EXIT", "generator", False, None),
    ]


def test_a_coroutine_is_one_call(vm: Host) -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return 5

    async def awaits() -> int:
        await asyncio.sleep(0)
        return await inner()

    agent = Agent(vm, ENTRY, EXIT)
    lines = agent.during(lambda: asyncio.run(awaits()))
    assert lines[1:-1] == [
        ("METHOD_ENTRY", "awaits"),
        ("METHOD_ENTRY", "inner"),
        ("METHOD_EXIT", "inner", False, 5),
        ("METHOD_EXIT", "awaits", False, 5),
    ]


def test_a_generator_that_an_exception_is_thrown_into(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)

    def run() -> None:
        made: Any = generator()
        next(made)
        with pytest.raises(KeyError):
            made.throw(KeyError)

    assert [line for line in agent.during(run) if line[1] == "generator"] == [
        ("METHOD_ENTRY", "generator"),
        ("METHOD_EXIT", "generator", True, None),
    ]


def cautious() -> Iterator[int]:
    try:
        yield 1
    finally:
        pass


def test_a_generator_that_is_abandoned(vm: Host) -> None:
    """CPython 3.13 drops one that stands at a yield with nothing to clean up, and says so to nobody."""
    agent = Agent(vm, ENTRY, EXIT)

    def abandons() -> None:
        next(cautious())
        next(generator())

    lines = [line for line in agent.during(abandons) if line[1] != "abandons"]
    assert lines[:3] == [
        ("METHOD_ENTRY", "cautious"),
        ("METHOD_EXIT", "cautious", True, None),
        ("METHOD_ENTRY", "generator"),
    ]
    assert lines[3:] == ([] if sys.version_info[:2] == (3, 13) else [("METHOD_EXIT", "generator", True, None)])


def test_only_on_one_thread(vm: Host) -> None:
    agent = Agent(vm)
    agent.env.set_event_callbacks({ENTRY: agent.writer(ENTRY)})
    other: list[threads.Thread] = []
    go, ready = threading.Event(), threading.Event()

    def run() -> None:
        other.append(threads.current())
        ready.set()
        go.wait(60)
        outer()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(60)
    agent.env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    agent.on(ENTRY, thread=other[0])
    assert agent.during(outer) == []

    def let_go() -> None:
        go.set()
        thread.join()

    assert agent.during(let_go) == entries("outer", "leaf")


def test_threads_at_once_lose_and_double_nothing(vm: Host) -> None:
    counts: dict[threads.Thread, list[int]] = {}

    def count(place: int) -> Callable[..., None]:
        def seen(env: Environment, thread: threads.Thread, method: CodeType, *_: object) -> None:
            if method is leaf.__code__:
                counts.setdefault(thread, [0, 0])[place] += 1

        return seen

    agent = Agent(vm, ENTRY, EXIT)
    agent.env.set_event_callbacks({ENTRY: count(0), EXIT: count(1)})
    other = Agent(vm)

    def run() -> None:
        for _ in range(2_000):
            leaf()

    made = [threading.Thread(target=run) for _ in range(4)]
    for thread in made:
        thread.start()
    while any(thread.is_alive() for thread in made):  # while somebody else comes and goes
        other.env.set_event_callbacks({ENTRY: lambda *_: None})
        other.on(ENTRY)
        other.off(ENTRY)
    for thread in made:
        thread.join()
    assert list(counts.values()) == [[2_000, 2_000]] * 4


# -- environments, in their order -------------------------------------------------------------------


def test_environments_are_called_in_the_order_of_their_creation(vm: Host) -> None:
    log: list[Any] = []
    agents = [Agent(vm, name=name, log=log) for name in "abc"]

    def writer(name: str) -> Callable[..., None]:
        return lambda env, thread, method: log.append(name) if method is leaf.__code__ else None

    for agent in reversed(agents):  # the order in which they enable it does not matter
        agent.env.set_event_callbacks({ENTRY: writer(agent.name)})
        agent.on(ENTRY)
    leaf()
    assert log == ["a", "b", "c"]
    agents[1].env.dispose_environment()
    leaf()
    assert log == ["a", "b", "c", "a", "c"]


def test_one_tool_id_while_something_is_enabled(vm: Host) -> None:
    agents = [Agent(vm, name=name) for name in "ab"]
    assert "vmscope" not in tools()
    for agent in agents:
        agent.env.set_event_callbacks({ENTRY: lambda *_: None})
        agent.on(ENTRY)
    assert tools().count("vmscope") == 1
    number = tools().index("vmscope")
    assert monitoring.get_events(number) == monitoring.events.PY_START
    agents[0].off(ENTRY)
    assert tools().count("vmscope") == 1
    agents[1].env.set_event_callbacks(None)
    assert "vmscope" not in tools()
    assert monitoring_is_clean(number)


def monitoring_is_clean(number: int) -> bool:
    """That nothing is left of what an id's last holder registered."""
    monitoring.use_tool_id(number, "looks")
    try:
        names = ("PY_START", "PY_RETURN", "PY_UNWIND", "RAISE", "EXCEPTION_HANDLED", "INSTRUCTION", "LINE", "CALL")
        left = [monitoring.register_callback(number, getattr(monitoring.events, name), None) for name in names]
        return not monitoring.get_events(number) and left == [None] * len(names)
    finally:
        monitoring.free_tool_id(number)


def test_what_the_last_holder_of_the_id_left_is_cleaned(vm: Host) -> None:
    left: list[object] = []
    monitoring.use_tool_id(3, "careless")
    monitoring.register_callback(3, monitoring.events.PY_RETURN, lambda *arguments: left.append(arguments))
    monitoring.set_events(3, monitoring.events.PY_RETURN)
    monitoring.free_tool_id(3)
    agent = Agent(vm, ENTRY)
    assert monitoring.get_tool(3) == "vmscope"
    left.clear()
    assert agent.during(outer) == entries("outer", "leaf")
    assert left == []
    assert monitoring.get_events(3) == monitoring.events.PY_START


def test_every_id_is_taken(vm: Host, caplog: pytest.LogCaptureFixture) -> None:
    taken = [number for number in range(6) if monitoring.get_tool(number) is None]
    for number in taken:
        monitoring.use_tool_id(number, f"tool of {number}")
    try:
        agent = Agent(vm, ENTRY)
        assert agent.during(outer) == []
        (record,) = caplog.records
        assert "tool of 3" in record.getMessage()
    finally:
        for number in taken:
            monitoring.free_tool_id(number)
    agent.on(ENTRY)  # any change tries again
    assert agent.during(outer) == entries("outer", "leaf")


def test_beside_another_tool(vm: Host) -> None:
    """Each sees all of the program, and nothing of what the other's callbacks do."""
    seen: list[str] = []
    monitoring.use_tool_id(1, "other")
    monitoring.register_callback(1, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
    monitoring.set_events(1, monitoring.events.PY_START)
    try:
        agent = Agent(vm, ENTRY)
        seen.clear()
        lines = agent.during(outer)
        names = seen[:]
        assert lines == entries("outer", "leaf")
        assert [name for name in names if name != "<lambda>"][:3] == ["during", "outer", "leaf"]
        assert not {"write", "seen"} & set(names)
        agent.env.dispose_environment()
        seen.clear()
        outer()
        assert seen == ["outer", "leaf"]
    finally:
        monitoring.set_events(1, 0)
        monitoring.register_callback(1, monitoring.events.PY_START, None)
        monitoring.free_tool_id(1)


def test_the_interfaces_own_code_sends_nothing(vm: Host) -> None:
    names: list[str] = []
    agent = Agent(vm)
    agent.env.set_event_callbacks({ENTRY: lambda env, thread, method: names.append(method.co_filename)})
    agent.on(ENTRY)
    agent.env.get_phase()
    agent.env.get_potential_capabilities()
    agent.off(ENTRY)
    assert not [name for name in names if "/vmscope/" in name and "/tests/" not in name]


# -- callbacks that do what they should not -----------------------------------------------------------


def test_ten_in_a_row_disable_the_event(vm: Host, caplog: pytest.LogCaptureFixture) -> None:
    agent, good = Agent(vm, name="careless"), Agent(vm, ENTRY)
    calls: list[str] = []

    def raises(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        calls.append(method.co_name)
        raise ValueError("oops")

    agent.env.set_event_callbacks({ENTRY: raises})
    agent.on(ENTRY)
    with caplog.at_level(logging.ERROR):
        results = [leaf(number) for number in range(15)]
    assert results == list(range(15))
    assert len(calls) == 10
    assert good.log.count(("METHOD_ENTRY", "leaf")) == 15
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 10
    assert [message for message in messages if not ("careless" in message and "METHOD_ENTRY" in message)] == []
    assert "disabled" in messages[-1]
    agent.on(ENTRY)
    leaf()
    assert len(calls) > 10


@pytest.mark.parametrize("event", [ENTRY, EXIT, THROWN, CAUGHT, STEP])
def test_nothing_of_it_reaches_the_program(vm: Host, event: Event) -> None:
    agent = Agent(vm, event)

    def raises(*_: object) -> None:
        raise SystemExit("not for the program")

    agent.env.set_event_callbacks({event: raises})
    logging.disable()
    try:
        assert [catches() for _ in range(20)] == [3] * 20
    finally:
        logging.disable(logging.NOTSET)
    assert not agent.env.enabled


@pytest.mark.parametrize("event", [ENTRY, EXIT, THROWN, CAUGHT, STEP])
def test_disable_is_no_answer(vm: Host, event: Event) -> None:
    """For events that cannot be local CPython would raise ValueError into the program, and drop the callback."""
    count = 0

    def answers(*_: object) -> object:
        nonlocal count
        count += 1
        return monitoring.DISABLE

    agent = Agent(vm, event)
    agent.env.set_event_callbacks({event: answers})
    assert catches() == 3
    first = count
    assert first > 0
    assert catches() == 3
    assert count - first >= first // 2


def test_an_interrupt_in_a_callback_is_the_programs(vm: Host) -> None:
    agent = Agent(vm)

    def interrupted(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            raise KeyboardInterrupt

    agent.env.set_event_callbacks({ENTRY: interrupted})
    agent.on(ENTRY)
    with pytest.raises(KeyboardInterrupt):
        outer()
    assert agent.env.failures == {}


def test_what_a_signals_handler_raises_is_the_programs(vm: Host) -> None:
    """A handler runs wherever the main thread is, in an agent's callback too."""
    agent = Agent(vm)

    def signalled(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            signal.raise_signal(signal.SIGINT)

    def handler(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGINT, handler)
    try:
        agent.env.set_event_callbacks({ENTRY: signalled})
        agent.on(ENTRY)
        with pytest.raises(TimeoutError):
            outer()
        assert agent.env.failures == {}
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_callback_that_runs_code(vm: Host) -> None:
    agent = Agent(vm)

    def runs(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        agent.log.append(method.co_name)
        outer()

    agent.env.set_event_callbacks({ENTRY: runs})
    agent.on(ENTRY)
    outer()
    agent.off(ENTRY)
    assert agent.log[:2] == ["outer", "leaf"]


def test_a_callback_that_disposes_of_its_environment(vm: Host) -> None:
    first, last = Agent(vm), Agent(vm)
    calls: list[str] = []

    def ends(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            calls.append("first")
            env.dispose_environment()

    def counts(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            calls.append("last")

    first.env.set_event_callbacks({ENTRY: ends})
    last.env.set_event_callbacks({ENTRY: counts})
    first.on(ENTRY)
    last.on(ENTRY)
    leaf()
    leaf()
    assert calls == ["first", "last", "last"]
    with pytest.raises(InvalidEnvironment):
        first.env.get_capabilities()


def test_a_callback_that_disposes_of_another(vm: Host) -> None:
    first, last = Agent(vm), Agent(vm)
    calls: list[str] = []

    def ends(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__ and last.env in vm.environments:
            calls.append("first")
            last.env.dispose_environment()

    first.env.set_event_callbacks({ENTRY: ends})
    last.env.set_event_callbacks({ENTRY: lambda env, thread, method: calls.append("last")})
    first.on(ENTRY)
    last.on(ENTRY)
    calls.clear()
    leaf()
    leaf()
    assert calls == ["first"]


def test_a_callback_that_enables_and_disables(vm: Host) -> None:
    agent = Agent(vm, ENTRY)
    calls: list[str] = []

    def entered(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            calls.append("entry")
            env.set_event_notification_mode(True, EXIT)
            env.set_event_notification_mode(False, ENTRY)

    def left(env: Environment, thread: threads.Thread, method: CodeType, *_: object) -> None:
        calls.append(f"exit {method.co_name}")
        if method is outer.__code__:
            env.set_event_notification_mode(False, EXIT)

    agent.env.set_event_callbacks({ENTRY: entered, EXIT: left})
    outer()
    outer()
    assert calls == ["entry", "exit leaf", "exit outer"]


# -- exceptions -------------------------------------------------------------------------------------


def sent(lines: list[Any]) -> list[Any]:
    """Without locations and the exception itself."""
    return [tuple(each for each in line if isinstance(each, str | bool) or each is None) for line in lines]


def test_an_exception_is_thrown_once_and_caught_once(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)
    lines = agent.during(catches)
    assert sent(lines) == [("EXCEPTION", "throws", "catches"), ("EXCEPTION_CATCH", "catches")]
    assert lines[0][-1] == lines[1][2]  # where it was said to be caught, it was
    assert lines[0][3] is lines[1][3]


def test_an_exception_that_nobody_catches(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        passes()

    def start_and_join() -> None:
        thread.start()
        thread.join()

    thread = threading.Thread(target=run)
    threading.excepthook, hook = (lambda _: None), threading.excepthook
    try:
        lines = agent.during(start_and_join)
    finally:
        threading.excepthook = hook
    assert [line[:2] for line in sent(lines)] == [("EXCEPTION", "throws")]


def rethrows() -> None:
    try:
        throws()
    except KeyError:
        raise


def throws_it_again() -> None:
    try:
        throws()
    except KeyError as error:
        raise error


def throws_another() -> None:
    try:
        throws()
    except KeyError as error:
        raise ValueError from error


def replaces() -> None:
    try:
        throws()
    finally:
        raise ValueError


@pytest.mark.parametrize("function", [rethrows, throws_it_again, throws_another])
def test_what_is_thrown_again_is_caught_before(vm: Host, function: Callable[[], None]) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        try:
            function()
        except (KeyError, ValueError):
            pass

    name = function.__name__
    assert sent(agent.during(run)) == [
        ("EXCEPTION", "throws", name),
        ("EXCEPTION_CATCH", name),
        ("EXCEPTION", name, "run"),
        ("EXCEPTION_CATCH", "run"),
    ]


def test_a_finally_that_throws_another(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        try:
            replaces()
        except ValueError:
            pass

    assert sent(agent.during(run))[1:] == [("EXCEPTION", "replaces", "run"), ("EXCEPTION_CATCH", "run")]


def test_an_exception_within_a_finally(vm: Host) -> None:
    """The one in flight is not thrown again when another came and went meanwhile."""
    agent = Agent(vm, THROWN, CAUGHT)

    def interrupted() -> None:
        try:
            throws()
        finally:
            catches()

    def run() -> None:
        try:
            interrupted()
        except KeyError:
            pass

    assert sent(agent.during(run)) == [
        ("EXCEPTION", "throws", "run"),
        ("EXCEPTION", "throws", "catches"),
        ("EXCEPTION_CATCH", "catches"),
        ("EXCEPTION_CATCH", "run"),
    ]


def test_an_exception_of_c_code(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        try:
            int("x")
        except:  # noqa: E722
            pass

    lines = agent.during(run)
    assert sent(lines) == [("EXCEPTION", "run", "run"), ("EXCEPTION_CATCH", "run")]
    assert isinstance(lines[0][3], ValueError)


def test_an_exception_that_c_code_swallows(vm: Host) -> None:
    class Odd:
        def __getattr__(self, name: str) -> object:
            raise AttributeError(name)

    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        for _ in range(3):
            assert not hasattr(Odd(), "thing")

    assert [line[:2] for line in sent(agent.during(run))] == [("EXCEPTION", "__getattr__")] * 3


def test_only_frames_with_a_handler_are_asked_whether_they_catch(vm: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under many that have none, each exception that C code swallows would cost as much as all of them."""
    asked: list[CodeType] = []
    handlers_of = exception_handlers.handlers_of

    def counted(code: CodeType) -> exception_handlers.Handlers:
        asked.append(code)
        return handlers_of(code)

    class Odd:
        def __getattr__(self, name: str) -> object:
            raise AttributeError(name)

    def down(depth: int) -> bool:
        return down(depth - 1) if depth else hasattr(Odd(), "thing")

    def run() -> None:
        try:
            assert not down(100)
        except KeyError:
            raise

    agent = Agent(vm, THROWN)
    monkeypatch.setattr(exception_handlers, "handlers_of", counted)
    assert [line[:2] for line in sent(agent.during(run))] == [("EXCEPTION", "__getattr__")]
    assert run.__code__ in asked
    assert down.__code__ not in asked


@pytest.mark.parametrize("deep", [1, 5, 50])
def test_through_many_frames(vm: Host, deep: int) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def down(depth: int) -> None:
        with open("/dev/null", encoding="utf-8"):  # each frame has a handler that does not catch
            if depth:
                down(depth - 1)
            throws()

    def run() -> None:
        try:
            down(deep)
        except KeyError:
            pass

    assert sent(agent.during(run)) == [("EXCEPTION", "throws", "run"), ("EXCEPTION_CATCH", "run")]


def test_through_generators_and_coroutines(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def delegates() -> Iterator[int]:
        yield from yields()

    def yields() -> Iterator[int]:
        yield 1
        throws()

    async def awaits() -> None:
        await asyncio.sleep(0)
        throws()

    async def main() -> None:
        try:
            await awaits()
        except KeyError:
            pass

    def run() -> None:
        try:
            list(delegates())
        except KeyError:
            pass

    assert sent(agent.during(run)) == [("EXCEPTION", "throws", "run"), ("EXCEPTION_CATCH", "run")]
    assert sent(agent.during(lambda: asyncio.run(main()))) == [
        ("EXCEPTION", "throws", "main"),
        ("EXCEPTION_CATCH", "main"),
    ]


def test_an_exception_group(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        try:
            raise ExceptionGroup("both", [ValueError(), KeyError()])
        except* (ValueError, KeyError):
            pass

    lines = sent(agent.during(run))
    assert lines[0] == ("EXCEPTION", "run", "run")
    assert ("EXCEPTION_CATCH", "run") in lines


class Ends:
    """An iterator, also to be awaited, in Python: it ends by a `raise`."""

    def __init__(self, inner: Iterator[int] | None = None) -> None:
        self.inner = inner

    def __iter__(self) -> Ends:
        return self

    def __await__(self) -> Ends:
        return self

    def __next__(self) -> int:
        if self.inner is not None:
            return next(self.inner)
        raise StopIteration


class AsyncEnds:
    def __init__(self, inner: AsyncIterator[int] | None = None) -> None:
        self.inner = inner

    def __aiter__(self) -> AsyncEnds:
        return self

    async def __anext__(self) -> int:
        if self.inner is not None:
            return await anext(self.inner)
        raise StopAsyncIteration


def generates() -> Iterator[int]:
    yield 1
    yield 2


async def generates_later() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(0.001)  # a coroutine that gives way
    yield 2


def test_no_exception_of_loops_and_awaits_is_sent_that_nobody_raised(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)
    seen: list[object] = []

    def delegates() -> Iterator[int]:
        yield from Ends(iter([1, 2]))

    async def awaits() -> int:
        await asyncio.gather(asyncio.sleep(0.001), asyncio.sleep(0))  # a coroutine that gives way
        return await inner()

    async def inner() -> int:
        return 3

    async def main() -> None:
        seen.append(await awaits())
        seen.append([each async for each in generates_later()])
        async for each in AsyncEnds(generates_later()):
            seen.append(each)
        begun = generates_later()
        await anext(begun)
        await begun.aclose()  # type: ignore[attr-defined]

    def run() -> None:
        for each in generates():
            seen.append(each)
        for each in Ends(generates()):
            seen.append(each)
        seen.extend(delegates())
        begun = generates()
        next(begun)
        del begun
        asyncio.run(main())

    assert sent(agent.during(run)) == []
    assert seen == [1, 2, 1, 2, 1, 2, 3, [1, 2], 1, 2]


def test_what_a_program_raises_to_end_a_loop_is_sent_once(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def loops() -> None:
        for _ in Ends():
            pass

    def delegates() -> Iterator[int]:
        yield from Ends()

    async def waits() -> None:
        await Ends()  # type: ignore[misc]

    async def main() -> None:
        async for _ in AsyncEnds():
            pass
        await waits()

    def run() -> None:
        loops()
        for _ in delegates():
            pass
        asyncio.run(main())

    thrown = [("__next__", "loops"), ("__next__", "delegates"), ("__anext__", "main"), ("__next__", "waits")]
    # That it ends a `yield from` or an `await`, CPython 3.15 says to nobody.
    caught = [by for _, by in thrown if sys.version_info < (3, 15) or by not in ("delegates", "waits")]
    expected: list[tuple[str, ...]] = []
    for by, to in thrown:
        expected += [("EXCEPTION", by, to), *[("EXCEPTION_CATCH", to)] * (to in caught)]
    assert sent(agent.during(run)) == expected
    agent.off(THROWN)
    assert sent(agent.during(run)) == [("EXCEPTION_CATCH", name) for name in caught]


def test_an_iterators_end_that_the_program_catches(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def run() -> None:
        try:
            next(iter(()))
        except StopIteration:
            pass

    assert sent(agent.during(run)) == [("EXCEPTION", "run", "run"), ("EXCEPTION_CATCH", "run")]


def test_a_generator_that_looks_at_its_end(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def looks() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            pass

    def leaves() -> Iterator[int]:
        try:
            yield 1
        finally:
            len("")

    def run() -> None:
        for made in (looks, leaves):
            begun = made()
            next(begun)
            begun.close()  # type: ignore[attr-defined]

    assert sent(agent.during(run)) == [("EXCEPTION", "looks", "looks"), ("EXCEPTION_CATCH", "looks")]


def test_a_stop_iteration_that_becomes_an_error(vm: Host) -> None:
    agent = Agent(vm, THROWN, CAUGHT)

    def stops() -> Iterator[int]:
        yield 1
        raise StopIteration

    def run() -> None:
        try:
            for _ in stops():
                pass
        except RuntimeError:
            pass

    assert sent(agent.during(run)) == [
        ("EXCEPTION", "stops", None),
        ("EXCEPTION", "stops", "run"),
        ("EXCEPTION_CATCH", "run"),
    ]


def test_exceptions_are_not_kept_alive(vm: Host) -> None:
    class Weak(Exception):
        pass

    gone: list[bool] = []

    class Held:
        def __del__(self) -> None:
            gone.append(True)

    agent = Agent(vm, THROWN, CAUGHT)
    agent.env.set_event_callbacks({THROWN: lambda *_: None, CAUGHT: lambda *_: None})

    def run() -> None:
        try:
            error = Weak()
            error.held = Held()  # type: ignore[attr-defined]
            raise error
        except Weak:
            del error

    run()
    assert gone == [True]


# -- steps and breakpoints ---------------------------------------------------------------------------


def test_steps(vm: Host) -> None:
    agent = Agent(vm, STEP, ENTRY)
    agent.env.set_event_callbacks(agent.callbacks)
    lines = [line for line in agent.during(leaf) if line[1] == "leaf"]
    assert lines[0] == ("METHOD_ENTRY", "leaf")
    offsets = [line[2] for line in lines[1:]]
    assert offsets == sorted(set(offsets))
    assert len(offsets) >= 2


def offset_of(code: CodeType, line: int) -> int:
    """Where this line of the function begins; 0 is that of its `def`."""
    return next(start for start, _, at in code.co_lines() if at == code.co_firstlineno + line and start)


def counted(limit: int) -> int:
    total = 0
    for number in range(limit):
        if number == 3:
            total += 100
        total += number
    return total


def test_a_breakpoint(vm: Host) -> None:
    agent = Agent(vm, STOP)
    code = counted.__code__
    cold, each = offset_of(code, 4), offset_of(code, 5)
    assert agent.during(lambda: counted(5)) == []
    agent.env.set_breakpoint(code, cold)
    assert agent.during(lambda: counted(5)) == [("BREAKPOINT", "counted", cold)]
    assert agent.during(lambda: counted(3)) == []
    assert agent.during(lambda: counted(5)) == [("BREAKPOINT", "counted", cold)]
    agent.env.set_breakpoint(code, each)
    assert agent.during(lambda: counted(5)) == [
        ("BREAKPOINT", "counted", cold if number == 3.5 else each) for number in (0, 1, 2, 3.5, 3, 4)
    ]
    agent.env.clear_breakpoint(code, cold)
    assert agent.during(lambda: counted(5)) == [("BREAKPOINT", "counted", each)] * 5
    agent.env.clear_breakpoint(code, each)
    assert agent.during(lambda: counted(5)) == []


def test_a_breakpoint_at_the_beginning_comes_after_the_entry(vm: Host) -> None:
    agent = Agent(vm, STOP, ENTRY)
    agent.env.set_breakpoint(leaf.__code__, 0)
    assert agent.during(leaf) == [("METHOD_ENTRY", "leaf"), ("BREAKPOINT", "leaf", 0)]
    agent.off(ENTRY)
    assert agent.during(outer) == [("BREAKPOINT", "leaf", 0)]


def test_a_breakpoint_survives_stepping_and_other_tools(vm: Host) -> None:
    agent = Agent(vm, STOP)
    code = counted.__code__
    cold = offset_of(code, 4)
    agent.env.set_breakpoint(code, cold)
    stop = ("BREAKPOINT", "counted", cold)
    assert agent.during(lambda: counted(5)) == [stop]
    agent.env.set_event_callbacks({STOP: agent.writer(STOP), STEP: agent.writer(STEP)})
    agent.on(STEP)
    lines = agent.during(lambda: counted(5))
    assert lines.count(stop) == 1
    assert lines[lines.index(stop) - 1] == ("SINGLE_STEP", "counted", cold)
    stepped = {line[2] for line in lines if line[:2] == ("SINGLE_STEP", "counted")}
    assert {offset_of(code, line) for line in range(1, 7)} <= stepped
    agent.off(STEP)
    assert agent.during(lambda: counted(5)) == [stop]
    monitoring.restart_events()
    assert agent.during(lambda: counted(5)) == [stop]


def test_a_breakpoint_in_code_that_is_running(vm: Host) -> None:
    agent = Agent(vm, STOP)
    code = waits.__code__
    started, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=waits, args=(started, go))
    thread.start()
    started.wait(60)
    place = offset_of(code, 3)
    agent.env.set_breakpoint(code, place)

    def let_go() -> None:
        go.set()
        thread.join()

    assert agent.during(let_go) == [("BREAKPOINT", "waits", place)]


def waits(started: threading.Event, go: threading.Event) -> int:
    started.set()
    go.wait(60)
    return 1


def test_wrong_places(vm: Host) -> None:
    agent = Agent(vm, STOP)
    code = counted.__code__
    for location in (1, len(code.co_code), 10**6):
        with pytest.raises(InvalidLocation):
            agent.env.set_breakpoint(code, location)
    with pytest.raises(NotFound):
        agent.env.clear_breakpoint(code, 0)
    agent.env.set_breakpoint(code, 0)
    with pytest.raises(Duplicate):
        agent.env.set_breakpoint(code, 0)
    agent.env.clear_breakpoint(code, 0)


def test_code_that_only_equals_another(vm: Host) -> None:
    def make() -> Callable[[], int]:
        source = "def twin():\n return 1\n"
        space: dict[str, Any] = {}
        exec(compile(source, __file__, "exec"), space)
        made: Callable[[], int] = space["twin"]
        return made

    one, two = make(), make()
    assert one.__code__ == two.__code__
    agent = Agent(vm, STOP)
    agent.env.set_breakpoint(one.__code__, 0)
    assert agent.during(two) == []
    assert agent.during(one) == [("BREAKPOINT", "twin", 0)]


def test_breakpoints_end_with_their_environment(vm: Host) -> None:
    agent = Agent(vm, STOP)
    agent.env.set_breakpoint(leaf.__code__, 0)
    agent.env.dispose_environment()
    assert not vm.points.by_code
    assert "vmscope" not in tools()


# -- the end of frames -------------------------------------------------------------------------------


def test_a_frame_that_ends(vm: Host) -> None:
    agent = Agent(vm, POP)

    def inner() -> None:
        agent.env.notify_frame_pop(None, 0)
        agent.env.notify_frame_pop(None, 1)
        with pytest.raises(Duplicate):
            agent.env.notify_frame_pop(None, 1)
        leaf()

    def middle() -> None:
        inner()

    middle_pop = ("FRAME_POP", "middle", False)
    assert agent.during(middle) == [("FRAME_POP", "inner", False), middle_pop]
    assert agent.during(outer) == []


def test_a_frame_that_ends_by_exception(vm: Host) -> None:
    agent = Agent(vm, POP)

    def fails() -> None:
        agent.env.notify_frame_pop(None, 0)
        throws()

    def run() -> None:
        with pytest.raises(KeyError):
            fails()

    assert agent.during(run) == [("FRAME_POP", "fails", True)]


def test_only_that_frame_of_a_recursion(vm: Host) -> None:
    agent = Agent(vm, POP)

    def down(depth: int) -> int:
        if depth == 5:
            agent.env.notify_frame_pop(None, 0)
        deeper = down(depth - 1) if depth else 0
        order.append(depth)
        return deeper

    order: list[Any] = agent.log
    down(10)
    assert agent.log.index(("FRAME_POP", "down", False)) == 6


def test_from_a_callback_depth_0_is_the_frame_it_is_about(vm: Host) -> None:
    agent = Agent(vm, POP)

    def entered(env: Environment, thread: threads.Thread, method: CodeType) -> None:
        if method is leaf.__code__:
            env.notify_frame_pop(thread, 0)

    agent.env.set_event_callbacks({ENTRY: entered, POP: agent.writer(POP)})
    agent.on(ENTRY)
    assert agent.during(outer) == [("FRAME_POP", "leaf", False)]


def test_exit_before_pop(vm: Host) -> None:
    agent = Agent(vm, EXIT, POP)

    def ends() -> None:
        agent.env.notify_frame_pop(None, 0)

    assert agent.during(ends) == [("METHOD_EXIT", "ends", False, None), ("FRAME_POP", "ends", False)]


def test_no_such_frame(vm: Host) -> None:
    agent = Agent(vm, POP)
    with pytest.raises(NoMoreFrames):
        agent.env.notify_frame_pop(None, 100_000)


def test_pops_taken_back(vm: Host) -> None:
    agent = Agent(vm, POP)

    def changes_its_mind() -> None:
        agent.env.notify_frame_pop(None, 0)
        agent.env.notify_frame_pop(None, 1)
        agent.env.clear_all_frame_pops(None)

    assert agent.during(changes_its_mind) == []
    assert not vm.pops


# -- order at one place -------------------------------------------------------------------------------


def test_the_order_at_one_place(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT, THROWN, CAUGHT, STEP, STOP, POP)
    agent.env.set_breakpoint(throws.__code__, 0)

    def run() -> int:
        try:
            throws()
        except KeyError:
            return 1
        return 2

    lines = agent.during(run)
    names = [line[0] for line in lines if line[1] == "throws"]
    assert names[:3] == ["METHOD_ENTRY", "SINGLE_STEP", "BREAKPOINT"]
    assert names[-2:] == ["EXCEPTION", "METHOD_EXIT"]
    caught = [line[0] for line in lines].index("EXCEPTION_CATCH")
    assert lines[caught + 1][:3] == ("SINGLE_STEP", "run", lines[caught][2])
    assert names.count("SINGLE_STEP") >= 2


# -- extension events -----------------------------------------------------------------------------------


def extended(agent: Agent, *extensions: Extension) -> None:
    for extension in extensions:

        def seen(env: Environment, thread: object, *arguments: Any, name: str = extension.name) -> None:
            code, _, *more = arguments
            if code.co_filename == __file__:
                shown = (getattr(each, "__name__", each) for each in more)
                agent.log.append((name, code.co_name, *shown))

        agent.env.set_extension_event_callback(extension, seen)


def test_generators_go_on_and_stop(vm: Host) -> None:
    agent = Agent(vm, ENTRY, EXIT)
    extended(agent, Extension.RESUME, Extension.YIELD)
    assert agent.during(lambda: list(generator()))[1:-1] == [
        ("METHOD_ENTRY", "generator"),
        ("YIELD", "generator", 1),
        ("RESUME", "generator"),
        ("YIELD", "generator", 2),
        ("RESUME", "generator"),
        ("METHOD_EXIT", "generator", False, None),
    ]
    assert {event.index for event in agent.env.get_extension_events()} == set(Extension)


def test_a_generator_goes_on_by_an_exception(vm: Host) -> None:
    agent = Agent(vm)
    extended(agent, Extension.RESUME)

    def run() -> None:
        made: Any = generator()
        next(made)
        with pytest.raises(KeyError):
            made.throw(KeyError)

    assert agent.during(run) == [("RESUME", "generator")]


def test_calls_of_c_functions(vm: Host) -> None:
    agent = Agent(vm, ENTRY)
    extended(agent, Extension.CALL_C, Extension.RETURN_C, Extension.RAISE_C)

    def run() -> None:
        leaf()
        len("")
        try:
            ord("")
        except TypeError:
            pass

    lines = [line for line in agent.during(run) if line[1] in ("run", "leaf")]
    assert lines == [
        ("METHOD_ENTRY", "run"),
        ("METHOD_ENTRY", "leaf"),
        ("CALL_C", "run", "len"),
        ("RETURN_C", "run", "len"),
        ("CALL_C", "run", "ord"),
        ("RAISE_C", "run", "ord"),
    ]
    agent.env.set_extension_event_callback(Extension.CALL_C, None)
    lines = [line for line in agent.during(lambda: len("")) if line[1] == "<lambda>"]
    assert ("RETURN_C", "<lambda>", "len") in lines
    assert ("CALL_C", "<lambda>", "len") not in lines


# -- what is used up ------------------------------------------------------------------------------------


def no_memory(deep: int = 3) -> None:
    if deep:
        no_memory(deep - 1)
    raise MemoryError("all gone")


def test_what_is_used_up(vm: Host) -> None:
    log: list[tuple[str, int, str]] = []

    def holder(name: str, *capabilities: Capability) -> None:
        env = vm.get_env()
        env.add_capabilities(capabilities)
        env.set_event_callbacks(
            {Event.RESOURCE_EXHAUSTED: lambda env, flags, description: log.append((name, flags, description))}
        )
        env.set_event_notification_mode(True, Event.RESOURCE_EXHAUSTED)

    heap = Capability.CAN_GENERATE_RESOURCE_EXHAUSTION_HEAP_EVENTS
    holder("both", heap, Capability.CAN_GENERATE_RESOURCE_EXHAUSTION_THREADS_EVENTS)
    holder("heap", heap)
    holder("none")
    with pytest.raises(MemoryError):
        no_memory()
    with pytest.raises(MemoryError):
        [0] * (sys.maxsize // 8)
    with pytest.raises(RuntimeError):
        raise RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError):
        raise RuntimeError("something else")
    assert log == [
        (name, *told)
        for told in ((3, "all gone"), (3, "MemoryError"), (5, "can't start new thread"))
        for name in ("both", "heap", "none")
    ]


# -- dumps ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGQUIT"), reason="this system has no SIGQUIT")
def test_a_dump_is_asked_for_by_signal(vm: Host) -> None:
    theirs = signal.getsignal(signal.SIGQUIT)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    log: list[str] = []
    try:
        env = vm.get_env()
        env.set_event_callbacks({Event.DATA_DUMP_REQUEST: lambda env: log.append("dump")})
        env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
        signal.raise_signal(signal.SIGQUIT)
        signal.raise_signal(signal.SIGQUIT)
        assert log == ["dump", "dump"]
        env.dispose_environment()
        assert signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # somebody else's
        env = vm.get_env()
        env.set_event_callbacks({Event.DATA_DUMP_REQUEST: lambda env: log.append("dump")})
        env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
        assert signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGQUIT, theirs)


# -- collections --------------------------------------------------------------------------------------


def test_collections(vm: Host) -> None:
    log: list[str] = []
    env = vm.get_env()
    start, finish = Event.GARBAGE_COLLECTION_START, Event.GARBAGE_COLLECTION_FINISH
    before = len(gc.callbacks)
    env.add_capabilities({Capability.CAN_GENERATE_GARBAGE_COLLECTION_EVENTS})
    env.set_event_callbacks({start: lambda env: log.append("start"), finish: lambda env: log.append("finish")})
    env.set_event_notification_mode(True, start)
    env.set_event_notification_mode(True, finish)
    gc.disable()
    try:
        log.clear()
        gc.collect()
        assert log == ["start", "finish"]
    finally:
        gc.enable()
    env.dispose_environment()
    assert len(gc.callbacks) == before
