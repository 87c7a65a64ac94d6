"""Classes, modules, loaders and fields, beside what inspect, gc, sys and importlib say of the same things."""

from __future__ import annotations

import abc
import array
import collections
import ctypes
import dataclasses
import enum
import gc
import importlib.util
import inspect
import marshal
import py_compile
import sys
import types
import typing
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents import live
from vmscope.tool.environment import Environment
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import (
    AbsentInformation,
    ClassLoaderUnsupported,
    IllegalArgument,
    InvalidClass,
    InvalidFieldID,
    InvalidModule,
    InvalidObject,
    NullPointer,
    ToolError,
)

T = typing.TypeVar("T")
RAN: list[str] = []  # what code of the classes below was run by looking at them


class Meta(type):
    """Looks at nothing without saying so."""

    def __getattribute__(cls, name: str) -> object:
        RAN.append(name)
        return super().__getattribute__(name)

    def __eq__(cls, other: object) -> bool:
        RAN.append("__eq__")
        return cls is other

    __hash__ = type.__hash__


class Order(metaclass=Meta):
    rate = 19
    count: int = 0
    names: list[str]
    _kept: Order

    class Line:
        __slots__ = ("__secret", "price")

        def __init__(self) -> None:
            self.__secret = self.price = 1

    def __init__(self, total: float) -> None:
        self.total = total
        self.__hidden = total
        self._kept = self

    @property
    def doubled(self) -> float:
        return self.total * 2

    @doubled.setter
    def doubled(self, value: float) -> None:
        self.total = value / 2

    @staticmethod
    def of(text: str) -> Order:
        return Order(float(text))

    @classmethod
    def zero(cls) -> Order:
        return cls(0)

    def __getattr__(self, name: str) -> object:
        RAN.append(name)
        raise AttributeError(name)

    def __sizeof__(self) -> int:
        RAN.append("sizeof")
        return 10**6

    def __hash__(self) -> int:
        RAN.append("hash")
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


class Rush(Order):
    by: typing.Final[str] = "plane"


class _Private(typing.Generic[T]):
    pass


@typing.final
class Last:
    pass


class Colour(enum.Enum):
    RED = 1


class Sized(typing.Protocol):
    def __len__(self) -> int: ...


class Walks(abc.ABC):
    @abc.abstractmethod
    def walk(self) -> None: ...

    def twice(self) -> None:
        self.walk()
        self.walk()


class Base(abc.ABC):
    """Makes objects ready: no interface."""

    def __init__(self) -> None:
        self.steps = 0

    @abc.abstractmethod
    def walk(self) -> None: ...


class Dog(Base, Walks):
    def walk(self) -> None:
        self.steps += 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@pytest.fixture
def env() -> Environment:
    RAN.clear()
    return live()


@pytest.fixture
def path() -> Iterator[list[str]]:
    kept, before = sys.path, list(sys.path)
    yield kept
    sys.path = kept
    kept[:] = before


# -- classes --------------------------------------------------------------------------------------


def test_every_class_is_found_once(env: Environment) -> None:
    found = env.get_loaded_classes()
    assert len({id(klass) for klass in found}) == len(found)
    ids = {id(klass) for klass in found}
    tracked = [
        each for each in gc.get_objects() if issubclass(type(each), type)
    ]  # isinstance: list[int] says it is one
    assert {id(each) for each in tracked} - ids == set()
    assert {id(each) for each in vars(types).values() if issubclass(type(each), type)} - ids == set()
    assert {id(object), id(type), id(int), id(Order.Line)} <= ids


