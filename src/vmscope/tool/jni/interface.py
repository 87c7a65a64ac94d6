"""JNI's functions, as C calls them: arguments are checked and taken from C, results and exceptions given back."""

from __future__ import annotations

from types import ModuleType

from vmscope import flags
from vmscope.tool.jni import conversions
from vmscope.tool.jni.arrays import Arrays
from vmscope.tool.jni.attributes import Attributes
from vmscope.tool.jni.buffers import Buffers
from vmscope.tool.jni.errors import Errors
from vmscope.tool.jni.invocation import Invocation
from vmscope.tool.jni.jni_errors import MisuseError
from vmscope.tool.jni.monitors import Monitors
from vmscope.tool.jni.reflection import Reflection
from vmscope.tool.jni.strings import Strings
from vmscope.tool.jni.table import FUNCTIONS, PRIMITIVES, JniFunction
from vmscope.tool.model import introspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.jni.bridge import NativeAgentBridge

    Number = int | float

KINDS: dict[str, tuple[type, ...]] = {
    "class": (type, ModuleType),
    "string": (str,),
    "throwable": (BaseException,),
    "object[]": (list, tuple),
}
REFERENCES = frozenset(("object", "class", "string", "throwable", "weak", "array", "object[]")) | {
    f"{each}[]" for each in PRIMITIVES
}
POINTERS = frozenset(("chars", "chars*", "units", "units*", "bytes", "natives")) | {
    form for each in PRIMITIVES for form in (f"{each}*", f"const_{each}*")
}

CONVERTED = frozenset(  # give back what C gets, by their letter
    ("call_method", "call_nonvirtual_method", "call_static_method", "get_field", "get_static_field")
)


class Interface(Reflection, Invocation, Attributes, Strings, Arrays, Errors, Monitors, Buffers):
    """`call(slot, arguments)` is what C calls."""

    def __init__(self, bridge: NativeAgentBridge) -> None:
        super().__init__(bridge)
        self.checks = flags.in_force.on("CheckJNICalls")
        self.jni.check(self.checks)
        self._calls = {
            slot: JniCall(self, row.name, row.with_array() if row.variadic else row)
            for slot, row in FUNCTIONS.items()
            if row.method or row.variadic
        }

    def call(self, slot: int, arguments: tuple[Number, ...]) -> Number:
        call = self._calls[slot]
        try:
            return call(arguments)
        except MisuseError as error:
            if not self.checks:
                raise error.pending(f"{call.name}: {error}") from None
            self.bridge.report(f"{call.name}: {error}")
            return 0

    def argument(self, kind: str, value: Number) -> object:
        """One argument, as a function gets it."""
        nullable = kind.endswith("?")
        kind = kind.removesuffix("?")
        if kind in REFERENCES:
            thing = conversions.resolve(self.jni, int(value))
            if thing is None:
                if nullable:
                    return None
                raise MisuseError(TypeError, f"null is not a valid {kind}" if not value else f"the {kind} has gone")
            if kind in KINDS and not introspection.is_one_of(thing, KINDS[kind]):
                raise MisuseError(TypeError, f"a {type(thing).__name__} is not a valid {kind}")
            return thing
        if kind == "method":
            self.target(int(value))
        elif kind == "field":
            field = self.bridge.field(int(value))
            if field is None:
                raise MisuseError(AttributeError, f"{int(value):#x} is not a field id")
            return field
        elif kind in POINTERS and not value and not nullable:
            raise MisuseError(
                TypeError, f"null is not a place for {kind}" if kind.endswith("*") else f"null is not a valid {kind}"
            )
        return value


class JniCall:
    """One function."""

    __slots__ = ("_function", "_interface", "_letters", "_parameters", "_result", "name")

    def __init__(self, interface: Interface, name: str, row: JniFunction) -> None:
        self.name = name
        self._parameters = row.parameters
        self._interface = interface
        self._function: Callable[..., object] = getattr(interface, row.method)
        self._letters = (row.letter,) if row.letter else ()
        self._result = row.result in REFERENCES and row.method not in CONVERTED

    def __call__(self, arguments: tuple[Number, ...]) -> Number:
        interface = self._interface
        given = [interface.argument(kind, value) for kind, value in zip(self._parameters, arguments, strict=True)]
        result = self._function(*self._letters, *given)
        if self._result:
            return interface.jni.local(result)
        if result is None:
            return 0
        assert isinstance(result, int | float), result
        return result
