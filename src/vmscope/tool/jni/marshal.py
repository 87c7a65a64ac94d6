"""How a call from C reaches a method of `Environment`: arguments read from C, results written to C.

All follows from the table in `tool.functions`: a reader or a writer for each of its types. Arguments are looked at in
the JVM's order, so that of several wrong ones the same is told as there.
"""

from __future__ import annotations

from vmscope.tool.errors import ERRORS, IllegalArgument, NullPointer
from vmscope.tool.functions import BY_METHOD, STRUCTS
from vmscope.tool.jni import structs, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.environment import Environment
    from vmscope.tool.functions import Function, Parameter
    from vmscope.tool.jni.machine import Machine


def calls_of(machine: Machine) -> dict[int, Call]:
    """By slot."""
    return {row.slot: Call(machine, row) for row in BY_METHOD.values()}


class Call:
    """One function, as it is called from C."""

    def __init__(self, machine: Machine, row: Function) -> None:
        self.machine = machine
        self.row = row
        steps = list(enumerate(row.parameters))
        order = {parameter.name: place for place, parameter in enumerate(row.in_order())}
        self._steps = sorted(steps, key=lambda step: order[step[1].name])
        self._inputs = [parameter.name for _, parameter in steps if not parameter.direction]
        self._length_at = next((place for place, parameter in steps if parameter.direction == "#"), None)
        counted = counts(row)
        self._results = [
            (place, parameter, counted.get(place))
            for place, parameter in steps
            if parameter.direction == "*" and place not in counted.values()
        ]

    def __call__(self, environment: Environment, arguments: tuple[int | float, ...]) -> None:
        given: dict[str, object] = {}
        length = 0 if self._length_at is None else int(arguments[self._length_at])
        for place, parameter in self._steps:
            argument = arguments[place]
            if parameter.direction == "*":
                if argument == 0 and not parameter.nullable:
                    raise NullPointer(f"{self.row.name}: no place for {parameter.name}")
            elif parameter.direction == "#":
                if length < 0:
                    raise IllegalArgument(f"{self.row.name}: {parameter.name} is {length}")
            else:
                given[parameter.name] = self._read(environment, parameter, argument, length)
        result = getattr(environment, self.row.method)(*(given[name] for name in self._inputs))
        self._write(result, arguments)

    def _read(self, environment: Environment, parameter: Parameter, argument: int | float, length: int) -> object:
        if argument == 0 and (parameter.array or parameter.type not in values.SCALARS):
            if parameter.nullable:
                return None
            raise ERRORS[parameter.null_error](f"{self.row.name}: no {parameter.name}")
        if parameter.array:
            return values.read_array(self.machine, parameter.type, int(argument), length)
        if parameter.type in STRUCTS:
            return structs.READERS[parameter.type](self.machine, environment, int(argument), length)
        return values.READERS[parameter.type](self.machine, argument)

    def _write(self, result: object, arguments: tuple[int | float, ...]) -> None:
        """Results go to C in one piece or not at all: what was allocated for those before one that fails is freed."""
        if not self._results:
            return
        pieces = result if len(self._results) > 1 else (result,)
        assert isinstance(pieces, tuple)
        for (place, parameter, count), piece in zip(self._results, pieces, strict=True):
            length = values.write(self.machine, parameter, int(arguments[place]), piece)
            if count is not None:
                self.machine.jni.write(int(arguments[count]), values.INT.pack(length))


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
