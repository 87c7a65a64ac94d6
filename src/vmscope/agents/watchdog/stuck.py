"""Whether the main thread is stuck.

Each look compares where it stands: one stack costs some microseconds. A thread that is seen twice at one place may have
been elsewhere in between, so after half of the limit it has to prove that it lives: by one step, for the call that it
is in, or by the end of a frame, for a function that is watched. Only then does anything cost the program anything.
"""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from types import CodeType, FrameType

from vmscope.tool import Capability, Event, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.agents.options import VM
    from vmscope.tool import Environment

IDLE = ("selectors.*.select", "socket.socket.accept", "gunicorn.arbiter.Arbiter.sleep", "gevent.hub.Hub.run")


class Suspicion:
    """One place that a thread seems not to leave."""

    def __init__(self) -> None:
        self.key: object = None
        self.since = 0.0
        self.asked = False  # to prove that it lives
        self.answered = False

    def holds(self, key: object, now: float) -> float:
        """How long it has been there, as far as is known."""
        if key is None or key != self.key or self.answered:
            self.key, self.since, self.asked, self.answered = key, now, False, False
        return now - self.since


class MainThread:
    """`watched` and `idle` are patterns of functions."""

    def __init__(self, vm: VM, limit: float, watched: list[str], idle: list[str]) -> None:
        self._limit = limit
        self._watched = watched
        self._idle = idle
        self._call = Suspicion()
        self._function = Suspicion()
        self._thread: Thread | None = None
        self._env = vm.get_env(agent="vmscope.agents.watchdog")
        self._steps = Capability.CAN_GENERATE_SINGLE_STEP_EVENTS in self._env.get_potential_capabilities()
        if watched or self._steps:
            self._env.add_capabilities(
                {Capability.CAN_GENERATE_SINGLE_STEP_EVENTS, Capability.CAN_GENERATE_FRAME_POP_EVENTS}
            )
            self._env.set_event_callbacks({Event.SINGLE_STEP: self._on_step, Event.FRAME_POP: self._on_pop})
            self._env.set_event_notification_mode(True, Event.FRAME_POP)

    def close(self) -> None:
        if not self._env.disposed:
            self._env.dispose_environment()

    def stuck(self, now: float) -> str:
        """Why it is, in a sentence; "" when it is not."""
        thread = self._main()
        frame = None if thread is None else sys._current_frames().get(thread.ident)
        if thread is None or frame is None:
            return ""
        return self._stuck_in_call(thread, frame, now) or self._stuck_in_function(thread, frame, now)

    def _stuck_in_call(self, thread: Thread, frame: FrameType, now: float) -> str:
        key: object = (id(frame), frame.f_code, frame.f_lasti, None if self._steps else waits(thread))
        if matches(frame, self._idle):
            key = None
        lasted = self._call.holds(key, now)
        if self._steps and self._call.asked != (lasted >= self._limit / 2):
            self._call.asked = not self._call.asked
            self._env.set_event_notification_mode(self._call.asked, Event.SINGLE_STEP, thread)
        if lasted < self._limit or key is None:
            return ""
        return f"the main thread has been in one call for {lasted:.1f} s: {where(frame)}"

    def _stuck_in_function(self, thread: Thread, frame: FrameType, now: float) -> str:
        found: FrameType | None = None
        depth = 0
        for at, each in enumerate(stack(frame) if self._watched else ()):
            if matches(each, self._watched):
                found, depth = each, at
        lasted = self._function.holds(None if found is None else (id(found), found.f_code), now)
        if found is None:
            return ""
        if lasted >= self._limit / 2 and not self._function.asked:
            self._function.asked = True
            self._env.clear_all_frame_pops(thread)
            self._env.notify_frame_pop(thread, depth)
        if lasted < self._limit:
            return ""
        return f"the main thread has been in one call of {name(found)} for {lasted:.1f} s: {where(frame)}"

    def _on_step(self, env: Environment, thread: Thread, method: CodeType, location: int) -> None:
        self._call.answered = True
        env.set_event_notification_mode(False, Event.SINGLE_STEP, thread)

    def _on_pop(self, env: Environment, thread: Thread, method: CodeType, by_exception: bool) -> None:
        self._function.answered = True

    def _main(self) -> Thread | None:
        """Its native id is the process's; in a forked child that is another thread."""
        if self._thread is None or self._thread.native_id != os.getpid():
            self._thread = next((each for each in self._env.get_all_threads() if each.native_id == os.getpid()), None)
        return self._thread


def waits(thread: Thread) -> str:
    """How often the thread has waited for something, as the kernel counts it: for versions without events of steps."""
    with open(f"/proc/self/task/{thread.native_id}/status", encoding="ascii", errors="replace") as file:
        return next((line for line in file if line.startswith("voluntary_ctxt_switches")), "")


def matches(frame: FrameType, patterns: list[str]) -> bool:
    known = name(frame)
    return any(fnmatchcase(known, pattern) for pattern in patterns)


def name(frame: FrameType) -> str:
    """`module.function`."""
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}"


def where(frame: FrameType) -> str:
    return f"{name(frame)}, {frame.f_code.co_filename}:{frame.f_lineno}"


def stack(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
