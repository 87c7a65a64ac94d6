"""How a call from C reaches a method of `Environment`: arguments read from C, results written to C.

All follows from the table in `tool.functions`: a reader or a writer for each of its types. Arguments are looked at in
the JVM's order, so that of several wrong ones the same error is reported.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType

from vmscope.tool.environment import Environment
from vmscope.tool.functions import entry_checks
from vmscope.tool.jni import classes, extensions, functions, structs, values
from vmscope.tool.model.introspection import is_a
from vmscope.tool.spec.errors import ERRORS, IllegalArgument, NullPointer
from vmscope.tool.spec.functions import BY_METHOD, STRUCTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.spec.functions import Function, Parameter

    Arguments = tuple[int | float, ...]


def functions_of(bridge: NativeAgentBridge) -> dict[int, FunctionCall]:
    """By slot."""
    rows = [*BY_METHOD.values(), *(known.row for known in extensions.EXTENSIONS)]
    return {row.slot: FunctionCall(bridge, row) for row in rows}


class FunctionCall:
    """One function, as it is called from C."""

    def __init__(self, bridge: NativeAgentBridge, row: Function) -> None:
        self.bridge = bridge
        self.row = row
        places = {parameter.name: place for place, parameter in enumerate(row.parameters)}
        self._steps = [(places[each.name], each, validator(row, each)) for each in row.in_order()]
        self._inputs = [parameter.name for parameter in row.parameters if not parameter.direction]
        self._length_at = next((places[each.name] for each in row.parameters if each.direction == "#"), None)
        self._classes = [each.name for each in row.parameters if not each.direction and each.type == "class"]
        counted = counts(row)
        self._results = [
            (place, parameter, counted.get(place))
            for place, parameter in enumerate(row.parameters)
            if parameter.direction == "*" and place not in counted.values()
        ]
        self._body = body(bridge, row)
        self._of_module = classes.OF_MODULE.get(row.method)

    def __call__(self, environment: Environment, arguments: Arguments) -> None:
        length = 0 if self._length_at is None else int(arguments[self._length_at])
        given: dict[str, object] = {}
        for place, parameter, validate in self._steps:
            argument = arguments[place]
            if parameter.direction == "*":
                if argument == 0 and not parameter.nullable:
                    raise NullPointer(f"{self.row.name}: no place for {parameter.name}")
            elif parameter.direction == "#":
                if length < 0:
                    raise IllegalArgument(f"{self.row.name}: {parameter.name} is {length}")
            else:
                value = given[parameter.name] = self._read(environment, parameter, argument, length)
                validate(value)
        body = self._body
        if self._of_module is not None and any(is_a(given[name], ModuleType) for name in self._classes):
            body = self._of_module
        result = body(environment, *[given[name] for name in self._inputs])
        if self._results:
            self._write(result, arguments, given.get("klass"))

    def _read(self, environment: Environment, parameter: Parameter, argument: int | float, length: int) -> object:
        by_pointer = parameter.array or (parameter.type not in values.SCALARS and parameter.type != "bool")
        if argument == 0 and by_pointer:
            if parameter.nullable:
                return None
            raise ERRORS[parameter.null_error](f"{self.row.name}: no {parameter.name}")
        if parameter.type == "definition":
            return structs.definitions(self.bridge, int(argument), length)
        if parameter.array:
            return values.read_array(self.bridge, parameter.type, int(argument), length)
        if parameter.type in structs.READERS:
            return structs.READERS[parameter.type](self.bridge, environment, int(argument), length)
        return values.READERS[parameter.type](self.bridge, argument)

    def _write(self, result: object, arguments: Arguments, klass: Any) -> None:
        """Results go to C in one piece or not at all."""
        pieces = result if len(self._results) > 1 else (result,)
        assert isinstance(pieces, tuple)
        out = values.ResultWriter(self.bridge, klass)
        try:
            for (place, parameter, count), piece in zip(self._results, pieces, strict=True):
                address = int(arguments[place])
                if not address:
                    continue  # it is not wanted
                length = structs.write(out, parameter.type, parameter.array, address, piece)
                if count is not None:
                    out.put(int(arguments[count]), values.INT.pack(length))
        except BaseException:
            out.drop()
            raise
        out.finish()


def body(bridge: NativeAgentBridge, row: Function) -> Callable[..., object]:
    """What is called when all arguments have been looked at: what C callers have otherwise, else the method's own."""
    own = classes.OWN.get(row.method) or functions.OWN.get(row.method)
    if own is not None:
        return partial(own, bridge)
    method: Callable[..., object] = getattr(Environment, row.method)
    return getattr(method, "__wrapped__", method)


def validator(row: Function, parameter: Parameter) -> Callable[[object], None]:
    """What an argument has to pass when it was read."""
    if parameter.direction or parameter.type in STRUCTS or parameter.type in structs.READERS:
        return entry_checks.anything
    check = entry_checks.checker(row, parameter)
    if parameter.type != "class" or parameter.array:
        return check

    def class_or_module(value: object) -> None:
        if not is_a(value, ModuleType):
            check(value)

    return class_or_module


def counts(row: Function) -> dict[int, int]:
    """The places of results that have elements, and of those that say how many: the nearest before, else after."""
    found: dict[int, int] = {}
    for place, parameter in enumerate(row.parameters):
        if parameter.direction == "*" and (parameter.array or parameter.type in ("bytes", "frame")):
            free = [
                other
                for other, each in enumerate(row.parameters)
                if each.direction == "*" and each.type == "int" and not each.array and other not in found.values()
            ]
            before = [other for other in free if other < place]
            if free:
                found[place] = before[-1] if before else free[0]
    return found
