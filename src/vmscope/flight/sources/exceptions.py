"""Exceptions, each where it is raised, by a tool of sys.monitoring (3.12 and later).

What ends a loop (StopIteration) and what is raised again is not an event of its own.
"""

from __future__ import annotations

import sys
from time import monotonic_ns
from typing import ClassVar

from vmscope.instruments.exceptions import free_tool
from vmscope.tool.model.frames import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from vmscope.native import EventType

LONGEST_MESSAGE = 1024
SECOND = 1_000_000_000  # ns
MOST_A_SECOND = 100  # of each type of event: what raises without end does not fill the recording

# What a JVM calls errors: nothing that a program is expected to handle.
ERRORS = (MemoryError, RecursionError, SystemError, SystemExit, NotImplementedError)


class Exceptions:
    EVENTS: ClassVar[tuple[str, ...]] = ("jdk.JavaExceptionThrow", "jdk.JavaErrorThrow", "jdk.ExceptionStatistics")

    def __init__(self) -> None:
        self._types: Mapping[str, EventType] = {}
        self._tool = -1
        self._last: BaseException | None = None
        self._second = 0
        self._written = 0
        self.raised = 0

    def begin(self, types: Mapping[str, EventType]) -> None:
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None or not (types["jdk.JavaExceptionThrow"].enabled or types["jdk.JavaErrorThrow"].enabled):
            return
        self._types = types
        self._tool = free_tool(monitoring)
        monitoring.register_callback(self._tool, monitoring.events.RAISE, self._raised)
        monitoring.set_events(self._tool, monitoring.events.RAISE)

    def look(self) -> None:
        """Nothing that has come since has to be looked for."""

    def end(self) -> None:
        if self._tool >= 0:
            monitoring = vars(sys)["monitoring"]
            monitoring.set_events(self._tool, 0)
            monitoring.register_callback(self._tool, monitoring.events.RAISE, None)
            monitoring.free_tool_id(self._tool)
            self._tool = -1

    def _raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        trace = error.__traceback__
        if (trace is not None and trace.tb_next is not None) or is_own(code):  # it passes through a caller; it is ours
            return
        type_ = self._types["jdk.JavaErrorThrow" if isinstance(error, ERRORS) else "jdk.JavaExceptionThrow"]
        if not type_.enabled:
            return
        now = monotonic_ns()
        if now - self._second >= SECOND:
            self._second, self._written = now, 0
        self._written += 1
        if self._written <= MOST_A_SECOND:
            type_.commit(now, None, _message(error), class_name(type(error)))


def class_name(kind: type) -> str:
    """`module.Class`, without the module where it is built in."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str | None:
    """Of what is text already: no code of the program's runs for it."""
    texts = [argument for argument in error.args if type(argument) is str]
    return texts[0][:LONGEST_MESSAGE] if texts else None
