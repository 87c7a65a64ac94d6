"""This process as a VM that hosts agents: its phase, its capability rules, its environments, what sends their events.

One `Host` serves a process: `vm()`. It is made with the first look at it, LIVE at once; with agents that are loaded
before the program begins, as `begin()` makes it, it goes through all phases.
"""

from __future__ import annotations

import _thread
import atexit
import sys

from vmscope import flags, native, own_threads
from vmscope.tool.environment import Environment
from vmscope.tool.functions import entry_checks
from vmscope.tool.functions.breakpoints import Points, Pops
from vmscope.tool.functions.suspension import Suspension
from vmscope.tool.model import threads
from vmscope.tool.model.resource_holders import holders
from vmscope.tool.sources import event_sources
from vmscope.tool.sources.field_watches import WatchedFields
from vmscope.tool.sources.locks import LockEvents
from vmscope.tool.spec import available_capabilities
from vmscope.tool.spec.capabilities import CapabilityRules
from vmscope.tool.spec.codes import Phase, Version
from vmscope.tool.spec.errors import LONGEST, NotAttached, VersionNotOffered, shown
from vmscope.tool.spec.events import Event, bit

if sys.platform != "win32":
    from vmscope import termination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from vmscope.tool.agent import Agent
    from vmscope.tool.functions.extensions import Extension
    from vmscope.tool.model.threads import Thread

    class EventSource(Protocol):
        """What makes events happen: a tool id of sys.monitoring, a gc callback, a wrapped bootstrap."""

        def update(self, host: Host) -> None:
            """Called, under `host.lock`, after anything changed that decides which events are sent to whom."""


# Where a VM may go from each phase. A process that is already running when vmscope starts is LIVE at once.
NEXT = {
    Phase.PRIMORDIAL: (Phase.ONLOAD, Phase.START, Phase.LIVE, Phase.DEAD),
    Phase.ONLOAD: (Phase.PRIMORDIAL, Phase.DEAD),
    Phase.START: (Phase.LIVE, Phase.DEAD),
    Phase.LIVE: (Phase.DEAD,),
    Phase.DEAD: (),
}

SAMPLING_INTERVAL = 512 * 1024  # bytes of new objects between those that SampledObjectAlloc reports, on average


