"""A thread of an agent's that does something each so often, and that os.fork does not see.

From CPython 3.12 on os.fork warns when the process has a second thread, which fails a program that runs with warnings
as errors. So the thread ends before a fork; in the child it begins again at once, in the parent with the first step
after os.fork has returned.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_native_id  # now: gevent puts others in their places
from time import monotonic, sleep
from types import CodeType, FrameType

from vmscope.tool import Capability, Environment, Event, Phase, Thread, agent_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from vmscope.agents.options import VM

FAILURES = 10  # in a row, after which it ticks no more
GONE_WITHIN = 2.0  # seconds; a thread that is busy for longer is left to os.fork, and to its warning

_tickers: list[Ticker] = []
_hooked = False


class Ticker:
    """Calls `tick` each `interval` seconds, from the phase LIVE on until `stop()` or VMDeath; `begin` before the thread
    is there, `pause` after it.

    What `tick` raises is logged; ten times in a row end it. It has an environment of its own, as it sets callbacks.
    """

    def __init__(
        self,
        vm: VM,
        name: str,
        interval: float,
        tick: Callable[[], object],
        begin: Callable[[], object] = bool,
        pause: Callable[[], object] = bool,
    ) -> None:
        self.interval = interval
        self.began = 0.0  # when the thread was started last
        self._name = name
        self._tick = tick
        self._begin = begin
        self._pause = pause
        self._paused = False
        self._thread: Thread | None = None
        self._wake: LockType = allocate_lock()  # held while there is nothing to wake the thread for
        self._forking: tuple[int, CodeType, int] | None = None  # the frame that forks, and where it stands
        self._env = vm.get_env(agent=name)
        self._waits = hasattr(sys, "monitoring")  # for the end of os.fork: earlier versions do not warn
        if self._waits:
            self._env.add_capabilities({Capability.CAN_GENERATE_SINGLE_STEP_EVENTS})
        self._env.set_event_callbacks(
            {Event.VM_INIT: self._on_init, Event.VM_DEATH: self._on_death, Event.SINGLE_STEP: self._on_step}
        )
        self._env.set_event_notification_mode(True, Event.VM_DEATH)
        _hook()
        _tickers.append(self)
        if self._env.get_phase() == Phase.LIVE:
            self._start()
        else:
            self._env.set_event_notification_mode(True, Event.VM_INIT)

    def stop(self) -> None:
        """Ends the thread, for good."""
        if self in _tickers:
            _tickers.remove(self)
        if self._end():
            self._pause()
        if not self._env.disposed:
            self._env.dispose_environment()

    # -- the thread -------------------------------------------------------------------------------

    def _start(self) -> None:
        self._paused = False
        self._wake = allocate_lock()
        self._wake.acquire()
        self._thread = Thread(name=self._name)
        self.began = monotonic()
        self._begin()
        self._env.run_agent_thread(self._thread, self._run, self._wake)

    def _run(self, env: Environment, wake: LockType) -> None:
        failures = 0
        while not wake.acquire(timeout=self.interval) and failures < FAILURES:
            try:
                self._tick()
                failures = 0
            except Exception as error:
                if self._env.disposed or self._env.get_phase() != Phase.LIVE:
                    return  # it has ended meanwhile
                failures += 1
                end = ", which ends it" if failures == FAILURES else ""
                agent_errors.report(self._env.agent, "thread", "a look failed%s", end, error=error)

    def _end(self) -> bool:
        """Whether there was one. It is waited for, until the system has no such thread any more."""
        thread = self._thread
        if thread is None or thread.native_id == get_native_id():
            return False
        self._thread = None
        if self._wake.locked():
            self._wake.release()
        limit = monotonic() + GONE_WITHIN
        while os.path.exists(f"/proc/self/task/{thread.native_id}") and monotonic() < limit:
            sleep(0.0002)
        return True

    def _on_init(self, env: Environment, thread: Thread) -> None:
        self._start()

    def _on_death(self, env: Environment) -> None:
        if self in _tickers:
            _tickers.remove(self)
        self._paused = False
        if self._end():
            self._pause()

    # -- os.fork ----------------------------------------------------------------------------------

    def before_fork(self) -> None:
        if self._end():
            self._paused = True
            self._pause()

    def after_fork(self, child: bool) -> None:
        if self._paused and (child or not self._waits):
            self._start()
        elif self._paused:
            frame = sys._getframe(2)
            self._forking = id(frame), frame.f_code, frame.f_lasti
            self._env.set_event_notification_mode(True, Event.SINGLE_STEP, self._env.get_current_thread())

    def _on_step(self, env: Environment, thread: Thread, method: CodeType, location: int) -> None:
        """The first one after the fork; but other hooks of os.fork's step too."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if (id(frame), frame.f_code, frame.f_lasti) == self._forking:
                return
            frame = frame.f_back
        env.set_event_notification_mode(False, Event.SINGLE_STEP, thread)
        if self._paused:
            self._start()


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _before_fork() -> None:
    for ticker in _tickers:
        ticker.before_fork()


def _after_in_parent() -> None:
    for ticker in _tickers:
        ticker.after_fork(child=False)


def _after_in_child() -> None:
    for ticker in _tickers:
        ticker.after_fork(child=True)
