"""Threads that start and end, as `threading` starts and forgets them.

It must not be imported here: on a thread of vmscope's it would take that one for the program's main thread.
"""

from __future__ import annotations

from _thread import get_ident
from time import monotonic_ns
from typing import ClassVar

from vmscope import own_threads
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from vmscope.native import EventType


class Threads:
    EVENTS: ClassVar[tuple[str, ...]] = ("jdk.ThreadStart", "jdk.ThreadEnd")

    def __init__(self) -> None:
        self._patches = Patches()
        self._types: Mapping[str, EventType] = {}

    def begin(self, types: Mapping[str, EventType]) -> None:
        self._types = types
        self.look()

    def look(self) -> None:
        """Takes its place once the program has imported `threading`."""
        threading: Any = own_threads.threading_module()
        if self._patches or threading is None:
            return
        started, ended = self._types["jdk.ThreadStart"], self._types["jdk.ThreadEnd"]
        their_start, their_delete = threading.Thread.start, threading.Thread._delete

        def start(self: Any) -> None:
            their_start(self)
            if started.enabled:
                started.commit(monotonic_ns(), None, self.ident, self.ident, get_ident())

        def delete(self: Any) -> None:
            if ended.enabled:
                ended.commit(monotonic_ns(), None, get_ident(), get_ident())
            their_delete(self)

        self._patches.replace(threading.Thread, "start", start)
        self._patches.replace(threading.Thread, "_delete", delete)

    def end(self) -> None:
        self._patches.undo()
