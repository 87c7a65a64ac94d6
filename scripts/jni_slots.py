"""Writes src/vmscope/native/jni/jnienv_slots.h: the table of a JNIEnv's functions, out of the table in the code."""

from __future__ import annotations

from pathlib import Path

from vmscope.tool.jni.table import DESPITE_EXCEPTION, FUNCTIONS, SLOTS, JniFunction

HEADER = Path(__file__).parents[1] / "src/vmscope/native/jni/jnienv_slots.h"

# How a value of a type stands in a Value, and what it is in C; a pointer where none of these.
SCALARS = {
    "boolean": ("z", "uint8_t"),
    "byte": ("b", "int8_t"),
    "char": ("c", "uint16_t"),
    "short": ("s", "int16_t"),
    "int": ("i", "int32_t"),
    "size": ("i", "int32_t"),
    "long": ("j", "int64_t"),
    "float": ("f", "float"),
    "double": ("d", "double"),
    "void": ("v", "void"),
}
POINTER = ("l", "void *")


def main() -> None:
    HEADER.write_text(text(), encoding="utf-8")


def text() -> str:
    lines = ["/* Made by scripts/jni_slots.py from tool/jni/table.py. */", ""]
    for _, row in sorted(FUNCTIONS.items()):
        if row.variadic:
            lines += variadic(row)
        elif row.method:
            lines += forwarding(row)
    lines += ["const void *jni_functions[JNI_SLOTS] = {"]
    lines += [f"    [{slot}] = {function(row)}," for slot, row in sorted(FUNCTIONS.items())]
    lines += ["};", "", "const char *const jni_names[JNI_SLOTS] = {"]
    lines += [f'    [{slot}] = "{row.name}",' for slot, row in sorted(FUNCTIONS.items())]
    lines += ["};", "", "const uint8_t jni_despite_exception[JNI_SLOTS] = {"]
    lines += [f"    [{slot}] = 1," for slot, row in sorted(FUNCTIONS.items()) if row.name in DESPITE_EXCEPTION]
    lines += ["};"]
    assert max(FUNCTIONS) == SLOTS - 1
    return "\n".join(lines) + "\n"


def function(row: JniFunction) -> str:
    """What stands in its slot: one of these here, or one written by hand, which is called as the function is."""
    return f"slot_{row.slot}" if row.method or row.variadic else f"jni_{snake(row.name)}"


def snake(name: str) -> str:
    words = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
    return words.replace("j_n_i", "jni").replace("java_v_m", "java_vm").lstrip("_")


def head(row: JniFunction, last: str = "") -> tuple[list[str], str]:
    """Its first lines, and the elements of an array of Values with its arguments."""
    given = row.parameters[:-1] if last else row.parameters
    kinds = [SCALARS.get(each, POINTER) for each in given]
    letters = [chr(ord("a") + place) for place in range(len(kinds))]
    named = list(zip(kinds, letters, strict=True))
    declared = [f"{kind}{'' if kind.endswith('*') else ' '}{letter}" for (_, kind), letter in named]
    parameters = ", ".join(["void *native", *declared, *([last] if last else [])])
    _, result = SCALARS.get(row.result, POINTER)
    lines = [f"static {result} /* {row.name} */", f"slot_{row.slot}({parameters})", "{"]
    return lines, ", ".join(f"{{.{field} = {letter}}}" for (field, _), letter in named)


def of_method(row: JniFunction) -> bool:
    """Whether it asks for a method, or calls one: which signature it means depends on who calls it."""
    return row.name in ("GetMethodID", "GetStaticMethodID") or row.name.startswith(("Call", "NewObject"))


def returned(row: JniFunction, call: str) -> list[str]:
    field, _ = SCALARS.get(row.result, POINTER)
    if not of_method(row):
        return [f"    {call};" if field == "v" else f"    return {call}.{field};"]
    lines = ["    const void *const outer = jni_set_caller(__builtin_return_address(0));"]
    lines += [f"    {'' if field == 'v' else 'const Value result = '}{call};", "    jni_caller = outer;"]
    return [*lines, *([] if field == "v" else [f"    return result.{field};"])]


def forwarding(row: JniFunction) -> list[str]:
    """Hands its arguments on as they came."""
    lines, values = head(row)
    result, _ = SCALARS.get(row.result, POINTER)
    kinds = "".join(SCALARS.get(each, POINTER)[0] for each in row.parameters)
    count = len(row.parameters)
    if count:
        lines.append(f"    const Value values[] = {{{values}}};")
    call = f"""jni_call(native, {row.slot}, '{result}', {count}, {"values" if count else "NULL"}, "{kinds}")"""
    return [*lines, *returned(row, call), "}", ""]


def variadic(row: JniFunction) -> list[str]:
    """Takes its last arguments out of C's list, as the method's id says, and hands all on in an array."""
    of_list = row.parameters[-1] == "list"
    lines, values = head(row, "va_list list" if of_list else "...")
    result, _ = SCALARS.get(row.result, POINTER)
    count = len(row.parameters) - 1
    lines.append(f"    const Value values[] = {{{values}}};")
    call = f"jni_call_list(native, {row.slot}, '{result}', {count}, values, list)"
    called = returned(row, call)
    if not of_list:
        lines += ["    va_list list;", f"    va_start(list, {chr(ord('a') + count - 1)});"]
        called.insert(2, "    va_end(list);")
    return [*lines, *called, "}", ""]


if __name__ == "__main__":
    main()
