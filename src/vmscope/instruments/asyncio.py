"""Event loops: how many run, their tasks, and how late they are.

A loop is known from the moment at which it runs. A timer in it, every tenth of a second, measures by how much the loop
runs it too late, and counts the loop's tasks. Nothing is added to a task or to a task factory.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, get_ident
from contextvars import Context
from functools import wraps
from time import monotonic_ns

from vmscope import log, native
from vmscope.counters.kinds import EVENTS, NONE, TICKS
from vmscope.instruments._table import InstrumentCounters
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from types import ModuleType
    from typing import Any

    from vmscope.instruments._table import Row, Undo

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    ("python.asyncio.loops", "gauge", NONE, "event", "", "asyncio.events", "Event loops that run now."),
    ("python.asyncio.tasks", "gauge", NONE, "timer", "", "asyncio.all_tasks", "Their tasks that are not done, as last counted."),
    ("python.asyncio.tasks.created", "counter", EVENTS, "event", "", "loop.create_task", "Tasks that loop.create_task, or what calls it, has made."),
    ("python.asyncio.lag", "histogram", TICKS, "timer", "", "loop.call_later", "By how much timers were late, ten a second and loop; up to 1 ms of it is how the kernel rounds a wait."),
    ("python.asyncio.lag.last", "gauge", TICKS, "timer", "", "loop.call_later", "By how much the last one was late."),
    ("python.asyncio.lag.longest", "gauge", TICKS, "timer", "", "loop.call_later", "The longest that one was late."),
)
# fmt: on

_INTERVAL = 100_000_000  # ns
_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds
_COUNTING = 100  # a loop's tasks are counted for at most the hundredth part of its time


_loops: Loops | None = None


def attach(asyncio: ModuleType) -> Undo:
    global _loops
    if _loops is None:
        _loops = Loops(asyncio)
    _loops.watch()
    return _loops.leave


class LoopMonitor:
    """One loop, while it runs. All of it happens in the loop's thread."""

    def __init__(self, loops: Loops, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.tasks = 0
        self._loops = loops
        self._count_at = 0
        self._handle = self._set_timer()

    def _set_timer(self) -> TimerHandle:
        self._due = monotonic_ns() + _INTERVAL
        # In a context of its own: else it would keep alive what the program has in its own.
        return self.loop.call_later(_INTERVAL / 1e9, self._tick, context=Context())

    def _tick(self) -> None:
        now = monotonic_ns()
        try:
            if not self._loops.knows(self):
                return
            if now >= self._count_at:
                self.tasks = self._loops.count(self.loop)
                after = monotonic_ns()
                self._count_at = after + (after - now) * _COUNTING
            self._loops.show(max(0, now - self._due))
            self._handle = self._set_timer()
        except Exception:  # of a loop that is not asyncio's; the program's are not run here
            log.say("debug", "asyncio: a loop is no longer watched", error=sys.exception())

    def stop(self) -> None:
        self._handle.cancel()


class Loops:
    """All loops that run, by their threads."""

    def __init__(self, asyncio: Any) -> None:
        table = InstrumentCounters(ROWS)
        self._running = table.gauge("python.asyncio.loops")
        self._tasks = table.gauge("python.asyncio.tasks")
        self._created = table.counter("python.asyncio.tasks.created")
        self._last = table.gauge("python.asyncio.lag.last")
        self._longest = table.gauge("python.asyncio.lag.longest")
        self._lag = table.histogram("python.asyncio.lag", _BOUNDS)
        self._asyncio = asyncio
        self._base: type = asyncio.BaseEventLoop
        self._other: set[type] = set()
        self._monitors: dict[int, LoopMonitor] = {}
        self._patches = Patches()
        self._lock = RLock()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._after_fork)

    def watch(self) -> None:
        self._watch_creation(self._base)
        self._watch_running(self._asyncio)
        self._adopt(self._asyncio.AbstractEventLoop)

    def leave(self) -> bool:
        """Undoes `watch`, except where other code has replaced what it put in; each loop's timer comes once more."""
        if not self._patches.undo_all():
            return False
        self._other.clear()
        self._monitors = {}
        self._running.set(0)
        self._tasks.set(0)
        return True

    def knows(self, monitor: LoopMonitor) -> bool:
        return self._monitors.get(get_ident()) is monitor

    def _after_fork(self) -> None:
        self._lock = RLock()
        for monitor in self._monitors.values():
            monitor.stop()
        self._monitors = {}
        self._running.set(0)  # asyncio's own hook has the forking thread's loop end, which counts the others again
        self._tasks.set(0)

    # -- which loops run

    def _watch_running(self, asyncio: Any) -> None:
        set_running_loop = asyncio._set_running_loop

        @wraps(set_running_loop)
        def watched(loop: AbstractEventLoop | None) -> None:
            set_running_loop(loop)
            self._runs(loop)

        # The one call that every loop makes when it begins to run and, with None, when it no longer does.
        self._patches.replace(asyncio.events, "_set_running_loop", watched)
        self._patches.replace(asyncio, "_set_running_loop", watched)

    def _adopt(self, kind: type) -> None:
        """Those that run already, in whichever thread."""
        loop: Any
        for loop in native.tracked_objects(None):
            if issubclass(type(loop), kind):
                try:
                    if loop.is_running():
                        loop.call_soon_threadsafe(self._runs, loop, context=Context())
                except Exception:  # it is just being made, or has ended in between
                    log.say("debug", "asyncio: a loop cannot be watched", error=sys.exception())

    def _runs(self, loop: AbstractEventLoop | None) -> None:
        """This thread runs `loop`, or none."""
        thread = get_ident()
        try:
            before = self._monitors.get(thread)
            if before is not None:
                if before.loop is loop:
                    return
                del self._monitors[thread]
                before.stop()
            if loop is not None:
                self._monitors[thread] = LoopMonitor(self, loop)
                self._watch_other(type(loop))
        except Exception:
            log.say("debug", "asyncio: a loop cannot be watched", error=sys.exception())
        self._running.set(len(self._monitors))
        self._tasks.set(sum(monitor.tasks for monitor in [*self._monitors.values()]))

    # -- their tasks

    def _watch_other(self, kind: type) -> None:
        """A loop that is not made of asyncio's, such as uvloop's, makes tasks in a way of its own."""
        if not issubclass(kind, self._base) and kind not in self._other:
            self._other.add(kind)
            self._watch_creation(kind)

    def _watch_creation(self, kind: Any) -> None:
        create_task, created = kind.create_task, self._created

        @wraps(create_task)
        def watched(self: AbstractEventLoop, /, *args: Any, **kwargs: Any) -> Any:
            task = create_task(self, *args, **kwargs)
            created.inc()
            trace = getattr(task, "_source_traceback", None)  # of the debug mode; asyncio leaves its own frame out too
            if trace and trace[-1].filename == __file__:
                del trace[-1]
            return task

        self._patches.replace(kind, "create_task", watched)

    def count(self, loop: AbstractEventLoop) -> int:
        return len(self._asyncio.all_tasks(loop))

    # -- the lag

    def show(self, lag: int) -> None:
        """After a loop's timer."""
        self._tasks.set(sum(monitor.tasks for monitor in [*self._monitors.values()]))
        self._lag.observe(lag / 1e9)
        self._last.set(lag)
        with self._lock:
            if lag > self._longest.value:
                self._longest.set(lag)
