"""Writes src/vmscope/interpreters/_layouts.py: where each version of CPython has what the reader of stacks needs.

    scripts/interpreter_layouts.py INCLUDE...       for example /usr/include/python3.13

Each folder has the headers of one version, 3.11 or later. A program that prints offsets is compiled against them; what
is written are these numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/vmscope/interpreters/_layouts.py"

# A field's name, its place, the first version that has it there, and the first that has not.
FIELDS: tuple[tuple[str, str, int, int], ...] = (
    ("runtime_interpreters", "offsetof(_PyRuntimeState, interpreters.head)", 11, 99),
    ("runtime_gil", "offsetof(_PyRuntimeState, ceval.gil)", 11, 12),
    ("interpreter_next", "offsetof(PyInterpreterState, next)", 11, 99),
    ("interpreter_threads", "offsetof(PyInterpreterState, threads.head)", 11, 99),
    ("interpreter_gil", "offsetof(PyInterpreterState, ceval.gil)", 12, 99),
    ("interpreter_modules", "offsetof(PyInterpreterState, modules)", 11, 12),
    ("interpreter_modules", "offsetof(PyInterpreterState, imports.modules)", 12, 99),
    ("gil_locked", "offsetof(struct _gil_runtime_state, locked)", 11, 99),
    ("gil_holder", "offsetof(struct _gil_runtime_state, last_holder)", 11, 99),
    ("gil_switches", "offsetof(struct _gil_runtime_state, switch_number)", 11, 99),
    ("state_prev", "offsetof(PyThreadState, prev)", 11, 99),
    ("state_next", "offsetof(PyThreadState, next)", 11, 99),
    ("state_interp", "offsetof(PyThreadState, interp)", 11, 99),
    ("state__initialized", "offsetof(PyThreadState, _initialized)", 11, 12),
    ("state_cframe", "offsetof(PyThreadState, cframe)", 11, 13),
    ("current_frame", "offsetof(_PyCFrame, current_frame)", 11, 13),
    ("current_frame", "offsetof(PyThreadState, current_frame)", 13, 99),
    ("state_thread_id", "offsetof(PyThreadState, thread_id)", 11, 99),
    ("state_native_thread_id", "offsetof(PyThreadState, native_thread_id)", 11, 99),
    ("state_id", "offsetof(PyThreadState, id)", 11, 99),
    ("state_datastack_chunk", "offsetof(PyThreadState, datastack_chunk)", 11, 99),
    ("state_datastack_top", "offsetof(PyThreadState, datastack_top)", 11, 99),
    ("chunk_previous", "offsetof(_PyStackChunk, previous)", 11, 99),
    ("chunk_size", "offsetof(_PyStackChunk, size)", 11, 99),
    ("chunk_top", "offsetof(_PyStackChunk, top)", 11, 99),
    ("chunk_data", "offsetof(_PyStackChunk, data)", 11, 99),
    ("frame_code", "offsetof(_PyInterpreterFrame, f_code)", 11, 13),
    ("frame_code", "offsetof(_PyInterpreterFrame, f_executable)", 13, 99),
    ("frame_instruction", "offsetof(_PyInterpreterFrame, prev_instr)", 11, 13),
    ("frame_instruction", "offsetof(_PyInterpreterFrame, instr_ptr)", 13, 99),
    ("frame_previous", "offsetof(_PyInterpreterFrame, previous)", 11, 99),
    ("frame_owner", "offsetof(_PyInterpreterFrame, owner)", 11, 99),
    ("frame_locals", "offsetof(_PyInterpreterFrame, localsplus)", 11, 99),
    ("code_filename", "offsetof(PyCodeObject, co_filename)", 11, 99),
    ("code_qualname", "offsetof(PyCodeObject, co_qualname)", 11, 99),
    ("code_linetable", "offsetof(PyCodeObject, co_linetable)", 11, 99),
    ("code_consts", "offsetof(PyCodeObject, co_consts)", 11, 99),
    ("code_names", "offsetof(PyCodeObject, co_names)", 11, 99),
    ("code_firstlineno", "offsetof(PyCodeObject, co_firstlineno)", 11, 99),
    ("code_firsttraceable", "offsetof(PyCodeObject, _co_firsttraceable)", 11, 99),
    ("code_version", "offsetof(PyCodeObject, co_version)", 12, 99),
    ("code_localsplusnames", "offsetof(PyCodeObject, co_localsplusnames)", 11, 99),
    ("code_size", "offsetof(PyCodeObject, co_code_adaptive)", 11, 99),
    ("string_length", "offsetof(PyASCIIObject, length)", 11, 99),
    ("string_hash", "offsetof(PyASCIIObject, hash)", 11, 99),
    ("string_state", "offsetof(PyASCIIObject, state)", 11, 99),
    ("string_ascii", "sizeof(PyASCIIObject)", 11, 99),
    ("string_compact", "sizeof(PyCompactUnicodeObject)", 11, 99),
    ("string_kind_bit", "BIT(kind)", 11, 99),
    ("string_compact_bit", "BIT(compact)", 11, 99),
    ("string_ascii_bit", "BIT(ascii)", 11, 99),
    ("type_name", "offsetof(PyTypeObject, tp_name)", 11, 99),
    ("type_flags", "offsetof(PyTypeObject, tp_flags)", 11, 99),
    ("type_basic_size", "offsetof(PyTypeObject, tp_basicsize)", 11, 99),
    ("type_cached_keys", "offsetof(PyHeapTypeObject, ht_cached_keys)", 11, 99),
    ("tuple_items", "offsetof(PyTupleObject, ob_item)", 11, 99),
    ("float_value", "offsetof(PyFloatObject, ob_fval)", 11, 99),
    ("long_size", "offsetof(PyLongObject, ob_base.ob_size)", 11, 12),
    ("long_digits", "offsetof(PyLongObject, ob_digit)", 11, 12),
    ("long_tag", "offsetof(PyLongObject, long_value.lv_tag)", 12, 99),
    ("long_digits", "offsetof(PyLongObject, long_value.ob_digit)", 12, 99),
    ("dict_used", "offsetof(PyDictObject, ma_used)", 11, 99),
    ("dict_keys", "offsetof(PyDictObject, ma_keys)", 11, 99),
    ("dict_values", "offsetof(PyDictObject, ma_values)", 11, 99),
    ("keys_log2_index_bytes", "offsetof(PyDictKeysObject, dk_log2_index_bytes)", 11, 99),
    ("keys_kind", "offsetof(PyDictKeysObject, dk_kind)", 11, 99),
    ("keys_count", "offsetof(PyDictKeysObject, dk_nentries)", 11, 99),
    ("keys_indices", "offsetof(PyDictKeysObject, dk_indices)", 11, 99),
    ("values_first", "offsetof(PyDictValues, values)", 11, 99),
    ("entry_owner", "256", 11, 12),  # none
    ("entry_owner", "FRAME_OWNED_BY_CSTACK", 12, 14),
    ("entry_owner", "FRAME_OWNED_BY_INTERPRETER", 14, 99),
)

# Which of these the process tells itself, from 3.13 on, and where in its _Py_DebugOffsets.
TOLD: tuple[tuple[str, str], ...] = (
    ("runtime_interpreters", "runtime_state.interpreters_head"),
    ("interpreter_next", "interpreter_state.next"),
    ("interpreter_threads", "interpreter_state.threads_head"),
    ("interpreter_gil", "interpreter_state.ceval_gil"),
    ("interpreter_modules", "interpreter_state.imports_modules"),
    ("state_prev", "thread_state.prev"),
    ("state_next", "thread_state.next"),
    ("state_interp", "thread_state.interp"),
    ("current_frame", "thread_state.current_frame"),
    ("state_thread_id", "thread_state.thread_id"),
    ("state_native_thread_id", "thread_state.native_thread_id"),
    ("state_datastack_chunk", "thread_state.datastack_chunk"),
    ("frame_previous", "interpreter_frame.previous"),
    ("frame_code", "interpreter_frame.executable"),
    ("frame_instruction", "interpreter_frame.instr_ptr"),
    ("frame_locals", "interpreter_frame.localsplus"),
    ("frame_owner", "interpreter_frame.owner"),
    ("code_filename", "code_object.filename"),
    ("code_qualname", "code_object.qualname"),
    ("code_linetable", "code_object.linetable"),
    ("code_firstlineno", "code_object.firstlineno"),
    ("code_localsplusnames", "code_object.localsplusnames"),
    ("code_size", "code_object.co_code_adaptive"),
    ("string_length", "unicode_object.length"),
    ("string_state", "unicode_object.state"),
    ("string_ascii", "unicode_object.asciiobject_size"),
)

HEAD = """
#define Py_BUILD_CORE 1
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#undef _PyGC_FINALIZED
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe_structs.h"
#endif
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_dict.h"
#if PY_VERSION_HEX >= 0x030D0000
#define TOLD(field) offsetof(struct _Py_DebugOffsets, field)
#endif
#include <stdio.h>
#define BIT(field) ({ PyASCIIObject text = {0}; text.state.field = 1; __builtin_ctz(*(unsigned *)&text.state); })
int main(void) {
"""


def numbers(include: str) -> tuple[int, dict[str, int], dict[str, int]]:
    """The minor version of these headers, the offsets, and where the process tells some of them."""
    text = Path(include, "patchlevel.h").read_text()
    found = re.search(r"#define PY_MINOR_VERSION\s+(\d+)", text)
    assert found, include
    minor = int(found[1])
    rows = [(name, place) for name, place, first, end in FIELDS if first <= minor < end]
    told = [(name, f"TOLD({place})") for name, place in TOLD] if minor >= 13 else []
    lines = [f'printf("{name} %zu\\n", (size_t)({place}));' for name, place in rows + told]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "offsets.c"), Path(folder, "offsets")
        source.write_text(HEAD + "\n".join(lines) + "\nreturn 0;}\n")
        subprocess.run(["cc", "-w", "-I", include, "-I", f"{include}/internal", source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    values = [(line.split()[0], int(line.split()[1])) for line in output.splitlines()]
    return minor, dict(values[: len(rows)]), dict(values[len(rows) :])


def table(name: str, rows: dict[int, dict[str, int]]) -> str:
    lines = [f"{name}: dict[tuple[int, int], dict[str, int]] = {{"]
    for minor, fields in sorted(rows.items()):
        lines.append(f"    (3, {minor}): {{")
        lines += [f'        "{field}": {value},' for field, value in fields.items()]
        lines.append("    },")
    return "\n".join([*lines, "}"]) + "\n"


def main(includes: list[str]) -> None:
    fields, told = {}, {}
    for include in includes:
        minor, fields[minor], told[minor] = numbers(include)
    TARGET.write_text(
        '"""Where each version of CPython has what a reader of stacks needs (scripts/interpreter_layouts.py).\n\n'
        "Offsets on 64-bit systems. `TOLD` says where a process's own `_Py_DebugOffsets` has the same, from 3.13 on.\n"
        '"""\n\nfrom __future__ import annotations\n\n'
        + table("FIELDS", fields)
        + "\n"
        + table("TOLD", {minor: each for minor, each in told.items() if each})
    )


if __name__ == "__main__":
    main(sys.argv[1:])
