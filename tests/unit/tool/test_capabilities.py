"""The capability rules, with HotSpot's sets and CPython's."""

from __future__ import annotations

import sys

import pytest

from vmscope import native, tool
from vmscope.tool.spec.available_capabilities import SERVED_BY, TRACER, features, features_of, why_absent
from vmscope.tool.spec.capabilities import DERIVED, Capability, CapabilityRules, CapabilitySet, mask
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, NotAvailable, NullPointer, WrongPhase

TAG, BREAKPOINT, SUSPEND, ENTRY, RETRANSFORM = mask(0), mask(19), mask(20), mask(24), mask(37)


@pytest.fixture
def rules() -> CapabilityRules:
    return CapabilityRules(always=TAG | RETRANSFORM, onload=ENTRY, always_solo=SUSPEND, onload_solo=BREAKPOINT)


def test_what_is_potential_depends_on_the_phase(rules: CapabilityRules) -> None:
    assert rules.potential(0, 0, Phase.ONLOAD) == TAG | RETRANSFORM | ENTRY | SUSPEND | BREAKPOINT
    assert rules.potential(0, 0, Phase.LIVE) == TAG | RETRANSFORM | SUSPEND
    assert rules.potential(ENTRY, 0, Phase.LIVE) == TAG | RETRANSFORM | SUSPEND | ENTRY


def test_prohibition_masks_what_could_always_be_had_only(rules: CapabilityRules) -> None:
    assert rules.potential(0, RETRANSFORM | SUSPEND | ENTRY, Phase.ONLOAD) == TAG | ENTRY | SUSPEND | BREAKPOINT
    assert rules.potential(RETRANSFORM, RETRANSFORM, Phase.LIVE) & RETRANSFORM


@pytest.mark.parametrize("phase", [Phase.PRIMORDIAL, Phase.START, Phase.DEAD])
def test_other_phases_are_wrong(rules: CapabilityRules, phase: Phase) -> None:
    with pytest.raises(WrongPhase):
        rules.potential(0, 0, phase)
    with pytest.raises(WrongPhase):
        rules.add(0, 0, 0, phase)


def test_adding_is_all_or_nothing(rules: CapabilityRules) -> None:
    with pytest.raises(NotAvailable, match="CAN_GENERATE_METHOD_ENTRY_EVENTS"):
        rules.add(0, 0, SUSPEND | ENTRY, Phase.LIVE)
    assert rules.add(0, 0, SUSPEND, Phase.LIVE) == SUSPEND


def test_a_solo_capability_is_one_environment_s_until_it_is_given_back(rules: CapabilityRules) -> None:
    first = rules.add(0, 0, BREAKPOINT | SUSPEND, Phase.ONLOAD)
    for desired in (BREAKPOINT, SUSPEND):
        with pytest.raises(NotAvailable):
            rules.add(0, 0, desired, Phase.ONLOAD)
    assert rules.add(first, 0, SUSPEND, Phase.ONLOAD) == first, "what it owns it may ask for again"
    first = rules.relinquish(first, BREAKPOINT)
    assert first == SUSPEND
    assert rules.add(0, 0, BREAKPOINT, Phase.ONLOAD) == BREAKPOINT


def test_what_was_had_in_onload_can_be_had_ever_after(rules: CapabilityRules) -> None:
    held = rules.add(0, 0, ENTRY | BREAKPOINT, Phase.ONLOAD)
    assert rules.relinquish(held, ENTRY | BREAKPOINT) == 0
    assert rules.potential(0, 0, Phase.LIVE) == TAG | RETRANSFORM | SUSPEND | ENTRY | BREAKPOINT


def test_relinquishing_gives_back_only_what_is_held(rules: CapabilityRules) -> None:
    rules.add(0, 0, SUSPEND, Phase.LIVE)
    assert rules.relinquish(TAG, SUSPEND) == TAG
    assert not rules.potential(0, 0, Phase.LIVE) & SUSPEND


def test_disposing_gives_back_everything(rules: CapabilityRules) -> None:
    assert rules.dispose(rules.add(0, 0, SUSPEND | TAG, Phase.LIVE)) == 0
    assert rules.potential(0, 0, Phase.LIVE) & SUSPEND


def test_a_copy_leaves_what_lies_behind_the_last_byte(rules: CapabilityRules) -> None:
    assert rules.copy(TAG, into=(1 << 128) - 1) == (1 << 128) - (1 << 48) | TAG
    assert rules.add(0, 0, TAG | 1 << 48, Phase.LIVE) == TAG
    with pytest.raises(NotAvailable):
        rules.add(0, 0, 1 << 47, Phase.LIVE)


