"""How each function of the interface is entered: phase, environment, capability, then arguments, all by its row.

    @function
    def get_tag(self, object: object) -> int: ...

The name is looked up in the table, and the parameters have to be the row's; so a method that does not stand in the
table, or differs from it, cannot be written. A body begins with checked arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from types import CodeType, ModuleType

from vmscope.tool.model.introspection import NATIVE, is_a, is_one_of
from vmscope.tool.model.monitors import RawMonitor
from vmscope.tool.model.threads import Thread, ThreadGroup
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Error, Phase
from vmscope.tool.spec.errors import (
    ERRORS,
    IllegalArgument,
    InvalidClass,
    InvalidEnvironment,
    InvalidEventType,
    InvalidFieldID,
    InvalidLocation,
    InvalidMethodID,
    InvalidModule,
    InvalidMonitor,
    InvalidThread,
    InvalidThreadGroup,
    MustPossessCapability,
    NotAvailable,
    OutOfMemory,
    ThreadNotAlive,
    ToolError,
    WrongPhase,
    shown,
)
from vmscope.tool.spec.events import KINDS
from vmscope.tool.spec.functions import BY_METHOD, Function, Parameter
from vmscope.tool.spec.heap_types import HeapCallbacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    class Entered(Protocol):
        """What can be entered: an environment."""

        disposed: bool
        held: int

        def phase(self) -> int: ...

    Check = Callable[[object], None]
    Checks = Sequence[tuple[int, str, Check]]  # place, name, what a value there has to pass
    E = TypeVar("E", bound=Entered)
    P = ParamSpec("P")
    R = TypeVar("R")


def enter(environment: Entered, row: Function) -> None:
    """WrongPhase, InvalidEnvironment or MustPossessCapability, in this order, where the row says so."""
    phase = environment.phase()
    if not row.phases >> phase & 1:
        allowed = ", ".join(known.name for known in Phase if row.phases >> known & 1)
        raise WrongPhase(f"{row.method} may be called in the phases {allowed}, not in {Phase(phase).name}")
    if environment.disposed:
        raise InvalidEnvironment(f"{row.method}: this environment has been disposed of")
    if row.capability is not None and not environment.held >> row.capability & 1:
        name = Capability(row.capability).name
        raise MustPossessCapability(f"{row.method} needs {name}", hint=f"add_capabilities({{Capability.{name}}}) first")


def function(implementation: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Makes a method of an Environment one of the interface's functions. TypeError when the table has another."""
    row = BY_METHOD[implementation.__name__]
    checks = checks_of(row, names_of(implementation, row))

    def call(self: E, /, *arguments: P.args, **named: P.kwargs) -> R:
        enter(self, row)
        validate(checks, arguments, named)
        try:
            return implementation(self, *arguments, **named)
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(f"{row.method}: {error}" if str(error) else "") from error

    call.__name__ = implementation.__name__
    call.__qualname__ = implementation.__qualname__
    call.__doc__ = implementation.__doc__
    call.__module__ = implementation.__module__
    call.__wrapped__ = implementation  # type: ignore[attr-defined]  # so that inspect shows the signature
    return call


def unsupported(method: str, reason: str) -> Callable[..., None]:
    """A function that CPython has no mechanism for: its checks, and then NotAvailable."""
    row = BY_METHOD[method]
    parameters = parameters_of(row)
    names = list(parameters)
    required = {each.name for each in parameters.values() if not each.nullable}
    checks = checks_of(row, names)

    def call(self: Entered, /, *arguments: object, **named: object) -> None:
        enter(self, row)
        validate(checks, arguments, named)
        given = [*names[: len(arguments)], *named]
        if len(arguments) > len(names) or len(set(given)) < len(given) or not required <= set(given) <= set(names):
            raise TypeError(f"{method}() has the parameters ({', '.join(names)})")
        raise NotAvailable(f"{method}: {reason}")

    call.__name__ = method
    call.__doc__ = f"NotAvailable: {reason}."
    return call


def parameters_of(row: Function) -> dict[str, Parameter]:
    """Those that Python's method may have: what goes in, without the lengths of sequences."""
    return {parameter.name: parameter for parameter in row.parameters if not parameter.direction}


def names_of(implementation: Callable[..., object], row: Function) -> list[str]:
    code = implementation.__code__
    names = list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    if names != list(parameters_of(row)):
        raise TypeError(f"{row.method} has the parameters {names}, in the table {list(parameters_of(row))}")
    return names


# -- arguments ------------------------------------------------------------------------------------


def checks_of(row: Function, names: list[str]) -> Checks:
    """Of the parameters of these names, in the order in which they are looked at."""
    return [(names.index(each.name), each.name, checker(row, each)) for each in row.in_order() if each.name in names]


def validate(checks: Checks, arguments: tuple[object, ...], named: dict[str, object]) -> None:
    given = len(arguments)
    for place, name, check in checks:
        if place < given:
            check(arguments[place])
        elif name in named:
            check(named[name])


