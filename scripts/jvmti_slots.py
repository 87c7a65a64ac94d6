"""Writes src/vmscope/native/jvmti/jvmti_slots.h: the table of a jvmtiEnv's functions, out of the table in the code.

With --check it only sees whether what stands there is that.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vmscope.tool.jni.extensions import EXTENSIONS
from vmscope.tool.spec.codes import Error, Version
from vmscope.tool.spec.functions import BY_METHOD, SLOTS, Function, Parameter

HEADER = Path(__file__).parents[1] / "src/vmscope/native/jvmti/jvmti_slots.h"

# Those that are in C, by slot (general.h).
IN_C = {
    31: "jni_create_raw_monitor",
    32: "jni_destroy_raw_monitor",
    33: "jni_raw_monitor_enter",
    34: "jni_raw_monitor_exit",
    35: "jni_raw_monitor_wait",
    36: "jni_raw_monitor_notify",
    37: "jni_raw_monitor_notify_all",
    46: "jni_allocate",
    47: "jni_deallocate",
    88: "jni_get_version_number",
    89: "jni_get_capabilities",
    120: "jni_set_function_table",
    121: "jni_get_function_table",
    128: "jni_get_error_name",
    129: "jni_get_jlocation_format",
    133: "jni_get_phase",
    134: "jni_get_current_cpu_timer_info",
    135: "jni_get_current_cpu_time",
    138: "jni_get_timer_info",
    139: "jni_get_time",
    147: "jni_get_storage",
    148: "jni_set_storage",
}
# A parameter's type in C: how it is handed on, and how a caller passes it; a pointer where none of these.
SCALARS = {
    "jint": ("i", "int32_t"),
    "jlong": ("j", "int64_t"),
    "jlocation": ("j", "int64_t"),
    "jfloat": ("f", "float"),
    "jdouble": ("d", "double"),
    "jboolean": ("z", "uint8_t"),
    "jvmtiEventMode": ("i", "int32_t"),
    "jvmtiEvent": ("i", "int32_t"),
    "jvmtiError": ("i", "int32_t"),
    "jvmtiHeapObjectFilter": ("i", "int32_t"),
    "jvmtiVerboseFlag": ("i", "int32_t"),
}
POINTER = ("l", "const void *")


def main() -> None:
    if "--check" not in sys.argv[1:]:
        HEADER.write_text(text(), encoding="utf-8")
    elif HEADER.read_text(encoding="utf-8") != text():
        sys.exit(f"{HEADER.name} is not what the code says: make tables")


def text() -> str:
    by_slot = {function.slot: function for function in BY_METHOD.values()}
    forwarded = [function for slot, function in sorted(by_slot.items()) if slot not in IN_C]
    lines = [
        "/* Made by scripts/jvmti_slots.py from tool/spec/functions.py and tool/spec/codes.py. */",
        "",
        *(line for function in (*forwarded, *(each.row for each in EXTENSIONS)) for line in definition(function)),
        "const void *const jvmti_functions[JVMTI_SLOTS] = {",
        *(f"    [{slot - 1}] = {name(slot, by_slot)}," for slot in range(1, SLOTS + 1)),
        "};",
        "",
        "const void *const jvmti_extensions[JVMTI_EXTENSIONS] = {",
        *(f"    [{each.row.slot - SLOTS - 1}] = slot_{each.row.slot}," for each in EXTENSIONS),
        "};",
        "",
        f"const int32_t jvmti_version_number = {int(Version.CURRENT):#x};",
        "",
        "const char *const jvmti_error_names[JVMTI_ERRORS] = {",
        *(f'    [{error:d}] = "JVMTI_ERROR_{error.name}",' for error in Error),
        "};",
    ]
    return "\n".join(lines) + "\n"


def name(slot: int, by_slot: dict[int, Function]) -> str:
    return IN_C.get(slot) or (f"slot_{slot}" if slot in by_slot else "NULL")


def definition(function: Function) -> list[str]:
    """The function of one slot, which hands its arguments on as they came."""
    handed = [SCALARS.get(declaration(each), POINTER) for each in function.parameters]
    letters = [chr(ord("a") + place) for place in range(len(handed))]
    named = list(zip(handed, letters, strict=True))
    declared = "".join(f", {kind}{'' if kind.endswith('*') else ' '}{letter}" for (_, kind), letter in named)
    values = ", ".join(f"{{.{field} = {'(void *)' * (field == 'l')}{letter}}}" for (field, _), letter in named)
    kinds = "".join(field for field, _ in handed)
    given = f'{len(handed)}, {"values" if handed else "NULL"}, "{kinds}"'
    return [
        f"static int32_t /* {function.name} */",
        f"slot_{function.slot}(Environment *environment{declared})",
        "{",
        *([f"    const Value values[] = {{{values}}};"] if handed else []),
        f"    return jni_forward(environment, {function.slot}, {given});",
        "}",
        "",
    ]


def declaration(parameter: Parameter) -> str:
    return parameter.declaration


if __name__ == "__main__":
    main()
