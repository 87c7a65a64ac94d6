"""The stacks of all threads, as text: the most recent call first."""

from __future__ import annotations

import linecache
import os
from types import CodeType

import vmscope
from vmscope.tool import Environment, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vmscope.tool.functions.stacks import StackInfo

OWN = os.path.dirname(vmscope.__file__) + os.sep
DEPTH = 200


def all_stacks(env: Environment, *, but: Thread | None = None) -> str:
    """Of every thread, without the one that is named."""
    return text(stack for stack in env.get_all_stack_traces(DEPTH) if stack.thread is not but)


def stacks_of(env: Environment, threads: Sequence[Thread]) -> str:
    """Of these."""
    return text(env.get_thread_list_stack_traces(threads, DEPTH))


def text(stacks: Iterable[StackInfo]) -> str:
    """Without vmscope's own frames."""
    lines: list[str] = []
    for thread, _, frames in stacks:
        lines.append(f'Thread "{thread.name}", native id {thread.native_id}:')
        shown = [show(*frame) for frame in frames if not frame.method.co_filename.startswith(OWN)]
        lines += [*(shown or ["  no Python frame"]), ""]
    return "\n".join(lines)


def show(code: CodeType, location: int) -> str:
    """One frame, as Python's tracebacks have it."""
    number = line(code, location)
    source = linecache.getline(code.co_filename, number).strip()
    place = f'  File "{code.co_filename}", line {number}, in {code.co_qualname}'
    return f"{place}\n    {source}" if source else place


def line(code: CodeType, location: int) -> int:
    """The line of an instruction; the function's first where it has none."""
    for start, end, number in code.co_lines():
        if start <= location < end and number is not None:
            return number
    return code.co_firstlineno