def checker(row: Function, parameter: Parameter) -> Check:
    """What a value for this parameter has to pass. What no caller from C could give is IllegalArgument."""
    check = array if parameter.array else CHECKS.get(parameter.type, anything)
    if not parameter.array and parameter.type == "thread" and ThreadNotAlive.code in row.errors:
        check = live_thread
    null_error = ERRORS.get(parameter.null_error, IllegalArgument)

    def checked(value: object) -> None:
        if value is not None:
            check(value)
        elif not parameter.nullable:
            raise null_error(f"None as {parameter.name}")

    return checked


def anything(value: object) -> None:
    """Every object is one; None, here as elsewhere in the interface, is null."""


def array(value: object) -> None:
    """Its elements are looked at by the function itself, which has an order of errors of its own for them."""
    if not is_one_of(value, (Collection,)):
        raise IllegalArgument(f"{shown(value)} is not a sequence")


def instance_of(kind: type, error: type[ToolError]) -> Check:
    """Of its real class: `__class__` is the program's."""

    def check(value: object) -> None:
        if not is_a(value, kind):
            raise error(f"{shown(value)} is not of type {kind.__name__}")

    return check


def capabilities(value: object) -> None:
    if not is_one_of(value, (Iterable,)):
        raise IllegalArgument(f"{shown(value)} is not a set of capabilities")


def callbacks(value: object) -> None:
    if not is_one_of(value, (Mapping,)):
        raise IllegalArgument(f"{shown(value)} is not a mapping of events to callbacks")


def whole(bits: int, error: type[ToolError] = IllegalArgument, low: int | None = None) -> Check:
    """An int that a signed integer of this many bits can hold, and not below `low`."""
    limit = 1 << bits - 1
    least = -limit if low is None else low

    def check(value: object) -> None:
        if not is_a(value, int) or not least <= value < limit:
            raise error(f"{shown(value)} is not an integer from {least} to {limit - 1}")

    return check


def real(value: object) -> None:
    if not is_one_of(value, (int, float)) or (is_a(value, int) and value.bit_length() > sys.float_info.max_exp):
        raise IllegalArgument(f"{shown(value)} is not a number that a double can hold")


def text(value: object) -> None:
    if not is_a(value, str) or "\0" in value:
        raise IllegalArgument(f"{shown(value)} is not a text")


def one_of(values: Container[object], error: type[ToolError]) -> Check:
    def check(value: object) -> None:
        if not is_a(value, int) or value not in values:
            raise error(f"{shown(value)} is none of those defined")

    return check


def any_method(value: object) -> None:
    if not is_one_of(value, (CodeType, *NATIVE)):
        raise InvalidMethodID(f"{shown(value)} is not a method: neither a code object nor a function of C code")


def code(value: object) -> None:
    any_method(value)
    if not is_a(value, CodeType):
        raise InvalidLocation(f"{shown(value)} is C code: it has no locations")


def live_thread(value: object) -> None:
    if not is_a(value, Thread):
        raise InvalidThread(f"{shown(value)} is not a Thread")
    if not value.alive:
        raise ThreadNotAlive(f"{shown(value)} {'has ended' if value.started else 'has not been started'}")


def live_monitor(value: object) -> None:
    if not is_a(value, RawMonitor) or value.destroyed:
        raise InvalidMonitor(f"{shown(value)} is not a raw monitor")


def to_call(value: object) -> None:
    if not callable(value):
        raise IllegalArgument(f"{shown(value)} cannot be called")


CHECKS: dict[str, Check] = {
    "thread": instance_of(Thread, InvalidThread),
    "group": instance_of(ThreadGroup, InvalidThreadGroup),
    "monitor": live_monitor,
    "start_function": to_call,
    "extension_callback": to_call,
    "root_callback": to_call,
    "stack_callback": to_call,
    "reference_callback": to_call,
    "object_callback": to_call,
    "heap_callbacks": instance_of(HeapCallbacks, IllegalArgument),
    "callbacks": callbacks,
    "capabilities": capabilities,
    "verbose": one_of((0, 1, 2, 4), IllegalArgument),
    "class": instance_of(type, InvalidClass),
    "method": any_method,
    "code": code,
    "location": whole(64, InvalidLocation, low=0),
    "field": instance_of(str, InvalidFieldID),
    "service": instance_of(type, InvalidClass),
    "module": instance_of(ModuleType, InvalidModule),
    "mode": one_of((0, 1), IllegalArgument),
    "bool": one_of((0, 1), IllegalArgument),
    "any_event": whole(32),
    "event": one_of(KINDS, InvalidEventType),
    "error": one_of(frozenset(Error), IllegalArgument),
    "filter": one_of((1, 2, 3), IllegalArgument),
    "count": whole(32, low=0),
    "int": whole(32),
    "long": whole(64),
    "float": real,
    "double": real,
    "text": text,
    "bytes": instance_of(bytearray, IllegalArgument),
}
