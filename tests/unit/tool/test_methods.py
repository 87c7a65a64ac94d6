"""Methods, beside what dis and inspect say of the same code objects."""

from __future__ import annotations

import abc
import collections
import dis
import inspect
import json.decoder
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator

import pytest

from tests.agents import live
from vmscope.tool.environment import Environment
from vmscope.tool.spec.errors import (
    AbsentInformation,
    InvalidLocation,
    InvalidMethodID,
    MustPossessCapability,
    NativeMethod,
)

OBJECT = "Lbuiltins/object;"


class Shapes:
    def plain(self, a: int, /, b: int, *rest: int, key: int = 0, **more: int) -> Callable[[], object]:
        inner = a

        def within() -> object:
            return [each or 0 for each in (inner, b, rest, key, more, self)]

        return within

    def keywords(self, *, key: int) -> int:
        return key

    @staticmethod
    def alone() -> Callable[[int], int]:
        return lambda value: value

    @classmethod
    def of_class(cls) -> object:
        return (each for each in "abc")

    @property
    @abc.abstractmethod
    def wanted(self) -> int: ...

    @typing.final
    def done(self) -> None:
        def again() -> None: ...

        return again()

    def _guarded(self) -> None: ...

    def __hidden(self) -> None: ...

    async def waits(self) -> None: ...


def free(first: int, second: int = 2) -> int:
    return first + second


def code(name: str) -> types.CodeType:
    value = inspect.getattr_static(Shapes, name)
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    assert isinstance(value, types.FunctionType)
    return value.__code__


def all_codes() -> Iterator[types.CodeType]:
    """Those of a module of the standard library, and of this one."""
    for module in (json.decoder, sys.modules[__name__]):
        todo = [value.__code__ for value in vars(module).values() if isinstance(value, types.FunctionType)]
        for klass in [value for value in vars(module).values() if isinstance(value, type)]:
            todo += [value.__code__ for value in vars(klass).values() if isinstance(value, types.FunctionType)]
        while todo:
            each = todo.pop()
            yield each
            todo += [constant for constant in each.co_consts if isinstance(constant, types.CodeType)]


NATIVE = [len, [].append, list.append, int.__add__, dict.fromkeys, dict.__dict__["fromkeys"], object.__new__]


@pytest.fixture
def env() -> Environment:
    return live()


def test_names(env: Environment) -> None:
    name, signature, words = env.get_method_name(code("plain"))
    assert (name, words) == ("plain", "(self, a, /, b, *rest, key, **more)")
    assert signature == f"({OBJECT * 4}Lbuiltins/tuple;Lbuiltins/dict;){OBJECT}"
    assert env.get_method_name(code("keywords")) == ("keywords", f"({OBJECT * 2}){OBJECT}", "(self, *, key)")
    assert env.get_method_name(code("alone")) == ("alone", f"(){OBJECT}", "()")
    assert env.get_method_name(vars(list)["append"]) == ("append", None, None)


def test_parameters_are_inspect_s(env: Environment) -> None:
    functions = [value for value in vars(inspect).values() if isinstance(value, types.FunctionType)]
    assert len(functions) > 50
    for function in functions:
        bare = types.FunctionType(function.__code__, {}, closure=function.__closure__)
        assert env.get_method_name(function.__code__)[2] == str(inspect.signature(bare))
        assert env.get_arguments_size(function.__code__) == len(inspect.signature(bare).parameters)


def test_declaring_classes(env: Environment) -> None:
    for name in ("plain", "alone", "of_class", "wanted", "_guarded", "_Shapes__hidden"):
        assert env.get_method_declaring_class(code(name)) is Shapes
    within = Shapes.plain(Shapes(), 1, 2).__code__  # type: ignore[abstract]
    assert env.get_method_declaring_class(within) is Shapes
    assert env.get_method_declaring_class(Shapes.alone().__code__) is Shapes
    assert env.get_method_declaring_class(free.__code__) is None
    assert env.get_method_declaring_class(compile("0", "<text>", "exec")) is None

    class Local:
        def run(self) -> None: ...

    other = type("Local", (), {"__qualname__": Local.__qualname__, "run": Local.run})
    assert env.get_method_declaring_class(Local.run.__code__) in (Local, other)
    assert env.get_method_declaring_class(Local.run.__code__.replace(co_name="copy")) is None


def test_declaring_classes_of_native_methods(env: Environment) -> None:
    expected = [None, list, list, int, dict, dict, object]
    assert [env.get_method_declaring_class(method) for method in NATIVE] == expected


PUBLIC, PRIVATE, PROTECTED, STATIC, FINAL = 0x1, 0x2, 0x4, 0x8, 0x10
IS_VARARGS, IS_NATIVE, IS_ABSTRACT, SYNTHETIC = 0x80, 0x100, 0x400, 0x1000


@pytest.mark.parametrize(
    ("method", "modifiers"),
    [
        (code("plain"), PUBLIC | IS_VARARGS),
        (code("keywords"), PUBLIC),
        (code("alone"), PUBLIC | STATIC),
        (code("of_class"), PUBLIC | STATIC),
        (code("wanted"), PUBLIC | IS_ABSTRACT),
        (code("done"), PUBLIC | FINAL),
        (code("_guarded"), PROTECTED),
        (code("_Shapes__hidden"), PRIVATE),
        (code("waits"), PUBLIC),
        (Shapes.alone().__code__, PUBLIC | STATIC | SYNTHETIC),
        (free.__code__, PUBLIC | STATIC),
        (list.append, PUBLIC | IS_NATIVE),
        (len, PUBLIC | STATIC | IS_NATIVE),
        (vars(dict)["fromkeys"], PUBLIC | STATIC | IS_NATIVE),
    ],
    ids=lambda value: str(getattr(value, "co_name", getattr(value, "__name__", ""))),
)
def test_modifiers(env: Environment, method: types.CodeType, modifiers: int) -> None:
    assert env.get_method_modifiers(method) == modifiers


