"""Counts who waits for which lock, for how long, and because of whom; finds deadlocks, and prints them.

    vmscope run -pyagent:vmscope.agents.locks=report=on app.py

It has to be there before the program makes its locks, so it is loaded when the program starts. Counters, in the region;
`made` is where a lock was made:

    locks.contended{made="shop.cart.Cart.__init__:12"}      a thread had to wait to get it
    locks.wait{made=}                                       how long those that got it had waited: a histogram
    locks.owners{by="shop.cart.total:41",made=}             who had it when another came: what took it
    locks.notified{made=}                                   how long was waited to be notified, for a condition's lock
    locks.deadlocks, locks.deadlock                         how many were found; the last one, in words

Options: `dump=PATH`, a file that deadlocks are appended to (default: `-`, standard error); `after=1s`, how long the
threads of a deadlock have to have waited; `most=20`, this many places have counters of their own, the others one;
`owners=off`: nothing on what took a lock, which is cheaper; `report=on`, a table on standard error at
the end.
"""

from __future__ import annotations

import sys
import time
from types import CodeType

import vmscope
from vmscope.agents import deadlocks, options
from vmscope.agents.deadlocks import LockWait
from vmscope.agents.dumps import append
from vmscope.agents.entries import entries
from vmscope.agents.reports import offer
from vmscope.agents.ticker import Ticker
from vmscope.tool import Capability, Environment, Event, Phase, Thread, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.agents.options import VM
    from vmscope.counters.kinds import Counter, Histogram

READERS = {
    "dump": options.word,
    "after": options.seconds,
    "most": options.number,
    "owners": options.switch,
    "report": options.switch,
}
NEEDED = {
    Capability.CAN_GENERATE_MONITOR_EVENTS,
    Capability.CAN_GET_CURRENT_CONTENDED_MONITOR,
    Capability.CAN_GET_MONITOR_INFO,
}
DEPTHS = Capability.CAN_GET_OWNED_MONITOR_STACK_DEPTH_INFO
EVENTS = (
    Event.MONITOR_CONTENDED_ENTER,
    Event.MONITOR_CONTENDED_ENTERED,
    Event.MONITOR_WAIT,
    Event.MONITOR_WAITED,
)
OTHER = "other"
BOUNDS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0)  # seconds
NANOSECONDS = 1e9  # in a second


