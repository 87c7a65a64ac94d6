"""The functions as C calls them: the same agents, run by HotSpot 17 and by this Python, have to hear the same.

One calls each of the 156 slots in every phase, on three environments and on a thread that the VM does not know, with
nulls and with wrong arguments; one calls them with good arguments, and looks at what comes. What may differ stands
here, with why.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.agents import Agent, build
from tests.support import PATIENCE
from vmscope import native
from vmscope.tool.spec.functions import BY_METHOD, SINCE, SLOTS, Function, Parameter

pytestmark = [
    pytest.mark.timeout(6 * PATIENCE),
    pytest.mark.skipif(native.IMPLEMENTATION != "c" or not hasattr(native, "load_jni"), reason="no C part, or no GIL"),
]
FOLDER = Path(__file__).parent
VERSION = 17
NEWER = 25  # for the functions that came after that
PHASES = "OPSLDU"
RESERVED = {1, 105, 113, 117, 141}
ROWS = [row for row in BY_METHOD.values() if SINCE.get(row.slot, 0) <= VERSION]
GARBAGE = "ABCDEFGHIJKL"  # as many as slot_agent.c has

# Not called, and where they are. These would stop the thread that calls them, interrupt it, or end what is tested.
STOPS = {
    **{(5, way): "test_every_function_with_good_arguments_answers_as_hotspot_s" for way in "nog"},
    **{(8, way): "test_every_function_with_good_arguments_answers_as_hotspot_s" for way in "nog"},
    (92, "g"): "test_every_function_with_good_arguments_answers_as_hotspot_s",
    (7, "g"): "test_threads_classes_and_modules_are_changed_as_in_a_jvm",
    (12, "g"): "test_threads_classes_and_modules_are_changed_as_in_a_jvm",
    **{(127, way): "test_every_function_with_good_arguments_answers_as_hotspot_s" for way in "nowge"},
}
# HotSpot crashes: any object is taken for a thread group; in ONLOAD any pointer for a reference; none but its own
# threads can wait.
FATAL_THERE = {("L", slot, way) for slot in (14, 15) for way in "we"}
FATAL_THERE |= {("O", 2, "w"), ("O", 2, "e"), ("O", 35, "g"), ("U", 35, "g")}
# Null is the current thread, which has frames at VMInit here: they would write to its variables.
WRITES_HERE = {(slot, way) for slot in range(26, 31) for way in "nog"}

# What is given for a type where it shall be wrong: no_... are rooms of the agent's.
WRONG = {
    **dict.fromkeys("thread late_thread group module object loader".split(), "a_class"),
    **dict.fromkeys("class service".split(), "a_thread"),
    **dict.fromkeys("method code".split(), "(jmethodID)no_method"),
    **dict.fromkeys("mode event any_event error phase filter verbose".split(), "9999"),
    **dict.fromkeys("location count int long".split(), "-1"),
    **dict.fromkeys("bytes functions".split(), "NULL"),
    "field": "(jfieldID)(size_t)6",
    "monitor": "(jrawMonitorID)nothing",
    "text": '"no/such"',
    "bool": "1",
    "float": "-1.0f",
    "double": "-1.0",
    "data": "(void *)nothing",
    "capabilities": "(jvmtiCapabilities *)nothing",
    "callbacks": "(jvmtiEventCallbacks *)nothing",
    "heap_callbacks": "(jvmtiHeapCallbacks *)nothing",
}
ARRAYS = {
    "thread": "wrong_objects",
    "class": "wrong_classes",
    "text": "no_texts",
    "long": "nothing",
    "definition": "no_definitions",
}
HANDLES = {"thread", "late_thread", "group", "object", "class", "module", "service", "loader"}
IDS = {"method": "jmethodID", "code": "jmethodID", "field": "jfieldID", "monitor": "jrawMonitorID"}


# What is right; of the second of a function's texts.
RIGHT = {
    **dict.fromkeys("thread late_thread".split(), "good_thread"),
    **dict.fromkeys("object class service".split(), "good_class"),
    **dict.fromkeys("method code".split(), "good_method"),
    **dict.fromkeys("location count int".split(), "0"),
    "group": "good_group",
    "module": "good_module",
    "loader": "NULL",
    "field": "good_field",
    "monitor": "entered_monitor()",
    "mode": "JVMTI_ENABLE",
    "event": "JVMTI_EVENT_BREAKPOINT",
    "any_event": "JVMTI_EVENT_DYNAMIC_CODE_GENERATED",
    "error": "JVMTI_ERROR_NONE",
    "filter": "JVMTI_HEAP_OBJECT_EITHER",
    "verbose": "JVMTI_VERBOSE_GC",
    "bool": "JNI_FALSE",
    "long": "1",
    "float": "1.0f",
    "double": "1.0",
    "text": '"java.class.path"',
    "functions": "good_table",
    "bytes": "malloc(1)",
    "data": "(void *)nothing",
    "capabilities": "(jvmtiCapabilities *)nothing",
    "callbacks": "(jvmtiEventCallbacks *)nothing",
    "heap_callbacks": "(jvmtiHeapCallbacks *)nothing",
}
RIGHT_OF = {32: {"monitor": "fresh_monitor()"}, 33: {"monitor": "fresh_monitor()"}}
RIGHT_ARRAYS = {"thread": "&good_thread", "class": "&good_class", "text": "no_texts", "long": "nothing"}


def right(slot: int, parameter: Parameter, place: int) -> str:
    if parameter.direction == "*":
        return f"(void *)room[{place}]"
    if parameter.direction == "#":
        return "0" if slot in (87, 152) else "100" if parameter.name == "size" else "1"
    if parameter.array:
        return RIGHT_ARRAYS.get(parameter.type, "no_definitions")
    return RIGHT_OF.get(slot, RIGHT).get(parameter.type, RIGHT.get(parameter.type, "(void *)no_callback"))


def argument(parameter: Parameter, way: str, place: int) -> str:
    """n: null and 0 everywhere; o: as n, with room for results; w: wrong; e: lists of one wrong element, else as w;
    s: a reference that is no longer one; others: garbage."""
    if parameter.direction == "*":
        return "0" if way == "n" else f"(void *)room[{place}]"
    if way in "no":
        return "0"
    if way not in "we" and not parameter.array and parameter.direction != "#":
        if parameter.type in HANDLES:
            return "stale" if way == "s" else f"GARBAGE('{way}')"
        if parameter.type in IDS:
            return f"({IDS[parameter.type]})GARBAGE('{'A' if way == 's' else way}')"
        if parameter.type not in WRONG or WRONG[parameter.type] in ("-1", "9999"):
            return "1" if parameter.type in WRONG else "(void *)no_callback"
    if parameter.direction == "#":
        return "-1" if way == "w" else "100" if parameter.name == "size" else "1"
    if parameter.array:
        return ARRAYS[parameter.type]
    if way == "e" and parameter.type in ("count", "int"):
        return "0"
    return WRONG.get(parameter.type, "(void *)no_callback")


def case(row: Function, way: str) -> str:
    named = enumerate(row.parameters)
    given = [right(row.slot, each, place) if way == "g" else argument(each, way, place) for place, each in named]
    given.insert(0, "env")
    return f"case {row.slot} << 8 | '{way}': return (*env)->{row.name}({', '.join(given)});\n"


def built(folder: Path, calls: list[tuple[str, Function, str]], version: int = VERSION) -> Agent:
    """slot_agent.c, with these calls: phase, row, way."""
    (folder / "program").write_text("".join(f"{phase} {row.slot} {way}\n" for phase, row, way in calls))
    cases = dict.fromkeys((row.slot, row, way) for _, row, way in calls)
    (folder / "calls.inc").write_text("".join(case(row, way) for _, row, way in cases))
    (folder / "program.py").write_text("pass\n")
    return build("slot_agent.c", version, folder)


def answers(lines: list[str]) -> dict[tuple[str, int, str, int], int]:
    """By phase, slot, way, environment."""
    found = {}
    for line in lines:
        phase, slot, way, environment, answer = line.split()
        found[phase, int(slot), way, int(environment)] = int(answer)
    return found


# -- with null, wrong and right arguments ----------------------------------------------------------

NEVER_HELD = "no environment holds its capability here"
FRAMES = "the program has frames at VMInit here"
THREAD_FIRST = "17 looks at the thread first; 25 and vmscope look at it last"
UNCHECKED = "HotSpot does not look at the argument; the specification names the error"
DIFFERENT: dict[tuple[str, int, int], str] = {
    **{(name, 31, ours): FRAMES for name, ours in (
        ("GetFrameLocation", 0), ("NotifyFramePop", 0), ("NotifyFramePop", 40), ("GetLocalObject", 0),
        ("GetLocalInt", 34), ("GetLocalLong", 34), ("GetLocalFloat", 34), ("GetLocalDouble", 34),
        ("GetLocalInstance", 35),
    )},
    **{(name, 10, 103): THREAD_FIRST for name in (
        "GetFrameLocation", "NotifyFramePop", "GetLocalObject", "GetLocalInt", "GetLocalLong", "GetLocalFloat",
        "GetLocalDouble", "SetLocalObject", "SetLocalInt", "SetLocalLong", "SetLocalFloat", "SetLocalDouble",
        "GetLocalInstance", "GetStackTrace", "GetThreadListStackTraces",
    )},
    ("SetEventNotificationMode", 10, 102): THREAD_FIRST,
    ("ResumeThread", 10, 13): "null is the current thread since 21",
    **{(name, theirs, 99): NEVER_HELD for theirs in (0, 10, 21, 31, 100, 101, 103, 115) for name in (
        "SetNativeMethodPrefix", "SetNativeMethodPrefixes", "PopFrame", "ForceEarlyReturnObject",
        "ForceEarlyReturnInt", "ForceEarlyReturnLong", "ForceEarlyReturnFloat", "ForceEarlyReturnDouble",
        "ForceEarlyReturnVoid", "GetSourceDebugExtension", "SuspendAllVirtualThreads", "ResumeAllVirtualThreads",
    )},
    ("GetClassLoaderClasses", 0, 103): UNCHECKED,
    ("IterateOverHeap", 0, 103): UNCHECKED,
    ("GetObjectsWithTags", 0, 103): UNCHECKED,
    ("FollowReferences", 0, 21): UNCHECKED,
    ("IterateThroughHeap", 0, 21): UNCHECKED,
    ("RedefineClasses", 79, 21): UNCHECKED,
    **{(f"AddModule{each}", 0, 98): "Python's modules hide nothing from each other"
       for each in ("Reads", "Exports", "Opens", "Uses", "Provides")},
    ("SetSystemProperty", 98, 0): "new properties can be set here",
    ("GetSystemProperty", 98, 0): "it was set before",
}  # fmt: skip


def calls(rows: list[Function]) -> Iterator[tuple[str, Function, str]]:
    for row in rows:
        for way in "nowge":
            for phase in PHASES:
                unsafe = phase in "LU" and ((row.slot, way) in STOPS or (row.slot, way) in WRITES_HERE)
                if not unsafe and row.slot != 127 and (phase, row.slot, way) not in FATAL_THERE:
                    yield phase, row, way


def test_each_function_is_called_in_each_phase_with_null_wrong_and_right_arguments() -> None:
    """What is not called here is called in the test that stands beside it."""
    called = {(phase, row.slot, way) for phase, row, way in calls([*BY_METHOD.values()])}
    elsewhere = {("L", *key) for key in {**STOPS, **dict.fromkeys(WRITES_HERE, "")}} | FATAL_THERE
    wanted = {(phase, slot, way) for phase in "OPSLD" for slot in range(1, SLOTS + 1) for way in "nwg"}
    missing = {key for key in wanted - called - elsewhere if key[1] not in (*RESERVED, 127)}
    assert not missing
    assert {row.slot for row in BY_METHOD.values()} | RESERVED == set(range(1, SLOTS + 1))
    assert set(STOPS.values()) <= globals().keys()


@pytest.mark.parametrize("version", [VERSION, NEWER])
def test_every_function_answers_as_hotspot_s(version: int, tmp_path: Path) -> None:
    rows = ROWS if version == VERSION else [row for row in BY_METHOD.values() if row.slot in SINCE]
    made = [*calls(rows)]
    agent = built(tmp_path, made, version)
    theirs, ours = answers(agent.run(tmp_path)), answers(agent.run_here(tmp_path, tmp_path / "program.py"))
    names = {row.slot: row.name for row in rows}
    different = {
        (names[slot], answer, ours[phase, slot, way, environment]): f"{phase} {way} {environment}"
        for (phase, slot, way, environment), answer in theirs.items()
        if ours[phase, slot, way, environment] != answer
    }
    assert different.keys() <= DIFFERENT.keys(), {key: different[key] for key in different.keys() - DIFFERENT.keys()}
    assert ours.keys() == theirs.keys()
    assert len(ours) == 3 * len(made)


def test_what_crashes_hotspot_answers_here(tmp_path: Path) -> None:
    rows = {row.slot: row for row in ROWS}
    ours = answers(
        built(tmp_path, [(phase, rows[slot], way) for phase, slot, way in sorted(FATAL_THERE)]).run_here(
            tmp_path, tmp_path / "program.py"
        )
    )
    found = {(phase, slot, way): answer for (phase, slot, way, environment), answer in ours.items() if environment == 1}
    assert found.keys() == FATAL_THERE
    assert found == {
        **{("L", slot, way): 11 for slot in (14, 15) for way in "we"},
        **{("O", 2, way): 102 for way in "we"},
        **{(phase, 35, "g"): 0 for phase in "OU"},
    }
    assert {answer for (*_, environment), answer in ours.items() if environment == 2} == {116}


# -- with what no VM has given out: here only, for a JVM looks where it points to ------------------


def test_foreign_and_stale_references_and_ids_are_found_out(tmp_path: Path) -> None:
    looked_up = [
        row
        for row in ROWS
        if any(each.type in (*HANDLES, *IDS) and not each.direction and not each.array for each in row.parameters)
    ]
    ways = [(phase, row, way) for row in looked_up for phase, way in (*(("L", each) for each in GARBAGE), ("T", "s"))]
    ours = answers(built(tmp_path, ways).run_here(tmp_path, tmp_path / "program.py"))
    rows = {row.slot: row for row in ROWS}
    assert len(ours) == 3 * len(ways)
    for (phase, slot, way, environment), answer in ours.items():
        row = rows[slot]
        refused = {each.error for each in row.parameters if each.type in (*HANDLES, *IDS)} | {10, 20, 50}
        allowed = {116} if environment == 2 else {99, *refused} if environment == 0 else {99, 98, *refused}
        allowed |= {102, 103}  # of another argument, that is looked at before
        assert answer in allowed, f"{row.name} in {phase}, {way}, on {environment}: {answer}"


# -- with good arguments --------------------------------------------------------------------------

OPAQUE = "variables can be written to since Python 3.13"
GOOD: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {
    (("    21",), ("    1",)): "of a class's flags HotSpot shows ACC_SUPER",
    (("AddModuleReads 0",), ("AddModuleReads 98",)): "Python's modules have nothing of the kind",
    ((), ("    73 JVMTI_ERROR_UNSUPPORTED_OPERATION",)): "25's",
}


def test_every_function_with_good_arguments_answers_as_hotspot_s(tmp_path: Path) -> None:
    import difflib

    agent = build("good_agent.c", VERSION, tmp_path)
    if not agent.jdk.has("javac"):
        pytest.skip(f"no javac: apt-get install openjdk-{VERSION}-jdk-headless")
    compiled = agent.jdk.run("javac", "-g", "-d", str(tmp_path), str(FOLDER / "Slots.java"))
    assert compiled.returncode == 0, compiled.stderr
    theirs = agent.run(tmp_path, "-cp", str(tmp_path), "Slots")
    ours = agent.run_here(tmp_path, FOLDER / "slots.py")
    found = {
        (tuple(theirs[a:b]), tuple(ours[c:d]))
        for kind, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
        if kind != "equal"
    }
    if sys.version_info < (3, 13):
        found = {pair for pair in found if not of_writing(*pair)}
    assert found <= GOOD.keys(), found - GOOD.keys()
    assert len(ours) > 300
    assert os.path.getsize(tmp_path / "answers") > 5000


CHANGES = {
    **{((f"AddModule{each} 0",), (f"AddModule{each} 98",)): "Python's modules hide nothing from each other"
       for each in ("Reads", "Exports", "Opens", "Uses", "Provides")},
}  # fmt: skip


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, which says when all is ready")
def test_threads_classes_and_modules_are_changed_as_in_a_jvm(tmp_path: Path) -> None:
    """RunAgentThread, StopThread, RedefineClasses, RetransformClasses and AddModule..., in programs that go on."""
    agent = build("change_agent.c", VERSION, tmp_path)
    if not agent.jdk.has("javac"):
        pytest.skip(f"no javac: apt-get install openjdk-{VERSION}-jdk-headless")
    compiled = agent.jdk.run("javac", "-g", "-d", str(tmp_path), str(FOLDER / "Changed.java"))
    assert compiled.returncode == 0, compiled.stderr
    theirs = agent.run(tmp_path, "-cp", str(tmp_path), "Changed")
    program = tmp_path / "program.py"
    program.write_text(f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import changed; changed.Changed.main()\n")
    ours = agent.run_here(tmp_path, program)
    different = {((a,), (b,)) for a, b in zip(theirs, ours, strict=True) if a != b}
    assert different <= CHANGES.keys(), different - CHANGES.keys()
    assert ours[-1] == "the worker caught it, and the class is as it was"


def of_writing(theirs: tuple[str, ...], ours: tuple[str, ...]) -> bool:
    return all(line.startswith("SetLocal") for line in theirs + ours if not line.startswith(" "))