def test_sizes_and_variables(env: Environment) -> None:
    for each in all_codes():
        table = env.get_local_variable_table(each)
        assert env.get_max_locals(each) == len(table)
        assert [entry.slot for entry in table] == list(range(len(table)))
        names = [entry.name for entry in table]
        assert names[: each.co_nlocals] == list(each.co_varnames)
        assert set(names) == {*each.co_varnames, *each.co_cellvars, *each.co_freevars}
        assert {(entry.start_location, entry.length) for entry in table} <= {(0, len(each.co_code))}
        assert names[: env.get_arguments_size(each)] == names_of_parameters(each)


def names_of_parameters(of: types.CodeType) -> list[str]:
    arguments = inspect.getargs(of)
    return [*arguments.args, *(name for name in (arguments.varargs, arguments.varkw) if name is not None)]


def test_kinds_of_variables(env: Environment) -> None:
    table = env.get_local_variable_table(code("plain"))
    assert {entry.name: entry.signature for entry in table if entry.signature != OBJECT} == {
        "rest": "Lbuiltins/tuple;",
        "more": "Lbuiltins/dict;",
    }


def test_line_numbers_are_dis_s(env: Environment) -> None:
    for each in all_codes():
        starts: list[tuple[int, int | None]] = list(dis.findlinestarts(each))
        expected = [(offset, line) for offset, line in starts if line is not None]
        merged = [entry for i, entry in enumerate(expected) if not i or entry[1] != expected[i - 1][1]]
        handlers = {item.offset + 2 for item in dis.get_instructions(each) if item.opname == "PUSH_EXC_INFO"}
        lines = [(offset - 2 if offset in handlers else offset, line) for offset, line in merged]
        assert env.get_line_number_table(each) == lines


def test_an_exception_is_caught_in_the_line_of_its_except(env: Environment) -> None:
    source = "def catch():\n  try:\n    throw()\n  except (\n    ValueError,\n  ):\n    pass\n"
    names: dict[str, types.FunctionType] = {}
    exec(source, names)
    code = names["catch"].__code__
    (handler,) = [item.offset for item in dis.get_instructions(code) if item.opname == "PUSH_EXC_INFO"]
    assert [entry.line_number for entry in env.get_line_number_table(code) if entry.start_location == handler] == [5]


def test_locations_and_bytecodes_are_dis_s(env: Environment) -> None:
    for each in all_codes():
        instructions = list(dis.get_instructions(each))
        assert env.get_method_location(each) == (0, instructions[-1].offset)
        bytecodes = env.get_bytecodes(each)
        for instruction in instructions:
            assert bytecodes[instruction.offset] == instruction.opcode


def test_bytecodes_do_not_change_while_the_code_warms_up(env: Environment) -> None:
    before = env.get_bytecodes(free.__code__)
    for number in range(1000):
        free(number)
    assert env.get_bytecodes(free.__code__) == before


def test_code_without_lines(env: Environment) -> None:
    bare = compile("x = 1", "<text>", "exec").replace(co_linetable=b"")
    with pytest.raises(AbsentInformation):
        env.get_line_number_table(bare)


def test_native_and_synthetic(env: Environment) -> None:
    for method in NATIVE:
        assert env.is_method_native(method) is True
        assert env.is_method_synthetic(method) is False
        assert env.is_method_obsolete(method) is False
    synthetic = {each.co_name for each in all_codes() if env.is_method_synthetic(each)}
    assert "<genexpr>" in synthetic
    assert [name for name in synthetic if not name.startswith("<")] == []
    assert env.is_method_native(free.__code__) is False
    assert env.is_method_synthetic(compile("0", "<text>", "exec")) is True


OF_CODE = [
    "get_max_locals",
    "get_arguments_size",
    "get_line_number_table",
    "get_method_location",
    "get_local_variable_table",
    "get_bytecodes",
]
OF_ALL = [
    "get_method_name",
    "get_method_declaring_class",
    "get_method_modifiers",
    "is_method_native",
    "is_method_synthetic",
    "is_method_obsolete",
]


@pytest.mark.parametrize("name", OF_CODE)
def test_what_native_methods_have_not(env: Environment, name: str) -> None:
    for method in NATIVE:
        with pytest.raises(NativeMethod) as raised:
            getattr(env, name)(method)
        assert raised.value.code == 104


@pytest.mark.parametrize("name", OF_CODE + OF_ALL)
def test_no_methods(env: Environment, name: str) -> None:
    for wrong in (None, free, "free", Shapes, 3, vars(collections.deque)["maxlen"]):
        with pytest.raises(InvalidMethodID) as raised:
            getattr(env, name)(wrong)
        assert raised.value.code == 23


@pytest.mark.parametrize(
    "name", ["get_line_number_table", "get_local_variable_table", "get_bytecodes", "is_method_synthetic"]
)
def test_what_needs_a_capability(name: str) -> None:
    with pytest.raises(MustPossessCapability):
        getattr(live(holding=False), name)(None)


def test_a_native_method_has_no_location(env: Environment) -> None:
    native: typing.Any = len
    with pytest.raises(InvalidLocation):
        env.set_breakpoint(native, 0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with 3.12")
def test_generic_methods() -> None:
    made: dict[str, type] = {}
    exec(
        textwrap.dedent("""
        class Box[T]:
            def get[U](self, other: U) -> T:
                return self.value
        """),
        made,
    )
    env = live()
    (method,) = env.get_class_methods(made["Box"])
    assert env.get_method_name(method)[0] == "get"
    assert env.get_method_declaring_class(method) is made["Box"]