class Places:
    """This many texts as they are; all later ones share one more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, text: str) -> str:
        if text not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(text)
        return text


class Locks:
    """One loaded agent. ValueError for bad options, RuntimeError when the program runs already."""

    def __init__(self, vm: VM, text: str) -> None:
        given = {name: values[-1] for name, values in options.parse(text, READERS).items()}
        self._dump = str(given.get("dump", "-"))
        self._after = int(float(str(given.get("after", 1.0))) * NANOSECONDS)
        most = int(str(given.get("most", 20)))
        self._made, self._waited, self._by = Places(most), Places(most), Places(most)
        self._depths = bool(given.get("owners", True))
        self._report = bool(given.get("report", False))
        self._env = vm.get_env(agent=__name__)
        needed = NEEDED | ({DEPTHS} if self._depths else set())
        if not needed <= set(self._env.get_potential_capabilities()):
            raise RuntimeError(
                "the program has made its locks already: load this agent when it starts, "
                "by vmscope run -pyagent: or VMSCOPE_TOOL_OPTIONS"
            )
        self._env.add_capabilities(needed)
        events = vmscope.Units.EVENTS
        self._contended = vmscope.counter("locks.contended", units=events)
        self._wait = vmscope.histogram("locks.wait", bounds=BOUNDS)
        self._owners = vmscope.counter("locks.owners", units=events)
        self._notified = vmscope.histogram("locks.notified", bounds=BOUNDS)
        self._deadlocks = vmscope.counter("locks.deadlocks", units=events)
        self._deadlock = vmscope.text("locks.deadlock", capacity=512)
        self._seen: dict[str, tuple[Counter, Histogram, dict[str, Counter]]] = {}  # by where made; the last by owner
        self._blocked: dict[Thread, LockWait] = {}  # who waits to get a lock
        self._joining: dict[Thread, LockWait] = {}  # who waits for a thread's end, as of the last look
        self._waiting: dict[Thread, int] = {}  # who waits to be notified, since when
        self._env.set_event_callbacks(
            dict(zip(EVENTS, (self._on_enter, self._on_entered, self._on_wait, self._on_waited), strict=True))
        )
        for event in EVENTS:
            self._env.set_event_notification_mode(True, event)
        offer(vm, "Locks.print", "Which locks were waited for, and who had them.", self.table)
        self._ticker = Ticker(vm, "vmscope locks", max(self._after / NANOSECONDS / 4, 0.01), self._look)

    def close(self) -> None:
        self._ticker.stop()
        if not self._env.disposed:
            self._env.dispose_environment()
        if self._report:
            append("-", self.table())

    def table(self) -> str:
        """Which locks were waited for, the longest first, and who had them."""
        lines = [f"{'waits':>9} {'seconds':>9}  for the lock made at, while it had been taken by"]
        for made, (contended, wait, owners) in sorted([*self._seen.items()], key=lambda each: -each[1][1].sum):
            lines.append(f"{contended.value:9} {wait.sum:9.3f}  {made}")
            rows = sorted(((counter.value, by) for by, counter in [*owners.items()]), reverse=True)
            lines += [f"{count:9} {'':11}{by}" for count, by in rows]
        return "\n".join(lines) + "\n"

    # -- events, on the program's threads ---------------------------------------------------------

    def _on_enter(self, env: Environment, thread: Thread, lock: object) -> None:
        self._blocked[thread] = LockWait(lock, time.perf_counter_ns())
        made = self._made(deadlocks.made(lock))
        contended, _, owners = self._seen.get(made) or self._seen.setdefault(
            made, (self._contended.labels(made=made), self._wait.labels(made=made), {})
        )
        contended.inc()
        if self._depths:
            by = self._by(self._owner(env, lock))
            owner = owners.get(by) or owners.setdefault(by, self._owners.labels(by=by, made=made))
            owner.inc()

    def _on_entered(self, env: Environment, thread: Thread, lock: object) -> None:
        wait = self._blocked.pop(thread, None)
        if wait is not None and wait.what is lock:
            seconds = (time.perf_counter_ns() - wait.since) / NANOSECONDS
            self._wait.labels(made=self._made(deadlocks.made(lock))).observe(seconds)

    def _on_wait(self, env: Environment, thread: Thread, condition: object, timeout: int) -> None:
        self._waiting[thread] = time.perf_counter_ns()

    def _on_waited(self, env: Environment, thread: Thread, condition: object, timed_out: bool) -> None:
        since = self._waiting.pop(thread, None)
        if since is not None:
            seconds = (time.perf_counter_ns() - since) / NANOSECONDS
            self._notified.labels(made=self._waited(deadlocks.made(condition))).observe(seconds)

    def _owner(self, env: Environment, lock: object) -> str:
        """What took a lock, and the line where that is now: `module.function:line`."""
        try:
            owner = env.get_object_monitor_usage(lock).owner
            if owner is not None:
                taker = self._taker(env, owner, lock)
                frame = sys._current_frames().get(owner.ident)
                while frame is not None:
                    if frame.f_code is taker:
                        return deadlocks.place(frame.f_globals.get("__name__", "?"), taker, frame.f_lasti)
                    frame = frame.f_back
        except ToolError:  # it has ended meanwhile, or returned
            return "?"
        return "?"

    def _taker(self, env: Environment, owner: Thread, lock: object) -> CodeType | None:
        """The code of the frame that took it; None where that has returned."""
        for info in env.get_owned_monitor_stack_depth_info(owner):
            if info.monitor is lock and info.stack_depth >= 0:
                return env.get_frame_location(owner, info.stack_depth).method
        return None

    # -- deadlocks, on a thread of its own --------------------------------------------------------

    def _look(self) -> None:
        try:
            self._find()
        except ToolError:
            if self._env.get_phase() == Phase.LIVE:  # it has not ended meanwhile
                raise

    def _find(self) -> None:
        for thread in [*self._blocked]:
            if not thread.alive:
                self._blocked.pop(thread, None)
        self._joining = deadlocks.joins(self._env, self._joining)
        waits = {**self._joining, **self._blocked}
        for found in deadlocks.find(self._env, waits, self._after):
            self._deadlocks.inc()
            self._deadlock.set(deadlocks.summary(found))
            append(self._dump, deadlocks.report(self._env, found, waits))


agent_on_load, agent_on_unload = entries(Locks)
agent_on_attach = agent_on_load