def test_flags_rise_with_what_becomes_available_and_never_fall(rules: CapabilityRules) -> None:
    before = rules.flags()
    assert not before["post_method_entry"]
    assert before["walk_any_space"]
    held = rules.add(0, 0, ENTRY, Phase.ONLOAD)
    assert rules.flags()["post_method_entry"]
    assert rules.flags()["post_interpreter_events"]
    assert rules.flags()["all_dependencies_are_recorded"], "retransforming is available in ONLOAD"
    rules.dispose(held)
    assert [(name, value) for name, value in before.items() if rules.flags()[name] < value] == []
    assert rules.flags()["post_method_entry"]
    assert set(rules.flags()) == {*DERIVED, "all_dependencies_are_recorded"}


def test_sets_must_be_disjoint() -> None:
    with pytest.raises(ValueError, match="two of the four"):
        CapabilityRules(TAG, TAG, 0, 0)


def test_recomputing_adds_and_takes_nothing(rules: CapabilityRules) -> None:
    rules.recompute(mask(1) | SUSPEND | ENTRY, Phase.LIVE)
    assert rules.potential(0, 0, Phase.LIVE) == TAG | RETRANSFORM | SUSPEND | mask(1)


# -- sets -----------------------------------------------------------------------------------------


def test_a_set_iterates_in_bit_order() -> None:
    capabilities = CapabilitySet([Capability.CAN_SUSPEND, Capability.CAN_TAG_OBJECTS, Capability.CAN_POP_FRAME])
    assert [int(capability) for capability in capabilities] == [0, 8, 20]
    assert int(capabilities) == 1 | 1 << 8 | 1 << 20
    assert len(capabilities) == 3
    assert capabilities == {Capability.CAN_POP_FRAME, Capability.CAN_TAG_OBJECTS, Capability.CAN_SUSPEND}
    assert hash(capabilities) == hash(frozenset(capabilities))
    assert capabilities - {Capability.CAN_SUSPEND} == CapabilitySet([0, 8])
    assert isinstance(capabilities | {Capability.CAN_SUSPEND}, CapabilitySet)
    assert Capability.CAN_SUSPEND in capabilities
    assert 44 not in capabilities
    assert "CAN_SUSPEND" in repr(capabilities)


def test_only_capabilities_are_in_a_set() -> None:
    with pytest.raises(IllegalArgument):
        CapabilitySet([45])
    with pytest.raises(IllegalArgument):
        CapabilitySet(["CAN_SUSPEND"])
    with pytest.raises(NullPointer):
        CapabilitySet(None)


# -- CPython's ------------------------------------------------------------------------------------


def test_cpython_s_sets_are_disjoint_and_say_why_the_rest_is_absent() -> None:
    sets = tool.capability_sets()
    together = [capability for each in sets for capability in each]
    assert len(together) == len(set(together))
    for capability in Capability:
        assert bool(why_absent(capability)) != (capability in together), capability.name
    CapabilityRules(*(int(each) for each in sets))


def test_what_is_found_here_is_what_the_documentation_says() -> None:
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    found = features_of(sys.version_info[:2], gil)
    assert features() == (found if native.IMPLEMENTATION == "c" else found - {TRACER})


def test_no_capability_needs_a_start_that_a_jvm_would_need() -> None:
    """Method entry and exit, exceptions, single step and locals can be asked for in a live process."""
    sets = tool.capability_sets(features_of((3, 12)))
    live = {Capability(bit) for bit in (14, 16, 17, 18, 24, 25)}
    assert live <= set(sets.always)
    assert not set(sets.onload_solo)
    assert set(SERVED_BY) == set(Capability)


def test_3_11_lacks_what_needs_monitoring() -> None:
    old, new = tool.capability_sets(features_of((3, 11))), tool.capability_sets(features_of((3, 12)))
    lost = {capability for each in new for capability in each} - {capability for each in old for capability in each}
    assert {int(capability) for capability in lost} == {16, 17, 18, 19, 20, 24, 25, 39, 40}
    free_threaded = features_of((3, 13), gil=False)
    assert features_of((3, 13)) - free_threaded == features_of((3, 13)) - features_of((3, 12)) == {TRACER}
    solo = tool.capability_sets(features_of((3, 13))).always_solo
    assert {29, 43} == {int(each) for each in solo} - {int(each) for each in new.always_solo}
    assert "GIL" in why_absent(Capability.CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS, free_threaded)
    assert [capability for capability in lost if "3.12" not in why_absent(capability, features_of((3, 11)))] == []
