"""One agent: what it is given as its VM, and how it is called at its start and its end."""

from __future__ import annotations

from vmscope import own_threads
from vmscope.errors import AgentError
from vmscope.tool import agent_errors
from vmscope.tool.spec.codes import Phase, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.environment import Environment
    from vmscope.tool.host import Host

PREFIX, SUFFIX = "lib", ".so"  # of a native library's file


class AgentVM:
    """The VM as an agent is given it: its environments bear the agent's name."""

    def __init__(self, vm: Host, agent: str) -> None:
        self._host = vm
        self.agent = agent
        self._environments: list[Environment] = []
        self._endings: list[Callable[[], object]] = []

    @property
    def phase(self) -> Phase:
        """Of the VM's life."""
        return Phase(self._host.phase)

    def get_env(self, version: int = Version.CURRENT, agent: str = "") -> Environment:
        """A new environment. VersionNotOffered; NotAttached in a phase in which none are made."""
        environment = self._host.get_env(version, agent or self.agent)
        self._environments = [*(each for each in self._environments if not each.disposed), environment]
        return environment

    @property
    def holds(self) -> bool:
        """Whether there is anything left of what the agent has made."""
        return bool(self._endings) or not all(each.disposed for each in self._environments)

    def flags(self) -> dict[str, bool | int | str]:
        """The VM's flags by name: its options, and what has been made possible by the capabilities."""
        return self._host.flags()

    def at_unload(self, callback: Callable[[], object]) -> None:
        """Calls it when the agent is unloaded while the program goes on, or has failed to load."""
        self._endings.append(callback)

    def dispose(self) -> None:
        """Of all environments that were made here, after what was to be called then."""
        endings, self._endings = self._endings, []
        for callback in endings:
            try:
                callback()
            except BaseException as error:
                agent_errors.report(self.agent, "at_unload", "what it wanted called at its end raised", error=error)
        environments, self._environments = self._environments, []
        for environment in environments:
            if not environment.disposed:
                environment.dispose_environment()


class Agent:
    """An agent that was found: `name` and `options` as given, `module`, and whether it is `linked`.

    Loaded twice it is two of these.
    """

    def __init__(self, vm: Host, name: str, options: str | None, module: object, plain: str | None = None) -> None:
        """`plain`: what it is called in the names of its functions, where it is linked."""
        self.name = name
        self.options = options or ""
        self.vm = AgentVM(vm, name)
        self._host = vm
        self.linked = plain is not None
        self._suffix = "" if plain is None else f"_{plain}"
        self.module = module

    @property
    def code(self) -> object:
        """What has its functions: the same for each load of one agent."""
        return self.module

    def is_over(self) -> bool:
        """Whether nothing would be missing without it."""
        return not self.vm.holds and not self._has_unload()

    def _has_unload(self) -> bool:
        return hasattr(self.module, f"agent_on_unload{self._suffix}")

    def call(self, entry: str) -> None:
        """Calls `agent_on_load` or `agent_on_attach`; with its success the agent stands in the list. AgentError."""
        entry += self._suffix
        function = getattr(self.module, entry, None)
        if function is None:
            raise AgentError(self.name, f"it has no {entry}")
        try:
            with own_threads.ProgramsCode():
                status = function(self.vm, self.options)
        except BaseException as error:
            self.vm.dispose()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise AgentError(self.name, f"{entry} raised {shown(error)}") from error
        if status is not None and status != 0:
            self.vm.dispose()
            raise AgentError(self.name, f"{entry} returned {status!r}", status=status)
        self._listed()

    def _listed(self) -> None:
        with self._host.lock:
            self._host.agents = [*self._host.agents, self]

    def unload(self) -> None:
        """Calls `agent_on_unload`, if it has one. What that raises is logged."""
        function = getattr(self.module, f"agent_on_unload{self._suffix}", None)
        if function is not None:
            try:
                function(self.vm)
            except BaseException as error:
                function_name = f"agent_on_unload{self._suffix}"
                agent_errors.report(self.name, "agent_on_unload", "%s raised", function_name, error=error)

    def __repr__(self) -> str:
        return f"<Agent {self.name}{'=' if self.options else ''}{self.options}{', linked' if self.linked else ''}>"


def shown(error: BaseException) -> str:
    """In one line, with the place that raised it."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"
