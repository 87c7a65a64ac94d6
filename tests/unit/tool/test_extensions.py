"""Extension events and functions."""

from __future__ import annotations

import logging

import pytest

from vmscope.tool.environment import Environment
from vmscope.tool.functions.extensions import EXTENSION_EVENTS, Extension
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument
from vmscope.tool.spec.events import EXTENSION_BITS, FIRST_EXTENSION, Event, bit


@pytest.fixture
def vm() -> Host:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.ONLOAD)
    return vm


@pytest.fixture
def env(vm: Host) -> Environment:
    return vm.get_env(agent="tester")


def live(vm: Host) -> None:
    for phase in (Phase.PRIMORDIAL, Phase.START, Phase.LIVE):
        vm.enter(phase)


def test_only_what_a_mechanism_makes_is_offered(vm: Host, env: Environment) -> None:
    assert env.get_extension_events() == []
    with pytest.raises(IllegalArgument, match="100"):
        env.set_extension_event_callback(Extension.RESUME, print)
    vm.extension_events |= {Extension.YIELD, Extension.RESUME}
    assert [event.index for event in env.get_extension_events()] == [Extension.RESUME, Extension.YIELD]
    assert {event.id for event in env.get_extension_events()} == {"vmscope.Resume", "vmscope.Yield"}


def test_a_callback_enables_and_none_disables(vm: Host, env: Environment) -> None:
    vm.extension_events |= set(Extension)
    seen: list[tuple[object, ...]] = []
    env.set_extension_event_callback(Extension.CALL_C, lambda env, *told: seen.append(told))
    assert vm.wanted() == 0, "not in ONLOAD"
    live(vm)
    assert vm.wanted() == bit(Extension.CALL_C)
    thread = threads.current()
    vm.post(Extension.CALL_C, thread, None, 0, len)
    assert seen == [(thread, None, 0, len)]
    env.set_event_callbacks({Event.METHOD_ENTRY: print})
    assert vm.wanted() == bit(Extension.CALL_C), "other callbacks leave it alone"
    env.set_event_callbacks(None)
    vm.post(Extension.CALL_C, thread, None, 0, len)
    assert len(seen) == 2
    env.set_extension_event_callback(Extension.CALL_C, None)
    assert vm.wanted() == 0
    vm.post(Extension.CALL_C, thread, None, 0, len)
    assert len(seen) == 2


def test_one_that_raises_is_disabled(vm: Host, env: Environment, caplog: pytest.LogCaptureFixture) -> None:
    vm.extension_events |= set(Extension)
    live(vm)

    def fail(env: Environment, *told: object) -> None:
        raise ValueError("no")

    env.set_extension_event_callback(Extension.YIELD, fail)
    with caplog.at_level(logging.ERROR, "vmscope.tool"):
        for _ in range(12):
            vm.post(Extension.YIELD, threads.current(), None, 0, None)
    assert len(caplog.records) == 10
    assert "YIELD" in caplog.text
    assert vm.wanted() == 0
    env.set_extension_event_callback(Extension.YIELD, fail)
    assert vm.wanted() == bit(Extension.YIELD)


def test_wrong_arguments(vm: Host, env: Environment) -> None:
    vm.extension_events |= set(Extension)
    with pytest.raises(IllegalArgument):
        env.set_extension_event_callback(Event.METHOD_ENTRY, print)
    with pytest.raises(IllegalArgument):
        env.set_extension_event_callback(Extension.YIELD, 7)  # type: ignore[arg-type]


def test_extensions_have_places_of_their_own() -> None:
    assert set(EXTENSION_EVENTS) == set(Extension)
    assert [index for index in Extension if not (bit(index) & EXTENSION_BITS)] == []
    assert [event for event in Event if bit(event) & EXTENSION_BITS] == []
    assert bit(FIRST_EXTENSION) & EXTENSION_BITS
    assert EXTENSION_BITS < 1 << 64


def test_functions(vm: Host, env: Environment) -> None:
    env.add_capabilities({Capability.CAN_TAG_OBJECTS})
    by_name = {each.id: each for each in env.get_extension_functions()}
    holders = by_name["vmscope.GetCapabilityHolders"].call
    assert holders(Capability.CAN_TAG_OBJECTS) == ["tester"]
    assert holders(Capability.CAN_SUSPEND) == []
    assert by_name["vmscope.GetDerivedFlags"].call() == vm.rules.flags()
