"""Redefining and retransforming classes: what runs afterwards, what must not change, and that it is all or none."""

from __future__ import annotations

import importlib
import inspect
import itertools
import logging
import marshal
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import live
from vmscope.tool.environment import Environment
from vmscope.tool.functions.breakpoints import offsets
from vmscope.tool.sources.event_sources import install
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import (
    FailsVerification,
    InvalidClass,
    InvalidClassFormat,
    MustPossessCapability,
    NamesDontMatch,
    NotFound,
    NullPointer,
    RedefinitionMethodAdded,
    RedefinitionMethodDeleted,
    RedefinitionMethodModifiersChanged,
    RedefinitionSchemaChanged,
    ToolError,
    UnmodifiableClass,
    UnsupportedVersion,
)
from vmscope.tool.spec.events import Event
from vmscope.tool.spec.structs import ClassDefinition

SHOP = """
import functools

def logged(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper

hidden = []

class Shop:
    rate = 19
    if rate > 20:
        def never(self):
            return 0

    def __init__(self, name="old"):
        self.name = name

    def price(self, net):
        return net * 1

    @property
    def label(self):
        return "old " + self.name

    @label.setter
    def label(self, value):
        self.name = "old:" + value

    @staticmethod
    def unit():
        return "old"

    @classmethod
    def make(cls):
        return "old " + cls.__name__

    @logged
    @logged
    def hello(self):
        return "old"

    def numbers(self):
        yield "old 1"
        yield "old 2"

    def __str__(self):
        return "old " + super().__class__.__name__

    key = lambda self: "old"

    class Inner:
        def run(self):
            return "old"
"""

_names = itertools.count()


