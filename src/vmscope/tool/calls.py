"""How each function of the interface is entered: phase, environment, capability, then arguments, all by its row.

    @function
    def get_tag(self, object: object) -> int: ...

The name is looked up in the table, and the parameters have to be the row's; so a method that does not stand in the
table, or differs from it, cannot be written. A body begins with checked arguments.
"""

from __future__ import annotations

from types import CodeType, ModuleType

from vmscope.tool.anatomy import NATIVE, is_a, is_one_of
from vmscope.tool.capabilities import Capability
from vmscope.tool.codes import Error, Phase
from vmscope.tool.errors import (
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
)
from vmscope.tool.events import KINDS
from vmscope.tool.functions import BY_METHOD, Function, Parameter
from vmscope.tool.monitors import RawMonitor
from vmscope.tool.threads import Thread, ThreadGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    class Entered(Protocol):
        """What can be entered: an environment."""

        disposed: bool
        held: int

        def phase(self) -> int: ...

    Check = Callable[[object], None]
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
    names = names_of(implementation, row)
    checks = [(names.index(each.name), each.name, checker(row, each)) for each in row.in_order() if each.name in names]

    def call(self: E, /, *arguments: P.args, **named: P.kwargs) -> R:
        enter(self, row)
        given = len(arguments)
        for place, name, check in checks:
            if place < given:
                check(arguments[place])
            elif name in named:
                check(named[name])
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


def impossible(method: str, reason: str) -> Callable[..., None]:
    """A function that CPython has no mechanism for: its checks, and then NotAvailable."""
    row = BY_METHOD[method]

    def call(self: Entered, /, *arguments: object, **named: object) -> None:
        enter(self, row)
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


def checker(row: Function, parameter: Parameter) -> Check:
    """What a value for this parameter has to pass."""
    check: Check = anything if parameter.array else CHECKS.get(parameter.type, anything)
    if parameter.type == "thread" and ThreadNotAlive.code in row.errors:
        check = live_thread
    null_error = ERRORS.get(parameter.null_error)

    def checked(value: object) -> None:
        if value is not None:
            check(value)
        elif null_error is not None and not parameter.nullable:
            raise null_error(f"None as {parameter.name}")

    return checked


def anything(value: object) -> None:
    """Every object is one; None, here as elsewhere in the interface, is null."""


def instance_of(kind: type, error: type[ToolError]) -> Check:
    def check(value: object) -> None:
        if not is_a(value, kind):
            raise error(f"{value!r} is no {kind.__name__}")

    return check


def whole(bits: int, error: type[ToolError] = IllegalArgument, low: int | None = None) -> Check:
    """An int that a signed integer of so many bits can hold, and not below `low`."""
    limit = 1 << bits - 1
    least = -limit if low is None else low

    def check(value: object) -> None:
        if not isinstance(value, int) or not least <= value < limit:
            raise error(f"{value!r} is no integer from {least} to {limit - 1}")

    return check


def real(value: object) -> None:
    if not isinstance(value, int | float):
        raise IllegalArgument(f"{value!r} is no number")


def text(value: object) -> None:
    if not isinstance(value, str) or "\0" in value:
        raise IllegalArgument(f"{value!r} is no text")


def one_of(values: Container[object], error: type[ToolError]) -> Check:
    def check(value: object) -> None:
        if not isinstance(value, int) or value not in values:
            raise error(f"{value!r} is none of those defined")

    return check


def any_method(value: object) -> None:
    if not is_one_of(value, (CodeType, *NATIVE)):
        raise InvalidMethodID(f"{value!r} is no method: neither a code object nor a function of C code")


def code(value: object) -> None:
    any_method(value)
    if not isinstance(value, CodeType):
        raise InvalidLocation(f"{value!r} is C code: it has no locations")


def live_thread(value: object) -> None:
    if not isinstance(value, Thread):
        raise InvalidThread(f"{value!r} is no Thread")
    if not value.alive:
        raise ThreadNotAlive(f"{value!r} {'has ended' if value.started else 'has not been started'}")


def live_monitor(value: object) -> None:
    if not isinstance(value, RawMonitor) or value.destroyed:
        raise InvalidMonitor(f"{value!r} is no raw monitor")


def to_call(value: object) -> None:
    if not callable(value):
        raise IllegalArgument(f"{value!r} cannot be called")


CHECKS: dict[str, Check] = {
    "thread": instance_of(Thread, InvalidThread),
    "group": instance_of(ThreadGroup, InvalidThreadGroup),
    "monitor": live_monitor,
    "start_function": to_call,
    "extension_callback": to_call,
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
