"""Contended locks: where is waited for them, how long, because of whom; and deadlocks, found and printed.

    vmscope run -pyagent:vmscope.agents.locks=report=on app.py

CPython's locks do not say who waits. This agent therefore has to be there before the program makes its locks: by
`-pyagent:`, not into a live process. It sees what `threading.Lock` and `threading.RLock` make from then on. In the
region:

    locks.contended{at=,by=}    a lock was not free: where it was wanted, and where its owner stood
    locks.wait{at=}             how long was waited until it was had: a histogram
    locks.deadlocks             deadlocks

A deadlock is a circle of threads each of which waits for a lock that the next one has, or, in `Thread.join`, for its
end. It is printed on standard error, once, with the stacks of its threads. Options: `every=1s`, how often is looked for
one; `report=on`, a table of the waits on standard error at the end.
"""

from __future__ import annotations

import os
import sys
import threading
from time import perf_counter_ns
from types import FrameType

import vmscope
from vmscope.agents import options
from vmscope.agents.stacks import OWN, stacks_of
from vmscope.agents.ticker import Ticker
from vmscope.tool import Capability, Environment, Event, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.agents.options import VM
    from vmscope.counters.kinds import Counter, Histogram

BOUNDS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0)  # seconds
STDERR = 2
PASSED_OVER = (OWN, threading.__file__)
READERS = {"every": options.seconds, "report": options.switch}

_loaded: dict[int, Locks] = {}


def agent_on_load(vm: VM, text: str) -> int:
    """ValueError for bad options."""
    _loaded[id(vm)] = Locks(vm, text)
    return 0


def agent_on_attach(vm: VM, text: str) -> int:
    """NotAvailable, unless it, or another agent that needs to see locks, was there from the beginning."""
    return agent_on_load(vm, text)


def agent_on_unload(vm: VM) -> None:
    _loaded.pop(id(vm)).close()


