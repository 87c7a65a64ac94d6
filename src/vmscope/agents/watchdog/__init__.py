"""Acts when the process is not what it should be: too much garbage collection, waiting for the GIL, memory, or a main
thread that is stuck.

    vmscope run -pyagent:vmscope.agents.watchdog=gc=50%,memory=2g,stuck=30s,exit=3 app.py

Options, with commas between. Limits; those of the first three have to be passed for as long as `for=` says (30s):

    gc=50%        share of time in garbage collections
    gil=20ms      how long a thread waits for the GIL, on average, as vmscope's sampler sees it
    memory=2g     resident memory, the whole time; with %, of what the machine or the control group has
    stuck=30s     the main thread executes nothing so long, and does not wait for events (idle=)
    in=PATTERN    with stuck=: nor may a call of such a function take so long; may be repeated
    idle=PATTERN  with stuck=: waiting in such a function is idleness; may be repeated
    frozen=10s    no thread gets the GIL so long. By faulthandler, whose timer is then taken

What is done, in this order:

    dump=PATH     the stacks of all threads; by default, and with `dump=-`, on standard error; `dump=off`: none
    command=...   runs by /bin/sh, for a minute at most; the last option, commas and all. $VMSCOPE_PID, $VMSCOPE_LIMIT
                  and $VMSCOPE_REASON say what happened
    exit=3        ends the process with this status at once; exit=TERM sends it this signal

    again=10m     the same limit is not acted on again before
    every=1s      how often it looks
"""

from __future__ import annotations

import time

import vmscope
from vmscope.agents import options
from vmscope.agents.entries import entries
from vmscope.agents.ticker import Ticker
from vmscope.agents.watchdog import readings
from vmscope.agents.watchdog.actions import Actions, exit_of
from vmscope.agents.watchdog.stuck import IDLE, MainThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.agents.options import VM

READERS = {
    "gc": options.share,
    "gil": options.seconds,
    "memory": readings.memory_limit,
    "stuck": options.seconds,
    "in": options.word,
    "idle": options.word,
    "frozen": options.seconds,
    "for": options.seconds,
    "dump": options.word,
    "exit": exit_of,
    "again": options.seconds,
    "every": options.seconds,
    "command": options.word,
}
LIMITS = ("gc", "gil", "memory", "stuck", "frozen")


class Watchdog:
    """One loaded agent. ValueError for bad options."""

    def __init__(self, vm: VM, text: str) -> None:
        given = options.parse(text, READERS, rest="command")
        if not any(name in given for name in LIMITS):
            raise ValueError(f"no limit: give at least one of {', '.join(f'{name}=' for name in LIMITS)}")
        if ("in" in given or "idle" in given) and "stuck" not in given:
            raise ValueError("in= and idle= say more of stuck=, which is not there")
        last = {name: values[-1] for name, values in given.items()}
        number = {name: value for name, value in last.items() if isinstance(value, float | int)}
        self._fired = vmscope.counter("watchdog.fired", units=vmscope.Units.EVENTS)
        self._reason = vmscope.text("watchdog.reason", capacity=256)
        self._again = number.get("again", 600.0)
        self._silent: dict[str, float] = {}  # by limit: until when it is not acted on
        self._frozen = number.get("frozen", 0.0)
        self._ticked = time.monotonic()
        self._env = vm.get_env(agent=__name__)
        self._actions = Actions(
            self._env, str(last.get("dump", "-")), str(last.get("command", "")), last.get("exit"), self._frozen
        )
        window = number.get("for", 30.0)
        self._readings = readings.Readings({each: number[each] for each in LIMITS[:3] if each in number}, window)
        self._main: MainThread | None = None
        shortest = [number[name] for name in ("stuck", "frozen") if name in number]
        if "stuck" in number:
            idle = [*IDLE, *map(str, given.get("idle", ()))]
            self._main = MainThread(vm, number["stuck"], list(map(str, given.get("in", ()))), idle)
        interval = number.get("every", min(1.0, *(each / 5 for each in [window, *shortest])))
        self._ticker = Ticker(vm, "vmscope watchdog", max(interval, 0.01), self._look, self._begin, self._pause)

    def close(self) -> None:
        self._ticker.stop()
        if self._main is not None:
            self._main.close()
        if not self._env.disposed:
            self._env.dispose_environment()

    def _begin(self) -> None:
        if self._frozen:
            self._actions.arm()

    def _pause(self) -> None:
        if self._frozen:
            self._actions.disarm()

    def _look(self) -> None:
        """What it does each so often, on the ticker's thread."""
        now = time.monotonic()
        late, self._ticked = now - max(self._ticked, self._ticker.began), now
        if self._frozen:
            self._actions.arm()  # first of all: what is done below takes time, and a fork may come meanwhile
            if late > self._frozen + self._ticker.interval:
                self._act("frozen", f"no thread got the GIL for {late:.1f} s", now)
        for name, reason in self._readings.passed(now):
            self._act(name, reason, now)
        reason = self._main.stuck(now) if self._main else ""
        if reason:
            self._act("stuck", reason, now)

    def _act(self, name: str, reason: str, now: float) -> None:
        if now >= self._silent.get(name, 0.0):
            self._silent[name] = now + self._again
            self._fired.inc()
            self._fired.labels(limit=name).inc()
            self._reason.set(reason)
            self._actions.act(name, reason)
            self._ticked = time.monotonic()


agent_on_load, agent_on_unload = entries(Watchdog)
agent_on_attach = agent_on_load
