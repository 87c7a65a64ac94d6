"""The functions about the environment itself: phase, version, capabilities, storage, error names, disposal."""

from __future__ import annotations

from collections.abc import Iterable

from vmscope import log
from vmscope.tool import agent_errors
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.spec.capabilities import Capability, CapabilitySet
from vmscope.tool.spec.codes import Error, Phase, Version
from vmscope.tool.spec.errors import NotAvailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    Capabilities = Iterable[Capability]


class General(Base):
    @function
    def get_phase(self) -> Phase:
        """The phase of the VM's life, as this environment sees it.

        CPython: what start and exit of vmscope have gone through; LIVE from the first moment where it starts late.
        """
        return Phase(self.phase())

    @function
    def get_version_number(self) -> int:
        """The newest version that is offered, whatever this environment asked for.

        CPython: 25's, 0x30190000.
        """
        return int(Version.CURRENT)

    @function
    def get_error_name(self, error: int) -> str:
        """`JVMTI_ERROR_WRONG_PHASE` for 112. IllegalArgument for a number that no error has.

        CPython: the table.
        """
        return f"JVMTI_ERROR_{Error(error).name}"

    @function
    def get_potential_capabilities(self) -> CapabilitySet:
        """What this environment holds, and what it could add now.

        CPython: HotSpot's rules on CPython's own sets, which follow from its mechanisms.
        Differs: nearly everything can be had in LIVE; what a JVM has in ONLOAD only, for its optimizer's sake, too.
        """
        with self.host.lock:
            taken = any_of(self.host.resource_holders())
            return CapabilitySet(bits=self.host.rules.potential(self.held, self.prohibited, self.phase(), taken))

    @function
    def add_capabilities(self, capabilities: Capabilities) -> None:
        """All of them or none: NotAvailable when one cannot be had, or another environment holds it alone.

        CPython: HotSpot's rules. Who holds it is said in the error and in the log.
        Differs: what one environment at a time can hold cannot be had either while tools outside of \
the interface have taken all ids of sys.monitoring, where it needs one.
        """
        desired = int(CapabilitySet(capabilities))
        with self.host.lock:
            taken = self.host.resource_holders() if desired & self.host.rules.solo else {}
            try:
                self.held = self.host.rules.add(self.held, self.prohibited, desired, self.phase(), any_of(taken))
            except NotAvailable as error:
                raise self._refused(str(error), desired & ~self.held, taken) from None
        self.host.changed()

    @function
    def relinquish_capabilities(self, capabilities: Capabilities) -> None:
        """Gives back those of them that it holds.

        CPython: HotSpot's rules. An event that is enabled stays enabled.
        """
        undesired = int(CapabilitySet(capabilities))
        with self.host.lock:
            self.held = self.host.rules.relinquish(self.held, undesired)
        self.host.changed()

    @function
    def get_capabilities(self) -> CapabilitySet:
        """What it holds.

        CPython: a set that iterates in bit order.
        """
        return CapabilitySet(bits=self.host.rules.copy(self.held))

    @function
    def get_environment_local_storage(self) -> object:
        """What was set last; None before.

        CPython: an attribute.
        """
        return self.storage

    @function
    def set_environment_local_storage(self, data: object) -> None:
        """Keeps one object of the agent's own.

        CPython: an attribute; the object lives until it is replaced or the environment disposed of.
        """
        self.storage = data

    @function
    def dispose_environment(self) -> None:
        """Ends it: no event comes any more, capabilities are free again, any later call is InvalidEnvironment.

        CPython: what it kept is released at once.
        """
        kept = self.callbacks, self.storage  # until the lock has been let go of
        with self.host.lock:
            self.disposed = True
            self.set_callbacks({})
            self.enabled = 0
            self.enabled_by_thread = {}
            self.held = self.host.rules.dispose(self.held)
            self.host.environments = [each for each in self.host.environments if each is not self]
            closers, self.closers = self.closers, []
            self.storage = None
        self.host.changed()
        for close in closers:
            close()
        del kept

    def _refused(self, message: str, desired: int, taken: dict[int, str]) -> NotAvailable:
        """The error, with the names of those who hold alone what is desired; that is logged too."""
        solo = desired & self.host.rules.solo
        agents = [each for each in self.host.environments if each is not self and each.held & solo]
        names = [each.agent or "an agent without a name" for each in agents]
        names += [holder for bits, holder in taken.items() if bits & solo]
        if not names:
            return NotAvailable(message)
        message = f"{message}; held by {', '.join(names)}"
        log.say("warning", "agent %s: %s", self.agent or agent_errors.UNNAMED, message, name=log.TOOL)
        hint = "the holder has to relinquish it, or to dispose of its environment" if agents else "stop that tool first"
        return NotAvailable(message, hint=hint)


def any_of(sets: Iterable[int]) -> int:
    """What is in at least one of them."""
    found = 0
    for bits in sets:
        found |= bits
    return found
