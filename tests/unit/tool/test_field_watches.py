"""Watched fields: FieldAccess and FieldModification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.agents import live_vm
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.errors import (
    Duplicate,
    InvalidClass,
    InvalidFieldID,
    MustPossessCapability,
    NotAvailable,
    NotFound,
    UnmodifiableClass,
)
from vmscope.tool.spec.events import Event

ACCESS, MODIFICATION = Event.FIELD_ACCESS, Event.FIELD_MODIFICATION
HOLDS = (Capability.CAN_GENERATE_FIELD_ACCESS_EVENTS, Capability.CAN_GENERATE_FIELD_MODIFICATION_EVENTS)


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: int) -> None:
        self.x = x


class Lazy:
    """With `__getattr__` and `__setattr__` of its own."""

    x: int

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "x":
            return self.stored.get(name, 0)
        raise AttributeError(name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "x":
            self.stored[name] = value
        else:
            object.__setattr__(self, name, value)


class Deeper(Point):
    pass


@pytest.fixture
def vm() -> Iterator[Host]:
    classes = (Point, Slotted, Lazy, Deeper)
    before = [dict(vars(each)) for each in classes]
    with live_vm() as vm:
        yield vm
    assert [dict(vars(each)) for each in classes] == before


@pytest.fixture
def log() -> list[Any]:
    return []


@pytest.fixture
def env(vm: Host, log: list[Any]) -> Environment:
    def accessed(env: Environment, thread: object, *arguments: Any) -> None:
        method, location, klass, instance, field = arguments
        log.append(("access", method.co_name, klass, instance, field, getattr(instance, field)))
        assert 0 <= location < len(method.co_code)

    def modified(env: Environment, thread: object, *arguments: Any) -> None:
        method, location, klass, instance, field, value = arguments
        log.append(("modification", method.co_name, klass, instance, field, value))
        assert 0 <= location < len(method.co_code)

    env = vm.get_env()
    env.add_capabilities(HOLDS)
    env.set_event_callbacks({ACCESS: accessed, MODIFICATION: modified})
    env.set_event_notification_mode(True, ACCESS)
    env.set_event_notification_mode(True, MODIFICATION)
    return env


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="frames of the twin stand between the program's own")
def test_an_access(env: Environment, log: list[Any]) -> None:
    point = Point(1, 2)
    env.set_field_access_watch(Point, "x")
    assert (point.x, point.y) == (1, 2)
    assert log == [("access", "test_an_access", Point, point, "x", 1)]
    env.clear_field_access_watch(Point, "x")
    assert point.x == 1
    assert len(log) == 1


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="frames of the twin stand between the program's own")
def test_a_modification_is_told_before(env: Environment, log: list[Any]) -> None:
    env.set_field_modification_watch(Point, "y")
    point = Point(1, 2)
    point.y = 3
    point.x = 4
    assert log == [
        ("modification", "__init__", Point, point, "y", 2),
        ("modification", "test_a_modification_is_told_before", Point, point, "y", 3),
    ]
    assert (point.x, point.y) == (4, 3)


@pytest.mark.parametrize("make", [lambda: Slotted(1), Lazy, lambda: Deeper(1, 2)])
def test_other_kinds_of_classes(env: Environment, log: list[Any], make: Any) -> None:
    instance = make()
    klass = type(instance)
    owner = Point if klass is Deeper else klass
    env.set_field_access_watch(klass, "x")
    env.set_field_modification_watch(klass, "x")
    instance.x = 5
    assert instance.x == 5
    assert [(line[0], line[2], line[4]) for line in log] == [("modification", owner, "x"), ("access", owner, "x")]
    with pytest.raises(AttributeError):
        instance.nothing  # noqa: B018


def test_two_fields_and_one_less(env: Environment, log: list[Any]) -> None:
    env.set_field_access_watch(Point, "x")
    env.set_field_access_watch(Point, "y")
    point = Point(1, 2)
    assert point.x + point.y == 3
    env.clear_field_access_watch(Point, "x")
    assert point.x + point.y == 3
    assert [line[4] for line in log] == ["x", "y", "y"]


def test_only_while_somebody_wants_it(env: Environment, log: list[Any]) -> None:
    env.set_field_access_watch(Point, "x")
    assert "__getattribute__" in vars(Point)
    env.set_event_notification_mode(False, ACCESS)
    assert "__getattribute__" not in vars(Point)
    env.set_event_notification_mode(True, ACCESS)
    assert Point(1, 2).x == 1
    assert len(log) == 1


def test_a_callback_that_raises(env: Environment, caplog: pytest.LogCaptureFixture) -> None:
    def raises(*_: object) -> None:
        raise AttributeError

    env.set_event_callbacks({ACCESS: raises})
    env.set_field_access_watch(Point, "x")
    assert Point(1, 2).x == 1
    assert "FIELD_ACCESS" in caplog.text


def test_errors(env: Environment, vm: Host) -> None:
    with pytest.raises(InvalidFieldID):
        env.set_field_access_watch(Point, "nothing")
    wrong: Any = Point(1, 2)
    with pytest.raises(InvalidClass):
        env.set_field_access_watch(wrong, "x")
    with pytest.raises(UnmodifiableClass):
        env.set_field_access_watch(complex, "real")
    with pytest.raises(NotFound):
        env.clear_field_access_watch(Point, "x")
    env.set_field_modification_watch(Point, "x")
    with pytest.raises(Duplicate):
        env.set_field_modification_watch(Point, "x")
    other = vm.get_env()
    with pytest.raises(MustPossessCapability):
        other.set_field_access_watch(Point, "x")
    with pytest.raises(NotAvailable):
        other.add_capabilities(HOLDS)
