"""The table of the tool interface, against the jvmti.h of each installed JDK."""

from __future__ import annotations

import re

import pytest

from tests.jvmti_header import Header, header
from vmscope.tool.spec import errors
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Error, Phase, Phases, Version
from vmscope.tool.spec.events import EVENTS, KINDS, SENT_IN, Event, bit
from vmscope.tool.spec.functions import BY_METHOD, FUNCTIONS, SINCE, SLOTS, TYPES, Function, snake


@pytest.fixture(scope="module", params=[17, 25])
def jvmti(request: pytest.FixtureRequest) -> Header:
    return header(int(request.param))


def upper(name: str) -> str:
    """`CLASS_FILE_LOAD_HOOK` for ClassFileLoadHook."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=VM)(?=[A-Z])", "_", name).upper()


def test_slots_and_parameters_are_the_header_s(jvmti: Header) -> None:
    ours: list[tuple[str, list[str]] | None] = [None] * SLOTS
    for row in FUNCTIONS:
        if SINCE.get(row[0], 0) <= jvmti.version:
            ours[row[0] - 1] = (row[1], [parameter.declaration for parameter in Function(*row).parameters])
    assert ours == jvmti.slots


def test_capability_bits_are_the_header_s(jvmti: Header) -> None:
    theirs = jvmti.capabilities
    assert [capability.name.lower() for capability in Capability][: len(theirs)] == theirs
    assert len(theirs) == (44 if jvmti.version < 21 else 45)


def test_event_numbers_are_the_header_s(jvmti: Header) -> None:
    theirs = jvmti.enumeration("JVMTI_EVENT_")
    ours = {event.name: int(event) for event in Event if event < 87 or jvmti.version >= 21}
    assert ours == theirs


def test_errors_are_the_header_s(jvmti: Header) -> None:
    theirs = jvmti.enumeration("JVMTI_ERROR_")
    assert theirs.pop("MAX") == max(Error)
    assert {error.name: int(error) for error in Error if error != 73 or jvmti.version >= 21} == theirs


def test_phases_are_the_header_s(jvmti: Header) -> None:
    assert {phase.name: int(phase) for phase in Phase} == jvmti.enumeration("JVMTI_PHASE_")


def test_versions_are_the_header_s(jvmti: Header) -> None:
    theirs = jvmti.enumeration("JVMTI_VERSION_")
    for name in ("1_0", "1_1", "1_2", "9", "11"):
        assert Version[f"V{name}"] == theirs[name]
    assert Version[f"V{jvmti.version}"] == theirs["INTERFACE_JVMTI"] + (jvmti.version << theirs["SHIFT_MAJOR"])


def test_callbacks_get_what_the_header_says(jvmti: Header) -> None:
    """But for what a C caller gets for its want of objects: lengths, places to write to, and a value's type."""
    theirs = jvmti.callbacks
    for _, name, _, _, _, parameters in EVENTS:
        if name.startswith("VirtualThread") and jvmti.version < 21:
            continue
        types = [TYPES[text.partition(":")[2].rstrip("?")][0] for text in parameters.split()]
        types = ["jvalue" if text.startswith(("return_value", "new_value")) else kind
                 for text, kind in zip(parameters.split(), types, strict=True)]  # fmt: skip
        left_out = {
            "ClassFileLoadHook": ["jint", "jint*", "unsigned char**"],
            "FieldModification": ["char"],
            "NativeMethodBind": ["void**"],
            "CompiledMethodLoad": ["jint", "jvmtiAddrLocationMap*", "void*"],
            "ResourceExhausted": ["void*"],
        }.get(name, [])
        assert sorted(types + left_out) == sorted(theirs[name]), name


# -- without a JDK --------------------------------------------------------------------------------


def test_slots_stand_once_and_in_order() -> None:
    slots = [row[0] for row in FUNCTIONS]
    assert slots == sorted(set(slots))
    assert set(range(1, SLOTS + 1)) - set(slots) == {1, 105, 113, 117, 141}


def test_events_stand_once_under_their_names() -> None:
    assert [row[0] for row in EVENTS] == [int(event) for event in Event]
    assert [upper(row[1]) for row in EVENTS] == [event.name for event in Event]
    assert max(bit(event) for event in Event) < 1 << 63


def test_each_error_has_its_class() -> None:
    assert set(errors.ERRORS) == {int(error) for error in Error} - {0}
    for code, kind in errors.ERRORS.items():
        assert kind.code == code
        assert str(kind()) == (kind.__doc__ or "").splitlines()[0]
        assert kind.__name__ in vars(errors)


def test_every_possible_error_is_one() -> None:
    for function in BY_METHOD.values():
        assert set(function.errors) <= set(errors.ERRORS), function.name
        assert (112 in function.errors) == (function.phases != Phases.ANY)
        assert (99 in function.errors) >= (function.capability is not None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GetPhase", "get_phase"),
        ("GetJNIFunctionTable", "get_jni_function_table"),
        ("GetJLocationFormat", "get_jlocation_format"),
        ("AddToBootstrapClassLoaderSearch", "add_to_bootstrap_class_loader_search"),
        ("GetClassLoaderClasses", "get_class_loader_classes"),
    ],
)
def test_names_in_snake_case(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_which_events_a_phase_sends() -> None:
    def names(phase: Phase) -> set[str]:
        return {event.name for event in Event if SENT_IN[phase] & bit(event)}

    assert names(Phase.ONLOAD) == {"CLASS_FILE_LOAD_HOOK", "NATIVE_METHOD_BIND", "DYNAMIC_CODE_GENERATED"}
    assert names(Phase.PRIMORDIAL) == names(Phase.ONLOAD)
    assert names(Phase.LIVE) == {event.name for event in Event} - {"VM_START"}
    assert names(Phase.START) > {"VM_START", "THREAD_START", "CLASS_PREPARE"}
    assert KINDS[Event.VM_OBJECT_ALLOC].per_thread is False