class Locks:
    """One loaded agent."""

    def __init__(self, vm: VM, text: str) -> None:
        given = options.parse(text, READERS)
        self.report = bool(given.get("report", [False])[-1])
        every = given.get("every", [1.0])[-1]
        self.contended = vmscope.counter("locks.contended", units=vmscope.Units.EVENTS)
        self.wait = vmscope.histogram("locks.wait", bounds=BOUNDS)
        self.deadlocks = vmscope.counter("locks.deadlocks", units=vmscope.Units.EVENTS)
        self._seen: dict[tuple[str, str], Counter] = {}
        self._waits: dict[str, Histogram] = {}
        self._since: dict[Thread, tuple[str, int]] = {}
        self._suspects: set[Circle] = set()
        self._told: set[Circle] = set()
        self._env = vm.get_env(agent=__name__)
        self._env.add_capabilities(
            {
                Capability.CAN_GENERATE_MONITOR_EVENTS,
                Capability.CAN_GET_CURRENT_CONTENDED_MONITOR,
                Capability.CAN_GET_MONITOR_INFO,
            }
        )
        self._env.set_event_callbacks(
            {Event.MONITOR_CONTENDED_ENTER: self._on_wait, Event.MONITOR_CONTENDED_ENTERED: self._on_had}
        )
        self._env.set_event_notification_mode(True, Event.MONITOR_CONTENDED_ENTER)
        self._env.set_event_notification_mode(True, Event.MONITOR_CONTENDED_ENTERED)
        self._ticker = Ticker(vm, "vmscope locks", every if isinstance(every, float) else 1.0, self._look)

    def close(self) -> None:
        self._ticker.stop()
        if not self._env.disposed:
            self._env.dispose_environment()
        if self.report:
            self.print_report()

    def print_report(self) -> None:
        """Where was waited, the longest first; below it where the owners stood."""
        lines = [f"{'waits':>9} {'had':>9} {'seconds':>9}  waiting at, while the owner stood at"]
        for at, wait in sorted(self._waits.items(), key=lambda item: -item[1].sum):
            owners = sorted(((c.value, by) for (place, by), c in self._seen.items() if place == at), reverse=True)
            lines.append(f"{sum(count for count, _ in owners):9} {wait.count:9} {wait.sum:9.3f}  {at}")
            lines += [f"{count:9} {'':21}{by}" for count, by in owners]
        sys.stderr.write("\n".join(lines) + "\n")

    # -- events: on the thread that waits -----------------------------------------------------------

    def _on_wait(self, env: Environment, thread: Thread, lock: object) -> None:
        at = place(sys._getframe(1))
        owner = env.get_object_monitor_usage(lock).owner
        by = "?" if owner is None else place(sys._current_frames().get(owner.ident))
        counter = self._seen.get((at, by))
        if counter is None:
            counter = self._seen[at, by] = self.contended.labels(at=at, by=by)
            self._waits.setdefault(at, self.wait.labels(at=at))
        counter.inc()
        self._since[thread] = at, perf_counter_ns()

    def _on_had(self, env: Environment, thread: Thread, lock: object) -> None:
        at, since = self._since.pop(thread, ("", 0))
        if since:
            self._waits[at].observe((perf_counter_ns() - since) / 1e9)

    # -- deadlocks: on the ticker's thread ----------------------------------------------------------

    def _look(self) -> None:
        """What is a circle at two looks is one. The parts of the first may be of different moments."""
        circles = set(self._circles())
        for circle in circles & self._suspects - self._told:
            self._told.add(circle)
            self.deadlocks.inc()
            self._print(circle)
        self._suspects = circles
        self._told &= circles

    def _circles(self) -> list[Circle]:
        waits: dict[Thread, tuple[Thread, object]] = {}
        threads = self._env.get_all_threads()
        frames = sys._current_frames()
        for thread in threads:
            lock = self._env.get_current_contended_monitor(thread)
            owner = None if lock is None else self._env.get_object_monitor_usage(lock).owner
            if lock is None:
                owner = joined(frames.get(thread.ident), threads)
            if owner is not None and (lock is None or not isinstance(lock, threading.Condition)):
                waits[thread] = owner, lock
        found: list[Circle] = []
        done: set[Thread] = set()
        for thread in waits:
            path: list[Thread] = []
            each: Thread | None = thread
            while each in waits and each not in done:
                done.add(each)
                path.append(each)
                each = waits[each][0]
            if each in path:
                members = path[path.index(each) :]
                found.append(tuple((member, waits[member][0], id(waits[member][1])) for member in members))
        return found

    def _print(self, circle: Circle) -> None:
        lines = ["vmscope locks: deadlock:"]
        for thread, other, _ in circle:
            lock = self._env.get_current_contended_monitor(thread)
            what = "the end of it" if lock is None else f"{lock!r}, which it has"
            lines.append(f'  "{thread.name}" waits for "{other.name}": for {what}')
        stacks = stacks_of(self._env, [thread for thread, _, _ in circle])
        data = ("\n".join(lines) + f"\n\n{stacks}\n").encode(errors="backslashreplace")
        while data:
            data = data[os.write(STDERR, data) :]


if TYPE_CHECKING:
    Circle = tuple[tuple[Thread, Thread, int], ...]  # who, for whom, and the lock's id


def joined(frame: FrameType | None, threads: list[Thread]) -> Thread | None:
    """The thread whose end is waited for, however long it takes, in `Thread.join`."""
    join = threading.Thread.join.__code__
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        if frame.f_code is join and frame.f_locals.get("timeout") is None:
            ident = getattr(frame.f_locals.get("self"), "ident", None)
            return next((each for each in threads if each.ident == ident), None)
        frame = frame.f_back
    return None


def place(frame: FrameType | None) -> str:
    """`module.function:line` of the innermost frame that is neither ours nor threading's."""
    while frame is not None and frame.f_code.co_filename.startswith(PASSED_OVER):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{frame.f_lineno}"
