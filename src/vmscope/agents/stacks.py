"""The stacks of all threads, as text: the most recent call first."""

from __future__ import annotations

import linecache
from types import CodeType

from vmscope.tool import Environment, Thread

DEPTH = 200


def all_stacks(env: Environment, *, but: Thread | None = None) -> str:
    """Of every thread, without the one that is named."""
    lines: list[str] = []
    for thread, _, frames in env.get_all_stack_traces(DEPTH):
        if thread is not but:
            lines.append(f'Thread "{thread.name}", native id {thread.native_id}:')
            lines += [show(method, location) for method, location in frames] or ["  no Python frame"]
            lines.append("")
    return "\n".join(lines)


def show(code: CodeType, location: int) -> str:
    """One frame, as Python's tracebacks have it."""
    number = line(code, location)
    text = linecache.getline(code.co_filename, number).strip()
    return f'  File "{code.co_filename}", line {number}, in {code.co_qualname}' + (f"\n    {text}" if text else "")


def line(code: CodeType, location: int) -> int:
    """The line of an instruction; the function's first where it has none."""
    for start, end, number in code.co_lines():
        if start <= location < end and number is not None:
            return number
    return code.co_firstlineno