@pytest.mark.parametrize(
    ("klass", "signature", "generic"),
    [
        (int, "Lbuiltins/int;", None),
        (Order.Line, f"L{__name__.replace('.', '/')}/Order$Line;", None),
        (_Private, f"L{__name__.replace('.', '/')}/_Private;", "_Private[T]"),
        (collections.OrderedDict, "Lcollections/OrderedDict;", None),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_signatures(env: Environment, klass: type, signature: str, generic: str | None) -> None:
    assert env.get_class_signature(klass) == (signature, generic)


def test_signatures_are_the_classes_names(env: Environment) -> None:
    for klass in env.get_loaded_classes():
        signature, _ = env.get_class_signature(klass)
        name = type.__dict__["__qualname__"].__get__(klass).replace(".", "$")
        of = type.__dict__["__module__"].__get__(klass)  # not klass.__module__, which is its metaclass's affair
        assert signature == (f"L{of.replace('.', '/')}/{name};" if isinstance(of, str) and of else f"L{name};")


def test_status_and_what_can_be_changed(env: Environment) -> None:
    for klass in env.get_loaded_classes():
        assert env.get_class_status(klass) & 7 == 7
        assert bool(env.get_class_status(klass) & 16) == env.is_array_class(klass)
    for klass, modifiable in ((Order, True), (Point, True), (int, False), (type, False), (collections.deque, False)):
        assert env.is_modifiable_class(klass) is modifiable
        if not modifiable:
            with pytest.raises(TypeError):
                type.__setattr__(klass, "new_attribute", 1)


def test_array_classes(env: Environment) -> None:
    yes: list[type] = [
        list,
        tuple,
        bytes,
        bytearray,
        array.array,
        ctypes.c_int * 3,
        collections.namedtuple("pair", "a b"),
    ]
    assert [env.is_array_class(klass) for klass in yes] == [True] * len(yes)
    no: list[type] = [dict, str, set, Order, memoryview, collections.deque]
    assert [env.is_array_class(klass) for klass in no] == [False] * len(no)


def test_interfaces(env: Environment) -> None:
    yes: list[type] = [Sized, Walks, collections.abc.Iterable, collections.abc.Mapping, typing.SupportsInt]
    assert [env.is_interface(klass) for klass in yes] == [True] * len(yes)
    no: list[type] = [Base, Dog, abc.ABC, object, int, Order, Colour]
    assert [env.is_interface(klass) for klass in no] == [False] * len(no)
    assert env.get_implemented_interfaces(Dog) == [Walks]
    assert env.get_implemented_interfaces(collections.abc.Collection) == [
        collections.abc.Sized,
        collections.abc.Iterable,
        collections.abc.Container,
    ]


PUBLIC, PRIVATE, FINAL, INTERFACE, ABSTRACT, ENUM = 1, 2, 0x10, 0x200, 0x400, 0x4000


@pytest.mark.parametrize(
    ("klass", "modifiers"),
    [
        (Order, PUBLIC),
        (_Private, PRIVATE),
        (Last, PUBLIC | FINAL),
        (bool, PUBLIC | FINAL),
        (Colour, PUBLIC | ENUM),
        (Walks, PUBLIC | INTERFACE | ABSTRACT),
        (Base, PUBLIC | ABSTRACT),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_modifiers(env: Environment, klass: type, modifiers: int) -> None:
    assert env.get_class_modifiers(klass) == modifiers


def test_abstract_is_what_inspect_says(env: Environment) -> None:
    for klass in env.get_loaded_classes():
        if klass is not type:  # inspect.isabstract(type) is asked of its own flags
            assert bool(env.get_class_modifiers(klass) & ABSTRACT) == inspect.isabstract(klass)


def test_the_source_file_is_inspect_s(env: Environment) -> None:
    compared = 0
    for klass in env.get_loaded_classes():
        try:
            name = env.get_source_file_name(klass)
        except AbsentInformation:
            continue
        if name == getattr(sys.modules.get(klass.__module__), "__file__", None):
            compared += 1
        else:  # frozen, or `__module__` names the module that offers it
            codes = [each for each in env.get_class_methods(klass) if isinstance(each, types.CodeType)]
            assert name in {inspect.getfile(code) for code in codes}
    assert compared > 50
    assert env.get_source_file_name(Order) == __file__
    assert env.get_source_file_name(Last) == __file__, "no method, but a module"
    for klass in (int, collections.deque, types.FunctionType):
        with pytest.raises(AbsentInformation):
            env.get_source_file_name(klass)


def test_methods_in_the_order_of_definition(env: Environment) -> None:
    codes = env.get_class_methods(Order)
    functions: list[object] = [
        vars(Order)["__init__"],
        vars(Order)["doubled"].fget,
        vars(Order)["doubled"].fset,
        vars(Order)["of"].__func__,
        vars(Order)["zero"].__func__,
        *(vars(Order)[name] for name in ("__getattr__", "__sizeof__", "__hash__", "__eq__")),
    ]
    assert codes == [function.__code__ for function in functions if isinstance(function, types.FunctionType)]
    assert len(codes) == len(functions)
    lines = [code.co_firstlineno for code in codes if isinstance(code, types.CodeType)]
    assert lines == sorted(lines)


def test_methods_of_every_class_are_those_that_inspect_finds(env: Environment) -> None:
    native = types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType
    for klass in env.get_loaded_classes():
        found = env.get_class_methods(klass)
        for name, value in type.__dict__["__dict__"].__get__(klass).items():
            if name == "__annotate_func__":  # the compiler's, from 3.14 on
                continue
            if isinstance(value, native):
                assert any(each is value for each in found), found
            elif isinstance(value, types.FunctionType):
                written = [
                    value.__code__,
                    getattr(inspect.unwrap(value), "__code__", None),
                    *functions_in(value.__closure__ or ()),
                ]
                assert any(each in written for each in found), found


def functions_in(cells: tuple[types.CellType, ...]) -> list[types.CodeType]:
    return [each.cell_contents.__code__ for each in cells if isinstance(each.cell_contents, types.FunctionType)]


def test_methods_behind_decorators(env: Environment) -> None:
    def logged(function: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*arguments: object) -> object:
            return function(*arguments)

        return wrapper

    class Decorated:
        @logged
        @logged
        def run(self) -> None: ...

        borrowed = logged(test_status_and_what_can_be_changed)
        key = staticmethod(lambda value: value)

    names = [code.co_qualname.rpartition(".")[2] for code in env.get_class_methods(Decorated)]  # type: ignore[union-attr]
    assert names == ["run", "wrapper", "<lambda>"]
    made = {env.get_method_name(method)[0] for method in env.get_class_methods(Point)}
    assert {"__init__", "__eq__"} <= made


def test_hash_code_and_size(env: Environment) -> None:
    for thing in (object(), [], "text", 7, Order(1), int, types.SimpleNamespace()):
        assert env.get_object_hash_code(thing) == object.__hash__(thing) & 0x7FFF_FFFF
        if not isinstance(thing, Order):
            assert env.get_object_size(thing) == sys.getsizeof(thing)
    RAN.clear()
    plain = type("Plain", (), {"__init__": Order.__init__})(1)
    RAN.clear()
    assert env.get_object_size(Order(1)) == sys.getsizeof(plain)
    assert "sizeof" not in RAN


def test_looking_runs_no_code_of_the_program(env: Environment) -> None:
    order = Order(1)
    RAN.clear()
    for klass in (Order, Rush):
        env.get_class_signature(klass)
        env.get_class_modifiers(klass)
        env.get_class_fields(klass)
        env.get_class_methods(klass)
        env.get_class_loader(klass)
        env.get_source_file_name(klass)
        env.get_implemented_interfaces(klass)
        env.is_array_class(klass)
    for method in env.get_class_methods(Order):
        assert env.get_method_declaring_class(method) is Order
        env.get_method_modifiers(method)
    env.get_object_size(order)
    env.get_object_hash_code(order)
    assert RAN == []


def test_annotations_are_not_evaluated(env: Environment) -> None:
    """CPython 3.14 evaluates them when they are first asked for; in earlier ones they are by then."""
    ran: list[str] = []

    def kind(name: str) -> type:
        ran.append(name)
        return str

    source = (
        "class Parcel:\n a: kind('a')\n b: int = 0\n if b == 0:\n  c: list[int]\n def weigh(self, d: kind('d')): pass\n"
        "import typing\n"
        "class Part(typing.TypedDict):\n e: int\n"
    )
    scope: dict[str, typing.Any] = {"kind": kind, "__name__": __name__}
    exec(compile(source, "parcel.py", "exec", dont_inherit=True), scope)
    ran.clear()
    parcel, part = scope["Parcel"], scope["Part"]
    before = dict(vars(parcel))
    fields = [name for name in env.get_class_fields(parcel) if not env.is_field_synthetic(parcel, name)]
    assert sorted(fields) == ["a", "b", "c"]
    assert env.get_class_methods(parcel) == [parcel.weigh.__code__]
    assert env.get_field_name(parcel, "b") == ("b", "Lbuiltins/int;", None)
    assert env.get_field_name(parcel, "c") == ("c", "Lbuiltins/object;", "list[int]")
    assert env.get_field_name(part, "e") == ("e", "Lbuiltins/int;", None)
    assert ran == []
    assert dict(vars(parcel)) == before


def test_version_numbers(env: Environment, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    compiled = py_compile.compile(str(tmp_path / "empty.py"), str(tmp_path / "empty.pyc"))
    assert compiled is not None
    assert env.get_class_version_numbers(Order) == (0, int.from_bytes(Path(compiled).read_bytes()[:2], "little"))
    with pytest.raises(AbsentInformation):
        env.get_class_version_numbers(int)


def test_constant_pool(env: Environment) -> None:
    entries, constants = env.get_constant_pool(Order.Line)
    code = Order.Line.__init__.__code__
    assert marshal.loads(constants) == ((code.co_consts, code.co_names),)
    assert entries == len(code.co_consts) + len(code.co_names)
    for klass in (int, Last):
        with pytest.raises(AbsentInformation):
            env.get_constant_pool(klass)


# -- fields ---------------------------------------------------------------------------------------


def test_fields(env: Environment) -> None:
    fields = [name for name in env.get_class_fields(Order) if not env.is_field_synthetic(Order, name)]
    assert fields[:6] == ["count", "names", "_kept", "rate", "Line", *fields[5:6]]
    assert set(fields[5:]) == {"total", "_Order__hidden"}
    assert [name for name in env.get_class_fields(Point) if not name.startswith("__")] == ["x", "y"]
    assert {"_Line__secret", "price"} <= set(env.get_class_fields(Order.Line))
    assert {"real", "imag"} <= set(env.get_class_fields(int))
    assert set(env.get_class_fields(Order)) - set(fields) <= set(dir(type)) | set(vars(Order))


def test_what_a_field_is(env: Environment) -> None:
    order = f"L{__name__.replace('.', '/')}/Order;"
    assert env.get_field_name(Order, "count") == ("count", "Lbuiltins/int;", None)
    assert env.get_field_name(Rush, "names") == ("names", "Lbuiltins/object;", "list[str]")
    assert env.get_field_name(Order, "total") == ("total", "Lbuiltins/object;", None)
    assert env.get_field_name(Order, "_kept") == ("_kept", order, None)
    assert env.get_field_declaring_class(Rush, "by") is Rush
    assert env.get_field_declaring_class(Rush, "total") is Order
    assert env.get_field_declaring_class(Rush, "__doc__") is Rush
    assert env.get_field_modifiers(Order, "rate") == 0x1 | 0x8
    assert env.get_field_modifiers(Rush, "total") == 0x1
    assert env.get_field_modifiers(Order, "_kept") == 0x4
    assert env.get_field_modifiers(Rush, "_Order__hidden") == 0x2
    assert env.get_field_modifiers(Rush, "by") == 0x1 | 0x8 | 0x10
    assert env.get_field_modifiers(Order.Line, "price") == 0x1
    assert env.get_field_modifiers(Order, "__module__") == 0x1 | 0x8 | 0x1000
    assert env.is_field_synthetic(Order, "__module__")
    assert not env.is_field_synthetic(Order, "rate")


@pytest.mark.parametrize(
    "name", ["get_field_name", "get_field_declaring_class", "get_field_modifiers", "is_field_synthetic"]
)
def test_wrong_fields(env: Environment, name: str) -> None:
    ask = getattr(env, name)
    for klass, field, error in (
        (None, None, InvalidClass),
        (Order(1), "total", InvalidClass),
        (Order, None, InvalidFieldID),
        (Order, 3, InvalidFieldID),
        (Order, "no such", InvalidFieldID),
        (Order, "of", InvalidFieldID),
        (Order, "by", InvalidFieldID),
    ):
        with pytest.raises(error):
            ask(klass, field)


@pytest.mark.parametrize(
    "name",
    [
        "is_modifiable_class",
        "get_class_signature",
        "get_class_status",
        "get_source_file_name",
        "get_class_modifiers",
        "get_class_methods",
        "get_class_fields",
        "get_implemented_interfaces",
        "is_interface",
        "is_array_class",
        "get_class_loader",
        "get_class_version_numbers",
        "get_constant_pool",
    ],
)
def test_no_classes(env: Environment, name: str) -> None:
    for wrong in (None, "int", Order(1), sys, list[int]):
        with pytest.raises(InvalidClass) as raised:
            getattr(env, name)(wrong)
        assert raised.value.code == 21


def test_no_object(env: Environment) -> None:
    for ask in (env.get_object_hash_code, env.get_object_size):
        with pytest.raises(InvalidObject):
            ask(None)


# -- modules and loaders --------------------------------------------------------------------------


def test_every_module_is_found_once(env: Environment) -> None:
    sys.modules["tests.no_module"] = typing.cast(types.ModuleType, object())
    sys.modules["tests.again"] = sys
    try:
        found = env.get_all_modules()
    finally:
        del sys.modules["tests.no_module"], sys.modules["tests.again"]
    assert len(found) == len({id(module) for module in found})
    modules = [each for each in sys.modules.values() if issubclass(type(each), types.ModuleType)]  # typing.io is none
    assert {id(module) for module in modules} == {id(module) for module in found}


def test_loaders(env: Environment) -> None:
    loader = sys.modules[__name__].__spec__.loader  # type: ignore[union-attr]
    assert env.get_class_loader(Order) is loader
    assert env.get_class_loader(int) is None
    assert env.get_class_loader(importlib.util.spec_from_loader.__class__) is None
    assert set(env.get_class_loader_classes(loader)) >= {Order, Rush, Order.Line, Sized}
    for klass in env.get_class_loader_classes(loader):  # pytest's is that of each module that it rewrites
        assert sys.modules[klass.__module__].__spec__.loader is loader  # type: ignore[union-attr]
    bootstrap = env.get_class_loader_classes(None)
    assert int in bootstrap
    assert Order not in bootstrap
    assert env.get_named_module(loader, __name__) is sys.modules[__name__]
    assert env.get_named_module(loader, __name__.replace(".", "/")) is sys.modules[__name__]
    assert env.get_named_module(None, __name__) is None
    assert env.get_named_module(None, "builtins") is sys.modules["builtins"]
    assert env.get_named_module(None, "no.such") is None
    assert env.is_modifiable_module(sys) is True


def test_wrong_loaders_and_modules(env: Environment) -> None:
    for wrong in (3, "loader", Order):
        with pytest.raises(IllegalArgument):
            env.get_class_loader_classes(wrong)
        with pytest.raises(IllegalArgument):
            env.get_named_module(wrong, "sys")
    with pytest.raises(NullPointer):
        env.get_named_module(None, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidModule):
        env.is_modifiable_module(3)  # type: ignore[arg-type]
    with pytest.raises(NullPointer):
        env.is_modifiable_module(None)  # type: ignore[arg-type]


def test_search_paths(env: Environment, tmp_path: Path, path: list[str]) -> None:
    first, second, last = (str(tmp_path / name) for name in ("first", "second", "last.zip"))
    for folder in (first, second):
        Path(folder).mkdir()
        Path(folder, "vmscope_test_where.py").write_text(f"where = {folder!r}")
    with zipfile.ZipFile(last, "w") as archive:
        archive.writestr("vmscope_test_zipped.py", "where = 'zip'")
    assert importlib.util.find_spec("vmscope_test_zipped") is None
    before = list(path)
    env.add_to_system_class_loader_search(last)
    env.add_to_bootstrap_class_loader_search(first)
    env.add_to_bootstrap_class_loader_search(second)
    assert [entry for entry in path if entry not in (first, second, last)] == before
    assert path[-1] == last
    place = path.index(first)
    assert path[place + 1] == second
    assert any(entry.endswith("lib-dynload") for entry in path[:place]), path
    assert [entry for entry in path[:place] if entry not in before[:1] and "site-packages" in entry] == []
    for name, where in (("vmscope_test_where", first), ("vmscope_test_zipped", "zip")):
        assert importlib.import_module(name).where == where
        del sys.modules[name]


def test_wrong_search_paths(env: Environment, tmp_path: Path, path: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    not_zip = tmp_path / "text"
    not_zip.write_text("no zip")
    for add in (env.add_to_bootstrap_class_loader_search, env.add_to_system_class_loader_search):
        for wrong, error in (
            (None, NullPointer),
            (str(not_zip), IllegalArgument),
            (str(tmp_path / "none"), IllegalArgument),
            (b"bytes", IllegalArgument),
        ):
            with pytest.raises(error):
                add(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "path", tuple(sys.path))
    with pytest.raises(ClassLoaderUnsupported):
        env.add_to_system_class_loader_search(str(tmp_path))


def test_search_paths_are_not_looked_at_in_onload(tmp_path: Path, path: list[str]) -> None:
    env = live()
    env.host.phase = Phase.ONLOAD
    later = str(tmp_path / "later")
    env.add_to_system_class_loader_search(later)
    assert path[-1] == later


def test_what_needs_a_capability() -> None:
    env = live(holding=False)
    for name, arguments in (
        ("get_source_file_name", (None,)),
        ("get_constant_pool", (None,)),
        ("is_field_synthetic", (None, None)),
        ("get_source_debug_extension", (None,)),
    ):
        with pytest.raises(ToolError) as raised:
            getattr(env, name)(*arguments)
        assert raised.value.code == 99
    for name, given in (("get_jni_function_table", ()), ("set_jni_function_table", (object(),))):
        with pytest.raises(ToolError) as raised:
            getattr(env, name)(*given)
        assert raised.value.code == 98