@pytest.fixture
def env() -> Environment:
    return live()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a file, imported."""
    name = f"vmscope_shop_{next(_names)}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    del sys.modules[name]


def definition(klass: type, source: str) -> ClassDefinition:
    return ClassDefinition(klass, marshal.dumps(compile(source, "new.py", "exec", dont_inherit=True)))


def body_of(klass: type, source: str) -> types.CodeType:
    todo = [compile(source, "new.py", "exec", dont_inherit=True)]
    while todo:
        code = todo.pop()
        if code.co_qualname == klass.__qualname__:
            return code
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    raise AssertionError(klass)


def answers(shop: Any) -> list[object]:
    instance = shop.Shop()
    instance.label = "x"
    return [instance.label, shop.Shop.unit(), shop.Shop.make(), instance.hello(), str(instance), *instance.numbers()]


OLD = ["old old:x", "old", "old Shop", "old", "old super", "old 1", "old 2"]
NEW = [str(each).replace("old", "new") for each in OLD]


def test_every_kind_of_method_gets_its_new_code(env: Environment, shop: Any) -> None:
    assert answers(shop) == OLD
    kept = [shop.Shop().hello, shop.Shop().price, shop.Shop.key, shop.Shop.Inner().run]
    env.redefine_classes([definition(shop.Shop, SHOP.replace("old", "new").replace("net * 1", "net * 2"))])
    assert answers(shop) == NEW
    assert kept[1](3) == 6, "a bound method made before"
    assert kept[0]() == "new", "a function in the closure of its decorators"
    assert shop.Shop().key() == "old", "a lambda"
    assert shop.Shop.Inner().run() == "old", "another class"
    assert shop.Shop().name == "old", "the class's body was not run"
    env.redefine_classes([definition(shop.Shop.Inner, SHOP.replace("old", "new"))])
    assert shop.Shop.Inner().run() == "new"


def test_what_a_definition_may_be(env: Environment, shop: Any, tmp_path: Path) -> None:
    new = SHOP.replace("old", "new")
    env.redefine_classes([ClassDefinition(shop.Shop, body_of(shop.Shop, new))])
    assert answers(shop) == NEW
    env.redefine_classes([ClassDefinition(shop.Shop, marshal.dumps(body_of(shop.Shop, SHOP)))])
    assert answers(shop) == OLD
    header = importlib.util.MAGIC_NUMBER + bytes(12)
    env.redefine_classes(
        [ClassDefinition(shop.Shop, header + marshal.dumps(compile(new, "new.py", "exec", dont_inherit=True)))]
    )
    assert answers(shop) == NEW
    env.redefine_classes([])


def test_running_frames_keep_their_code(env: Environment, shop: Any) -> None:
    running = shop.Shop().numbers()
    assert next(running) == "old 1"
    code = shop.Shop.numbers.__code__
    same = shop.Shop.price.__code__
    assert not env.is_method_obsolete(code)
    env.redefine_classes([definition(shop.Shop, SHOP.replace("old 2", "new 2"))])
    assert running.gi_frame.f_code is code
    assert list(running) == ["old 2"]
    assert list(shop.Shop().numbers()) == ["old 1", "new 2"]
    assert env.is_method_obsolete(code)
    assert not env.is_method_obsolete(shop.Shop.numbers.__code__)
    assert shop.Shop.price.__code__ is same, "an equivalent method stays what it was"
    assert not env.is_method_obsolete(same)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="breakpoints need sys.monitoring")
def test_breakpoints_go_over_to_the_new_code(env: Environment, shop: Any) -> None:
    hello = shop.Shop.hello.__wrapped__.__wrapped__
    replaced, kept = hello.__code__, shop.Shop.price.__code__
    last = max(start for start, _, _ in replaced.co_lines())
    hits: list[tuple[object, int]] = []
    needed = (Capability.CAN_REDEFINE_CLASSES, Capability.CAN_GENERATE_BREAKPOINT_EVENTS)
    env.relinquish_capabilities(set(Capability).difference(needed))  # those of locks change `threading` for good
    install(env.host)
    env.set_event_callbacks({Event.BREAKPOINT: lambda env, thread, method, location: hits.append((method, location))})
    env.set_event_notification_mode(True, Event.BREAKPOINT)
    for code in (replaced, kept):
        env.set_breakpoint(code, 0)
    env.set_breakpoint(replaced, last)
    new = SHOP.replace("old", "new")
    path = shop.__file__
    env.redefine_classes([ClassDefinition(shop.Shop, compile(new, path, "exec", dont_inherit=True))])
    with pytest.raises(NotFound):
        env.clear_breakpoint(replaced, 0)
    hello(shop.Shop())
    assert hello.__code__ is not replaced
    assert hits == [(hello.__code__, 0), (hello.__code__, last)]
    for code in (hello.__code__, kept):
        env.clear_breakpoint(code, 0)
    env.dispose_environment()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="breakpoints need sys.monitoring")
def test_a_breakpoint_that_the_new_code_has_no_instruction_for_is_gone(env: Environment, shop: Any) -> None:
    price = shop.Shop.price
    code = price.__code__
    env.set_breakpoint(code, max(at for at in range(0, len(code.co_code), 2) if at in offsets(code)))
    new = SHOP.replace("net * 1", "net")
    env.redefine_classes([ClassDefinition(shop.Shop, compile(new, shop.__file__, "exec", dont_inherit=True))])
    assert price.__code__ is not code
    assert not env.host.points.by_code


def test_obsolete_code_is_not_kept(env: Environment, shop: Any) -> None:
    from vmscope.tool.functions import redefinition

    before = len(redefinition._obsolete)
    for text in ("new", "newer", "old"):
        env.redefine_classes([definition(shop.Shop, SHOP.replace("old", text))])
    assert len(redefinition._obsolete) == before


def test_calls_go_on_while_a_class_is_redefined(env: Environment, shop: Any) -> None:
    seen: set[object] = set()
    stop = threading.Event()

    def work() -> None:
        instance = shop.Shop()
        while not stop.is_set():
            seen.add(instance.hello())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for text in ["new", "old"] * 4:
        env.redefine_classes([definition(shop.Shop, SHOP.replace("old", text))])
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {"old", "new"}


def test_classes_of_a_function_are_changed_one_by_one(env: Environment) -> None:
    source = textwrap.dedent("""
    def make():
        class Local:
            def run(self):
                return "old"
        return Local
    """)
    scope: dict[str, Callable[[], type[Any]]] = {}
    exec(source, scope)
    first, second = scope["make"](), scope["make"]()
    code = first.run.__code__
    env.redefine_classes([definition(first, source.replace("old", "new"))])
    assert (first().run(), second().run()) == ("new", "old")
    assert not env.is_method_obsolete(code), "the other class has it"
    env.redefine_classes([definition(second, source.replace("old", "new"))])
    assert env.is_method_obsolete(code)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with 3.12")
def test_generic_classes(env: Environment) -> None:
    source = "class Box[T]:\n def get[U](self, other: U) -> T:\n  return 'old'\n def __len__(self): return 1"
    scope: dict[str, type[Any]] = {}
    exec(source, scope)
    env.redefine_classes([definition(scope["Box"], source.replace("old", "new").replace("return 1", "return 2"))])
    assert scope["Box"]().get(1) == "new"
    assert len(scope["Box"]()) == 2


# -- what is wrong --------------------------------------------------------------------------------

WRONG = [
    ("def price(self, net):", "def prize(self, net):", RedefinitionMethodAdded),
    ("def price(self, net):", "def price(self, gross):", RedefinitionMethodAdded),
    ("def price(self, net):", "def price(self, *net):", RedefinitionMethodAdded),
    ("    def price(self, net):\n        return net * 1", "    pass", RedefinitionMethodDeleted),
    ("rate = 19", "rate = 19; other = 3", RedefinitionSchemaChanged),
    ("    key = lambda", "    kay = lambda", RedefinitionSchemaChanged),
    ("return net * 1", "yield net", RedefinitionMethodModifiersChanged),
    ("def price", "async def price", RedefinitionMethodModifiersChanged),
    ("super().__class__.__name__", "self.name", FailsVerification),
    ("return net * 1", "return __class__", FailsVerification),
    ("class Shop", "class Store", NamesDontMatch),
]


@pytest.mark.parametrize(("old", "new", "error"), WRONG, ids=lambda value: getattr(value, "__name__", value))
def test_all_or_none(env: Environment, shop: Any, old: str, new: str, error: type[ToolError]) -> None:
    assert old in SHOP
    codes = env.get_class_methods(shop.Shop.Inner) + env.get_class_methods(shop.Shop)
    wrong = SHOP.replace("old", "new").replace(old, new)
    with pytest.raises(error) as raised:
        env.redefine_classes([definition(shop.Shop.Inner, SHOP.replace("old", "new")), definition(shop.Shop, wrong)])
    assert raised.value.code == error.code
    assert [
        (now, before)
        for now, before in zip(
            env.get_class_methods(shop.Shop.Inner) + env.get_class_methods(shop.Shop), codes, strict=True
        )
        if now is not before
    ] == []


def test_wrong_definitions(env: Environment, shop: Any) -> None:
    good = marshal.dumps(compile(SHOP, "new.py", "exec", dont_inherit=True))
    other = (int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little") - 1).to_bytes(2, "little") + b"\r\n" + bytes(12)
    for klass, data, error in (
        (None, good, InvalidClass),
        (3, good, InvalidClass),
        (int, good, UnmodifiableClass),
        (shop.Shop, None, NullPointer),
        (shop.Shop, 3, InvalidClassFormat),
        (shop.Shop, b"", InvalidClassFormat),
        (shop.Shop, good[:100], InvalidClassFormat),
        (shop.Shop, marshal.dumps(3), InvalidClassFormat),
        (shop.Shop, other + good, UnsupportedVersion),
    ):
        with pytest.raises(error):
            env.redefine_classes([ClassDefinition(klass, data)])  # type: ignore[arg-type]
    with pytest.raises(NullPointer):
        env.redefine_classes(None)  # type: ignore[arg-type]
    with pytest.raises(NullPointer):
        env.retransform_classes(None)  # type: ignore[arg-type]
    for wrong, kind in ((None, InvalidClass), (int, UnmodifiableClass)):
        with pytest.raises(kind):
            env.retransform_classes([wrong])  # type: ignore[list-item]
    assert answers(shop) == OLD


def test_a_forbidden_assignment_changes_nothing(env: Environment, shop: Any) -> None:
    """An audit hook cannot be taken away again: this one is told when to say no."""
    forbidden = [shop.Shop.numbers]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "object.__setattr__" and arguments[0] in forbidden:
            raise PermissionError("not this one")

    sys.addaudithook(hook)
    with pytest.raises(UnmodifiableClass, match="not this one"):
        env.redefine_classes([definition(shop.Shop, SHOP.replace("old", "new"))])
    assert answers(shop) == OLD
    forbidden.clear()
    env.redefine_classes([definition(shop.Shop, SHOP.replace("old", "new"))])
    assert answers(shop) == NEW


def test_what_needs_a_capability() -> None:
    env = live(holding=False)
    with pytest.raises(MustPossessCapability):
        env.redefine_classes([])
    with pytest.raises(MustPossessCapability):
        env.retransform_classes([])


# -- hooks ----------------------------------------------------------------------------------------

Hook = Callable[..., object]


def hooked(env: Environment, hook: Hook) -> None:
    env.set_event_callbacks({Event.CLASS_FILE_LOAD_HOOK: hook})
    env.set_event_notification_mode(True, Event.CLASS_FILE_LOAD_HOOK)


def replacing(old: str, new: str, source: list[str]) -> Hook:
    """A transformer that, for simplicity, knows the source; it gives back what it makes of that."""

    def hook(env: Environment, klass: type, loader: object, name: str, domain: object, data: bytes) -> bytes | None:
        source.append(source[-1].replace(old, new))
        return marshal.dumps(compile(source[-1], inspect.getfile(klass), "exec", dont_inherit=True))

    return hook


def test_retransforming_begins_with_what_was_loaded(env: Environment, shop: Any) -> None:
    seen: list[tuple[object, ...]] = []

    def hook(env: Environment, klass: type, loader: object, name: str, domain: object, data: bytes) -> bytes | None:
        seen.append((klass, loader, name, marshal.loads(data).co_name))
        return (
            None
            if len(seen) > 1
            else marshal.dumps(compile(SHOP.replace("old", "new"), "new.py", "exec", dont_inherit=True))
        )

    hooked(env, hook)
    env.retransform_classes([shop.Shop])
    assert answers(shop) == NEW
    env.retransform_classes([shop.Shop])
    assert answers(shop) == OLD, "the hook changed nothing, so it is what was loaded"
    expected = (shop.Shop, shop.__spec__.loader, f"{shop.__name__}/Shop", "<module>")
    assert seen == [expected, expected]


def test_retransforming_begins_with_the_last_definition(env: Environment, shop: Any) -> None:
    env.redefine_classes([definition(shop.Shop, SHOP.replace("old", "new"))])
    env.retransform_classes([shop.Shop])
    assert answers(shop) == NEW


def test_hooks_are_called_one_after_the_other(env: Environment, shop: Any) -> None:
    late = env.host.get_env(agent="late")
    late.add_capabilities(env.get_capabilities())
    first = env.host.get_env(agent="cannot retransform")
    source = [SHOP]
    hooked(env, replacing("one", "two", source))
    hooked(late, replacing("two", "three", source))
    hooked(first, replacing("old", "one", source))
    env.redefine_classes([definition(shop.Shop, SHOP)])
    assert len(source) == 4
    assert shop.Shop.unit() == "three"
    source[:] = [SHOP.replace("old", "one")]
    env.retransform_classes([shop.Shop])
    assert len(source) == 3, "not the one that cannot retransform"
    assert shop.Shop.unit() == "three"


def test_a_hook_that_fails_changes_nothing(env: Environment, shop: Any, caplog: pytest.LogCaptureFixture) -> None:
    def raising(*arguments: object) -> None:
        raise ValueError("hook")

    for hook, message in ((raising, "hook"), (lambda *_: "text", "gives bytes or None, not a str")):
        hooked(env, hook)
        with caplog.at_level(logging.ERROR, "vmscope.tool"):
            env.retransform_classes([shop.Shop])
        assert message in caplog.text
        assert answers(shop) == OLD


def test_what_cannot_be_retransformed(env: Environment, shop: Any) -> None:
    path = Path(shop.__file__)
    path.write_text(SHOP.replace("old", "other") + "\n# longer\n")
    with pytest.raises(UnmodifiableClass, match="no longer what was loaded"):
        env.retransform_classes([shop.Shop])
    path.unlink()
    with pytest.raises(UnmodifiableClass, match="not to be had again"):
        env.retransform_classes([shop.Shop])
    made = type("Made", (), {})
    with pytest.raises(NamesDontMatch if made.__module__ == __name__ else ToolError):
        env.redefine_classes([definition(made, "class Other: pass")])
    assert env.get_phase() == Phase.LIVE


@pytest.mark.parametrize("name", ["json.decoder", "argparse", "textwrap", "fractions", "configparser", "dataclasses"])
def test_the_standard_library_s_classes_retransform_to_themselves(env: Environment, name: str) -> None:
    module = importlib.import_module(name)
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name and env.is_modifiable_class(value)
        and value.__qualname__ in vars(module)
    ]  # fmt: skip
    before = [code for klass in classes for code in env.get_class_methods(klass)]
    env.retransform_classes(classes)
    after = [code for klass in classes for code in env.get_class_methods(klass)]
    assert [(now, then) for now, then in zip(after, before, strict=True) if now is not then] == []
