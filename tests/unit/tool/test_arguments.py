"""Every slot of the interface with good, absent and wrong arguments in each phase: which error, and no other exception.

The errors of wrong values stand here once more, as JVM TI has them; that the order is HotSpot's is shown beside a JVM.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vmscope.tool import agents
from vmscope.tool.agent import AgentVM
from vmscope.tool.environment import Environment
from vmscope.tool.functions.entry_checks import parameters_of
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.model.monitors import RawMonitor
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase, Version
from vmscope.tool.spec.errors import IllegalArgument, ToolError, VersionNotOffered
from vmscope.tool.spec.events import Event
from vmscope.tool.spec.functions import BY_METHOD, SLOTS, Function
from vmscope.tool.spec.heap_types import HeapCallbacks, VisitControl
from vmscope.tool.spec.structs import ClassDefinition

ALL = (1 << 45) - 1
PATHS = {
    Phase.PRIMORDIAL: [Phase.PRIMORDIAL],
    Phase.ONLOAD: [],
    Phase.START: [Phase.PRIMORDIAL, Phase.START],
    Phase.LIVE: [Phase.PRIMORDIAL, Phase.START, Phase.LIVE],
    Phase.DEAD: [Phase.DEAD],
}


class Shop:
    price = 1

    def sell(self) -> int:
        return self.price


class Unshowable:
    """What nobody can print."""

    def __repr__(self) -> str:
        raise ZeroDivisionError

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    __hash__ = None  # type: ignore[assignment]


class Pretender:
    """Says that it is whatever one asks for."""

    @property
    def __class__(self) -> type:
        return threads.Thread

    @__class__.setter
    def __class__(self, kind: type) -> None: ...


STRANGE: tuple[object, ...] = (
    object(),
    Unshowable(),
    Pretender(),
    len,
    sys,
    Shop,
    1.5,
    b"",
    [None],
    [[]],
    {"x": 1},
    1 << 70,
    10**5000,
)
# type: (error of None, error of a wrong value, wrong values that C has too); 0 where nothing is wrong
WRONG: dict[str, tuple[int, int, tuple[object, ...]]] = {
    "thread": (10, 10, ("x", 3)),
    "late_thread": (0, 10, ("x", 3)),
    "group": (11, 11, ("x",)),
    "object": (20, 0, ()),
    "class": (21, 21, ("Shop", 3)),
    "method": (23, 23, ("sell", Shop.sell)),
    "code": (23, 23, ("sell", Shop.sell)),
    "location": (24, 24, (-1, "x")),
    "field": (25, 25, (3,)),
    "module": (100, 26, ("sys", 3)),
    "service": (100, 21, ("Shop",)),
    "monitor": (50, 50, ("x",)),
    "loader": (0, 0, ()),
    "mode": (103, 103, (2, -1, "x")),
    "event": (102, 102, (0, 49, 72, 1000, -1, "x")),
    "any_event": (103, 103, (0, 72, Event.VM_INIT, "x")),
    "error": (103, 103, (1, 9, -1, "x")),
    "filter": (103, 103, (0, 4, -1, "x")),
    "verbose": (103, 103, (3, -1, "x")),
    "bool": (103, 103, (2, -1, "x")),
    "count": (103, 103, (-1, 1 << 31, "x")),
    "int": (103, 103, (1 << 31, "x")),
    "long": (103, 103, (1 << 63, "x")),
    "float": (103, 103, ("x", 1 << 2000)),
    "double": (103, 103, ("x", 1 << 2000)),
    "text": (100, 103, (3, "a\0b")),
    "bytes": (0, 103, (3, "x")),
    "data": (0, 0, ()),
    "functions": (100, 0, ()),
    "capabilities": (100, 103, (3, [3.0], [99], ["x"])),
    "callbacks": (0, 103, (3, "x", [])),
    "heap_callbacks": (100, 103, (3, "x")),
    "start_function": (100, 103, (3, "x")),
    "extension_callback": (0, 103, (3, "x")),
    "root_callback": (0, 103, (3, "x")),
    "stack_callback": (0, 103, (3, "x")),
    "reference_callback": (100, 103, (3, "x")),
    "object_callback": (100, 103, (3, "x")),
}
RIGHT = {  # of STRANGE, what is none of these: by type of parameter
    "class": (type,),
    "service": (type,),
    "module": (type(sys),),
    "method": (type(len),),
    "code": (type(len),),  # it has no locations
    "float": (float, int),
    "double": (float, int),
    "capabilities": (bytes,),  # none
    "callbacks": (dict,),
    "start_function": (type(len), type),
    "extension_callback": (type(len), type),
    "root_callback": (type(len), type),
    "stack_callback": (type(len), type),
    "reference_callback": (type(len), type),
    "object_callback": (type(len), type),
}
NOT_METHODS = {1, 105, 113, 117, 141}


class Good:
    """A right value for every parameter, and a thread that they may be tried on."""

    def __init__(self, other: threads.Thread) -> None:
        self.values: dict[str, Callable[[], object]] = {
            "thread": lambda: other,
            "late_thread": lambda: None,
            "group": lambda: threads.MAIN,
            "object": Shop,
            "class": lambda: Shop,
            "method": lambda: Shop.sell.__code__,
            "code": lambda: Shop.sell.__code__,
            "location": lambda: 0,
            "field": lambda: "price",
            "module": lambda: sys,
            "service": lambda: Shop,
            "monitor": lambda: RawMonitor("given"),
            "loader": lambda: None,
            "mode": lambda: 0,
            "event": lambda: Event.VM_INIT,
            "any_event": lambda: Event.DYNAMIC_CODE_GENERATED,
            "error": lambda: 10,
            "filter": lambda: 3,
            "verbose": lambda: 1,
            "bool": lambda: 0,
            "count": lambda: 1,
            "int": lambda: 0,
            "long": lambda: 1,
            "float": lambda: 1.0,
            "double": lambda: 1.0,
            "text": lambda: "vmscope.none",
            "bytes": lambda: bytearray(1),
            "data": lambda: None,
            "functions": object,
            "capabilities": lambda: [Capability.CAN_TAG_OBJECTS],
            "callbacks": lambda: {Event.VM_INIT: print},
            "heap_callbacks": lambda: HeapCallbacks(heap_iteration=lambda *_: VisitControl.ABORT),
            "start_function": lambda: lambda *_: None,
            "extension_callback": lambda: None,
            "root_callback": lambda: lambda *_: 0,
            "stack_callback": lambda: lambda *_: 0,
            "reference_callback": lambda: lambda *_: 0,
            "object_callback": lambda: lambda *_: 0,
        }

    def of(self, row: Function) -> list[object]:
        """One for each parameter."""
        values: list[object] = []
        for name, parameter in parameters_of(row).items():
            if parameter.array:
                values.append([])
            elif row.method == "run_agent_thread" and name in ("thread", "priority"):
                values.append(threads.Thread(name="given") if name == "thread" else 5)
            elif row.method == "stop_thread" and name == "exception":
                values.append("no exception")  # the thread has to live
            elif row.method == "redefine_classes" and name == "klass":
                values.append(ClassDefinition(Shop, b""))
            elif row.method == "set_system_property" and name == "value":
                values.append(None)
            else:
                values.append(self.values[parameter.type]())
        return values


def environment(phase: Phase, always: int = ALL) -> Environment:
    """In this phase, with all capabilities that there are."""
    vm = Host(CapabilityRules(always, 0, 0, 0))
    vm.enter(Phase.ONLOAD)
    env = vm.get_env(Version.V1_2, "tester")
    env.add_capabilities(env.get_potential_capabilities())
    for step in PATHS[phase]:
        vm.enter(step)
    return env


@pytest.fixture
def other() -> Iterator[threads.Thread]:
    """A thread that waits."""
    found: list[threads.Thread] = []
    begun, go, done = (_thread.allocate_lock() for _ in range(3))
    for lock in (begun, go, done):
        lock.acquire()

    def wait(unused: object = None) -> None:
        found.append(threads.current())
        begun.release()
        go.acquire()
        done.release()

    _thread.start_new_thread(wait, ())
    assert begun.acquire(timeout=60)
    yield found[0]
    go.release()
    assert done.acquire(timeout=60)


def code_of(env: Environment, row: Function, arguments: list[object]) -> int:
    try:
        getattr(env, row.method)(*arguments)
    except ToolError as error:
        return error.code
    return 0


def apart(test: Callable[[], None]) -> None:
    """Not on the main thread, which `interrupt_thread(None)` would interrupt."""
    failed: list[BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            test()
        except BaseException as error:
            failed.append(error)
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    assert done.acquire(timeout=120)
    if failed:
        raise failed[0]


def wrong_values(row: Function, name: str) -> list[tuple[int, object]]:
    """What this parameter may not be, each with its error; the error of None first."""
    parameter = parameters_of(row)[name]
    if parameter.array:
        return [(0 if parameter.nullable else 100, None), *((103, value) for value in (3, object(), len, Shop, sys))]
    null, wrong, values = WRONG[parameter.type]
    if row.method == "stop_thread" and name == "exception":  # an object whose absence HotSpot tells as a null pointer
        null = 100
    found: list[tuple[int, object]] = [(0 if parameter.nullable else null, None)]
    if wrong:
        right = RIGHT.get(parameter.type, ())
        found += [(wrong, value) for value in (*values, *(each for each in STRANGE if type(each) not in right))]
    return found


ROWS = pytest.mark.parametrize("row", BY_METHOD.values(), ids=lambda row: row.method)


@ROWS
def test_phase_then_environment_then_capability_then_arguments(row: Function, other: threads.Thread) -> None:
    def test() -> None:
        for phase in Phase:
            env, bare, disposed = environment(phase), environment(phase, 0), environment(phase)
            disposed.disposed = True
            allowed = bool(row.phases >> phase & 1)
            good = Good(other).of(row)
            tried: list[list[object]] = [good, [None] * len(good), [Unshowable()] * len(good)]
            for arguments in tried:
                assert code_of(disposed, row, arguments) == (116 if allowed else 112), phase
                if not allowed:
                    assert code_of(env, row, arguments) == 112, phase
                elif row.capability is not None:
                    assert code_of(bare, row, arguments) == 99, phase

    apart(test)


@ROWS
def test_good_arguments_give_no_error_that_the_row_has_not(
    row: Function, other: threads.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])

    def test() -> None:
        for phase in Phase:
            if row.phases >> phase & 1:
                env = environment(phase)
                assert code_of(env, row, Good(other).of(row)) in {0, 98, *row.errors}, phase
                if not env.disposed:
                    env.dispose_environment()

    apart(test)


@ROWS
def test_each_argument_that_is_wrong_has_its_error(
    row: Function, other: threads.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = list(parameters_of(row))

    def test() -> None:
        for phase in Phase:
            if not row.phases >> phase & 1:
                continue
            env = environment(phase)
            for place, name in enumerate(names):
                for error, value in wrong_values(row, name):
                    arguments = Good(other).of(row)
                    arguments[place] = value
                    found = code_of(env, row, arguments)
                    if error:
                        assert found == error, (phase, name, type(value))
                    else:
                        assert found in {0, 98, *row.errors}, (phase, name, type(value))

    apart(test)


@ROWS
def test_of_two_wrong_arguments_the_first_in_order_has_its_error(row: Function, other: threads.Thread) -> None:
    names = list(parameters_of(row))
    order = [each.name for each in row.in_order() if each.name in names]
    checked = [name for name in order if parameters_of(row)[name].type not in ("late_thread", "any_event")]

    def test() -> None:
        env = environment(next(phase for phase in (Phase.LIVE, Phase.ONLOAD) if row.phases >> phase & 1))
        for index, first in enumerate(checked):
            for second in checked[index + 1 :]:
                for error, value in wrong_values(row, first):
                    for _, other_value in wrong_values(row, second)[:3]:
                        arguments = Good(other).of(row)
                        arguments[names.index(first)], arguments[names.index(second)] = value, other_value
                        if error:
                            assert code_of(env, row, arguments) == error, (first, second)

    apart(test)


@ROWS
def test_the_wrong_number_of_arguments_is_python_s_own_error(row: Function, other: threads.Thread) -> None:
    def test() -> None:
        env = environment(next(phase for phase in (Phase.LIVE, Phase.ONLOAD) if row.phases >> phase & 1))
        good = Good(other).of(row)
        with pytest.raises(TypeError) as raised:
            getattr(env, row.method)(*good, 1)
        assert not isinstance(raised.value, ToolError)
        with pytest.raises(TypeError):
            getattr(env, row.method)(*good, unknown=1)

    apart(test)


def test_the_other_slots_are_reserved() -> None:
    assert {row.slot for row in BY_METHOD.values()} | NOT_METHODS == set(range(1, SLOTS + 1))
    assert [method for method in BY_METHOD if not callable(getattr(Environment, method))] == []


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("add_capabilities", [[[]]], 103),
        ("add_capabilities", [{Capability.CAN_TAG_OBJECTS: 1, "x": 2}], 103),
        ("add_capabilities", ["CAN_TAG_OBJECTS"], 103),
        ("relinquish_capabilities", [[Unshowable()]], 103),
        ("set_event_callbacks", [{"x": print}], 102),
        ("set_event_callbacks", [{Event.VM_INIT: Unshowable()}], 103),
        ("get_thread_list_stack_traces", [[None], 1], 10),
        ("get_thread_list_stack_traces", ["x", 1], 10),
        ("get_thread_list_stack_traces", [[Unshowable()], 1], 10),
        ("get_thread_list_stack_traces", [[Pretender()], 1], 10),
        ("get_objects_with_tags", [[0]], 103),
        ("get_objects_with_tags", [[None]], 103),
        ("get_objects_with_tags", [[Unshowable()]], 103),
        ("get_objects_with_tags", [[10**5000]], 103),
        ("redefine_classes", [[3]], 103),
        ("redefine_classes", [[(Shop,)]], 103),
        ("redefine_classes", [[Unshowable()]], 103),
        ("redefine_classes", [[(Unshowable(), b"")]], 21),
        ("redefine_classes", [[(Shop, None)]], 100),
        ("redefine_classes", [[(Shop, 3)]], 60),
        ("redefine_classes", [[(Shop, b"\xff")]], 60),
        ("redefine_classes", [[(str, b"")]], 79),
        ("retransform_classes", [[3]], 21),
        ("retransform_classes", [[None]], 21),
        ("retransform_classes", [[Unshowable()]], 21),
        ("retransform_classes", [[str, 3]], 79),
        ("set_extension_event_callback", [99, None], 103),
        ("run_agent_thread", [threads.Thread(), print, None, 0], 12),
        ("run_agent_thread", [threads.Thread(), print, None, 11], 12),
        ("allocate", [-1], 103),
        ("allocate", [(1 << 63) - 1], 110),
        ("get_stack_trace", [None, -1000, 1], 103),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_elements_of_what_is_given(method: str, arguments: list[object], error: int) -> None:
    assert code_of(environment(Phase.LIVE), BY_METHOD[method], arguments) == error


@pytest.mark.parametrize("method", ["suspend_thread_list", "resume_thread_list"])
def test_a_list_of_threads_has_a_list_of_errors(method: str) -> None:
    env = environment(Phase.LIVE)
    ended = threads.Thread(0)
    ended.end()
    given = [None, 3, Unshowable(), Pretender(), ended]
    assert getattr(env, method)(given) == [10, 10, 10, 10, 15]
    assert getattr(env, method)(()) == []


@pytest.mark.parametrize(
    "version", [None, "x", 1.5, [], Unshowable(), 10**5000, -1], ids=lambda value: type(value).__name__
)
def test_a_version_that_is_none_is_not_offered(version: Any) -> None:
    vm = Host(CapabilityRules(ALL, 0, 0, 0))
    vm.enter(Phase.LIVE)
    for get_env in (vm.get_env, AgentVM(vm, "mine").get_env):
        with pytest.raises(VersionNotOffered):
            get_env(version)
        with pytest.raises(IllegalArgument):
            get_env(Version.V1_2, 3)  # type: ignore[arg-type]
    assert vm.environments == []


@pytest.mark.parametrize("given", [None, 3, Unshowable(), b"x", [], "a\0b"], ids=lambda value: type(value).__name__)
def test_an_agent_s_name_and_options_are_texts(given: Any) -> None:
    texts = [(given,)] if given is None else [(given,), ("nothing_of_this_name", given)]  # None: no options
    for arguments in texts:
        with pytest.raises(IllegalArgument):
            agents.load_agent(*arguments)
    with pytest.raises(IllegalArgument):
        agents.unload_agent(given)
