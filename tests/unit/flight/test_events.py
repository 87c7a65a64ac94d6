"""Events of the program's own, before anything records them."""

from __future__ import annotations

import pickle

import pytest

import vmscope
from vmscope import native
from vmscope.errors import EventExistsError, EventNameError
from vmscope.flight import events, types


@pytest.fixture(autouse=True)
def no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENTS", {})


def test_an_event_that_nothing_records_is_not_written() -> None:
    order = vmscope.event("shop.Order", number=int, amount=float, rush=bool, customer=str)
    assert order.commit(7, 19.9, True, "Ann") is False
    assert order.commit("what fits is looked at only where it is recorded") is False
    assert order.enabled is False


def test_a_block_that_nothing_records_runs_and_raises_as_ever() -> None:
    order = vmscope.event("shop.Order", number=int)
    ran = []

    def sell() -> None:
        with order.timing(7) as timing:
            timing.values = (8,)
            ran.append(timing.values)
            raise KeyError

    with pytest.raises(KeyError):
        sell()
    assert ran == [(8,)]


def test_the_same_event_is_the_same_object() -> None:
    order = vmscope.event("shop.Order", number=int)
    assert vmscope.event("shop.Order", number=int) is order
    with pytest.raises(EventExistsError, match=r"there is an event <Event shop\.Order"):
        vmscope.event("shop.Order", number=str)
    with pytest.raises(EventExistsError):
        vmscope.event("shop.Order")


@pytest.mark.parametrize("name", ["", "Order", "jdk.Order", "vmscope.Order", "shop.Or der", "shop.", "a.b\n"])
def test_a_name_that_readers_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(EventNameError) as caught:
        vmscope.event(name)
    assert repr(name) in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"startTime": int},
        {"stackTrace": str},
        {"with space": int},
        {"price": complex},
        {f"f{i}": int for i in range(30)},
    ],
)
def test_a_field_that_an_event_cannot_have_is_refused(fields: dict[str, type]) -> None:
    with pytest.raises(EventNameError):
        vmscope.event("shop.Order", **fields)
    assert events.EVENTS == {}


def test_its_fields_follow_those_of_each_event() -> None:
    order = vmscope.event("shop.Order", number=int, amount=float, rush=bool, customer=str)
    made = types.event_type(order.name, 1000, events.words(order), "Program")
    assert [(field.name, field.letter) for field in made.fields] == [
        ("startTime", ""),
        ("duration", "D"),
        ("eventThread", "T"),
        ("stackTrace", "K"),
        ("number", "l"),
        ("amount", "d"),
        ("rush", "b"),
        ("customer", "s"),
    ]


@pytest.mark.skipif(not hasattr(native, "event_type"), reason="the twins record nothing")
@pytest.mark.parametrize("fields", ["x", "l" * 33, "DTKl "])
def test_the_encoder_refuses_fields_that_it_does_not_know(fields: str) -> None:
    with pytest.raises(ValueError, match="up to 32 of DTKldfbsct"):
        native.event_type(fields)


@pytest.mark.skipif(not hasattr(native, "event_type"), reason="the twins record nothing")
def test_one_that_no_recorder_has_is_not_written_though_it_is_on() -> None:
    made = native.event_type("DTKl")
    made.enabled = True
    assert made.commit_now(7) is False
    with pytest.raises(TypeError, match="1 values are wanted, not 2"):
        made.commit_now(7, 8)
    with pytest.raises(TypeError, match="the one keyword argument is start"):
        made.commit_now(7, begin=8)  # type: ignore[call-arg]
