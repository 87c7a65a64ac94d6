"""Threads that start and end, by the tool interface's events."""

from __future__ import annotations

import threading
from time import monotonic_ns
from typing import ClassVar

from vmscope import tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.native import EventType

AGENT = "vmscope.flight"


class Threads:
    EVENTS: ClassVar[tuple[str, ...]] = ("jdk.ThreadStart", "jdk.ThreadEnd")

    def __init__(self) -> None:
        self._types: Mapping[str, EventType] = {}
        self._environment: tool.Environment | None = None

    def begin(self, types: Mapping[str, EventType]) -> None:
        self._types = types
        self._environment = environment = tool.vm().get_env(agent=AGENT)
        environment.set_event_callbacks({tool.Event.THREAD_START: self._started, tool.Event.THREAD_END: self._ended})
        for event in (tool.Event.THREAD_START, tool.Event.THREAD_END):
            environment.set_event_notification_mode(True, event)

    def end(self) -> None:
        if self._environment is not None:
            self._environment.dispose_environment()
            self._environment = None

    def _started(self, environment: tool.Environment, thread: tool.Thread) -> None:
        ident = threading.get_ident()
        self._types["jdk.ThreadStart"].commit(monotonic_ns(), None, ident, ident, 0)

    def _ended(self, environment: tool.Environment, thread: tool.Thread) -> None:
        ident = threading.get_ident()
        self._types["jdk.ThreadEnd"].commit(monotonic_ns(), None, ident, ident)