class Host:
    """The VM. `environments` stand in the order of their creation, which is that of each event's callbacks."""

    def __init__(self, rules: CapabilityRules | None = None) -> None:
        """`rules`: those of another VM; else CPython's, by what this one can do."""
        self.phase = Phase.PRIMORDIAL
        self.started_early = False
        self._ended = False
        self.lock = native.DeferringLock()
        self._stale = False  # something has changed that the mechanisms do not know
        self._updating = False  # the thread that has the lock is telling them
        self._dropped: list[object] = []
        self._probed = rules is None
        self.rules = rules or CapabilityRules(*(int(bits) for bits in available_capabilities.capability_sets()))
        self.environments: list[Environment] = []
        self.agents: list[Agent] = []  # those that are loaded, in the order of their loading
        self.extension_events: set[int] = set()  # those that a source makes, added by it
        self.points = Points()
        self.pops = Pops()
        self.watched_fields = WatchedFields()
        self.suspension = Suspension()
        self.locks = LockEvents()
        self.sampling_interval = SAMPLING_INTERVAL
        self._event_sources: list[EventSource] = []
        self.endings: list[Callable[[], object]] = []  # called last

    def get_env(self, version: int = Version.CURRENT, agent: str = "") -> Environment:
        """A new environment; `agent` is its name in messages. VersionNotOffered, IllegalArgument for a name that is not
        a str, NotAttached."""
        if not Version.offers(version):
            given: object = version
            name = f"{given:#x}" if isinstance(given, int) else shown(given)
            raise VersionNotOffered(f"the tool interface has no version {name}"[:LONGEST])
        entry_checks.text(agent)
        with self.lock:
            if self.phase not in (Phase.ONLOAD, Phase.LIVE):
                raise NotAttached(f"environments are made in the phases ONLOAD and LIVE, not in {self.phase.name}")
            environment = Environment(self, version, agent)
            self.environments.append(environment)
        self.changed()
        return environment

    # -- phases -----------------------------------------------------------------------------------

    def enter(self, phase: Phase) -> None:
        """The VM's next phase, with the event that belongs to the change. ValueError when it cannot be the next.

        VMStart and VMInit are sent in the new phase, VMDeath, where it was LIVE, in the old one, as its last event.
        The main thread's ThreadStart follows VMInit, as in a JVM.
        """
        if phase not in NEXT[self.phase]:
            raise ValueError(f"a VM does not go from {self.phase.name} to {phase.name}")
        if phase == Phase.DEAD and self.phase == Phase.LIVE:
            try:
                with own_threads.ProgramsCode():
                    self.post(Event.VM_DEATH)
            except KeyboardInterrupt:
                pass  # as in `end_of_main`
        late = self.phase == Phase.PRIMORDIAL and phase == Phase.LIVE
        with self.lock:
            self.phase = phase
            if phase == Phase.LIVE and self._probed:
                self.rules.recompute(int(available_capabilities.capability_sets().always), phase)
        self.changed()
        if phase == Phase.START:
            self.post(Event.VM_START, only=[each for each in self.environments if not each.saw_start])
        elif phase == Phase.LIVE and not late:
            self.post(Event.VM_INIT, threads.current())
            self.post(Event.THREAD_START, threads.current())

    def start_early(self) -> None:
        """START begins now for environments with early VMStart; for all others with `enter(Phase.START)`."""
        with self.lock:
            self.started_early = True
            early = [each for each in self.environments if each.phase() == Phase.START]
            for each in early:
                each.saw_start = True
        self.changed()
        self.post(Event.VM_START, only=early)

    def end_of_main(self) -> None:
        """The program has come to its end by itself, not by a signal: the main thread's ThreadEnd."""
        if self.phase == Phase.LIVE:
            try:
                self.post(Event.THREAD_END, threads.current())
            except KeyboardInterrupt:
                pass  # the program that it is meant for has ended

    def end(self) -> None:
        """The end of the VM: VMDeath, DEAD, then `agent_on_unload` of each agent in the list's order. Once only."""
        with self.lock:
            ended, self._ended = self._ended, True
        if not ended:
            self.enter(Phase.DEAD)
            for agent in self.agents:
                agent.unload()
            for environment in self.environments:
                environment.tags.clear()  # what dies from now on is reported to no agent
            for ending in self.endings:
                ending()

    def resource_holders(self) -> dict[int, str]:
        """What tools outside of the interface have taken: sets of capabilities that need it, and who has it."""
        return holders() if self._probed else {}

    def flags(self) -> dict[str, bool | int | str]:
        """The VM's flags by name: its options, and what has been made possible by the capabilities."""
        return {**flags.in_force.values(), **self.rules.flags()}

    # -- events -----------------------------------------------------------------------------------

    def add_event_source(self, source: EventSource) -> None:
        """Its `update` is called now, and after each change from now on."""
        self._event_sources.append(source)
        self.changed()

    def changed(self) -> None:
        """Tells what makes the events that an environment's callbacks, modes, phase or existence changed.

        A finalizer or a signal's handler may come in the middle of it, and change something too. That only notes it:
        the change takes effect before the one that it came into returns.
        """
        with self.lock:
            self._stale = True
            if not self._updating:
                try:
                    self._updating = True
                    while self._stale:
                        self._stale = False
                        for source in self._event_sources:
                            source.update(self)
                finally:
                    self._updating = False
        if not self.lock._is_owned():
            dropped, self._dropped = self._dropped, []
            del dropped  # what the program does as these go, it does without the lock

    def drop(self, replaced: object) -> None:
        """Keeps what a source has no use for any more, until the lock is let go of: it may be the program's last
        reference to something that runs code when it goes."""
        self._dropped.append(replaced)

    def renew(self) -> None:
        """In a forked child: another thread may have been in the middle of a change."""
        self.lock = native.DeferringLock()
        self._updating = False

    def wanted(self) -> int:
        """The set of events that at least one environment is sent on at least one thread."""
        wanted = 0
        for environment in self.environments:
            wanted |= environment.wanted()
        return wanted

    def post(
        self,
        event: Event | Extension,
        *arguments: object,
        thread: Thread | None = None,
        only: list[Environment] | None = None,
    ) -> None:
        """Sends an event to each environment that it is enabled for, in the order of their creation.

        `arguments` are those of the event's row; `thread` is where it happens: None for the current one.
        """
        place = bit(event)
        listeners = [each for each in (self.environments if only is None else only) if each.wanted() & place]
        if listeners:
            thread = thread or threads.current()
            for environment in listeners:  # one may be disposed of, or changed, by the callback before it
                if environment.wants(event, thread):
                    environment.deliver(event, arguments)


_vm: Host | None = None
_making = _thread.allocate_lock()


def vm() -> Host:
    """This process's: LIVE, unless agents are being loaded before the program begins, or the program has ended."""
    return _vm or begin(late=True)


def begin(*, late: bool = False) -> Host:
    """Makes it, where there is none yet, in PRIMORDIAL; or LIVE, where the program has begun already."""
    global _vm
    with _making:
        if _vm is None:
            host = Host()
            event_sources.install(host)
            if late:
                host.enter(Phase.LIVE)
            if native.in_main_interpreter():
                own_threads.at_exit(host.end_of_main, early=True)
                own_threads.at_exit(host.end)
            else:
                atexit.register(host.end)
            if sys.platform != "win32":
                native.forward_end_signals(termination.forwarding_signal())
            _vm = host
        return _vm


def exists() -> bool:
    """Whether it has been made."""
    return _vm is not None


def end() -> None:
    """The end of this process's VM, where it has one."""
    if _vm is not None:
        _vm.end()


def _after_fork() -> None:
    """In a child a lock that another thread held would never be released."""
    global _making
    _making = _thread.allocate_lock()
    if _vm is not None:
        _vm.renew()
        if _vm.environments:
            _vm.changed()  # threads that were suspended are not there any more


own_threads.in_child(_after_fork)
