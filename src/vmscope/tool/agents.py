"""Agents: how one is found by its name, loaded, listed and unloaded.

An agent is a Python module with `agent_on_load(vm, options)`, called before the program begins, and/or
`agent_on_attach(vm, options)`, called while it runs, and, where it wants to, `agent_on_unload(vm)`. An agent L that is
linked into the executable has functions of the same names with `_L` behind them, and these only. Or it is a shared
library, with Agent_OnLoad and so on (`jni/library.py`).
"""

from __future__ import annotations

import os
import sys

from vmscope import later, log, native
from vmscope.errors import AgentError, LibraryError
from vmscope.tool import agent_errors, host
from vmscope.tool.functions import entry_checks
from vmscope.tool.spec.codes import Phase, Version
from vmscope.tool.spec.errors import IllegalArgument, WrongPhase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vmscope.tool.environment import Environment
    from vmscope.tool.host import Host

PREFIX, SUFFIX = "lib", ".so"  # of a native library's file

_linked: dict[str, object] = {}


def link_agent(name: str, module: object) -> None:
    """`module` is the agent `name` from now on, as if it were part of the executable.

    For programs that embed Python, before the VM starts: WrongPhase after that. AgentError without
    `agent_on_load_NAME`, by which an agent is known to be linked.
    """
    if host.exists():
        raise WrongPhase("agents are linked before the VM starts")
    if not hasattr(module, f"agent_on_load_{name}"):
        raise AgentError(name, f"{module!r} has no agent_on_load_{name}")
    _linked[name] = module


def load_agent(name: str, options: str | None = None) -> Agent:
    """Loads an agent into this process while it runs, by `agent_on_attach`, or Agent_OnAttach.

    `name` is a module, an agent that is linked, or the path of a library; None are no options, which an agent in
    Python sees as "". AgentError, where the program goes on as before, without it; WrongPhase when the VM is not LIVE;
    IllegalArgument for what is no text.
    """
    return attach_one(name, options, lambda: None)


def attach_one(name: str, options: str | None, found: Callable[[], None], kind: str = "") -> Agent:
    """As `load_agent`; `found` is called when there is such an agent, before it is told to do anything. `kind` says
    what a name is that would not show it."""
    vm = host.vm()
    if vm.phase != Phase.LIVE:
        raise WrongPhase(f"agents attach in the phase LIVE, not in {Phase(vm.phase).name}")
    entry_checks.text(name)
    if options is not None:
        entry_checks.text(options)
    if not kind and (os.sep in name or name.endswith(SUFFIX)):
        kind = "-agentpath"
    agent = find(vm, kind, name, options) if kind else _find_by_name(vm, name, options)
    found()
    agent.call("agent_on_attach")
    return agent


def unload_agent(agent: Agent) -> None:
    """Calls `agent_on_unload` of an agent while the program goes on, and disposes of its environments.

    AgentError for one that is linked, which stays to the end, or is no longer loaded; IllegalArgument for no Agent.
    """
    vm = host.vm()
    entry_checks.instance_of(Agent, IllegalArgument)(agent)
    if agent.linked:
        raise AgentError(agent.name, "it is linked into the program, and never unloaded")
    with vm.lock:
        if agent not in vm.agents:
            raise AgentError(agent.name, "it is not loaded")
        vm.agents = [each for each in vm.agents if each is not agent]
    agent.unload()
    agent.vm.dispose()


def keep_latest(agent: Agent) -> None:
    """Takes earlier loads of the same agent out of the list where nothing is left of them, and nothing is to be called
    at their end: what a client loads for each of its commands, as profilers are, would fill it."""
    vm = host.vm()
    with vm.lock:
        vm.agents = [each for each in vm.agents if each is agent or each.code != agent.code or not each.is_over()]


def start(named: Iterable[str], *, shown: bool = False) -> None:
    """Loads agents, by their VM options, before the program begins, and brings the VM to life. AgentError.

    `shown`: what goes wrong in an agent later is shown on standard error, where logging has not been configured.

    Those that were loaded before one that fails are unloaded. Where the tool interface is in use already, by what ran
    before, the VM is LIVE, and they attach.
    """
    vm = _begin()
    log.shown = shown
    if vm.phase == Phase.LIVE:
        for option in named:
            agent_of(vm, option).call("agent_on_attach")
        return
    vm.enter(Phase.ONLOAD)
    try:
        for option in named:
            agent_of(vm, option).call("agent_on_load")
    except BaseException:
        vm.end()
        raise
    _begin_program(vm)


def start_inherited(named: Iterable[str]) -> list[AgentError]:
    """The same for agents that the environment names: those that fail are reported and left out, and returned."""
    vm = _begin()
    if vm.phase == Phase.LIVE:
        return _load_each(vm, named, "agent_on_attach")
    vm.enter(Phase.ONLOAD)
    failed = _load_each(vm, named, "agent_on_load")
    _begin_program(vm)
    return failed


def attach(named: Iterable[str]) -> list[AgentError]:
    """Loads agents, by their VM options, into a program that runs. Those that fail are reported, and returned."""
    return _load_each(host.vm(), named, "agent_on_attach")


def _load_each(vm: Host, named: Iterable[str], function: str) -> list[AgentError]:
    failed = []
    for option in named:
        try:
            agent_of(vm, option).call(function)
        except AgentError as error:
            agent_errors.count(error.agent, function)
            agent_errors.error("%s", error)
            failed.append(error)
    return failed


def _begin() -> Host:
    """The VM, of whose main thread agents are told as `threading` knows it."""
    __import__("threading")
    return host.begin()


def _begin_program(vm: Host) -> None:
    vm.enter(Phase.PRIMORDIAL)
    vm.start_early()
    vm.enter(Phase.START)
    vm.enter(Phase.LIVE)


def agent_of(vm: Host, option: str) -> Agent:
    """The agent that `-pyagent:NAME=OPTIONS` or its like names. AgentError."""
    kind, _, text = option.partition(":")
    name, equals, options = text.partition("=")
    return find(vm, kind, name, options if equals else None)


def find(vm: Host, kind: str, name: str, options: str | None) -> Agent:
    """The agent of this name: linked, or loaded as the option `kind` says. AgentError when there is none."""
    plain = name
    if kind == "-agentpath":  # of libL.so it is L; a file that is called otherwise is never linked
        file = os.path.basename(name)
        plain = file[len(PREFIX) : -len(SUFFIX)] if file.startswith(PREFIX) and file.endswith(SUFFIX) else ""
    module = _find_linked(plain)
    if module is not None:
        return Agent(vm, name, options, module, plain)
    if kind == "-pyagent" and not _is_linked_natively(name):
        return Agent(vm, name, options, _import(name))
    from vmscope.tool.jni.library import find_native

    return find_native(vm, kind == "-agentpath", name, plain, options)


def _find_by_name(vm: Host, name: str, options: str | None) -> Agent:
    """A module; where there is none of this name, a library. AgentError."""
    if not name:
        return find(vm, "-agentlib", name, options)  # no module is called so
    try:
        return find(vm, "-pyagent", name, options)
    except AgentError as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        missing = error
    try:
        return find(vm, "-agentlib", name, options)
    except AgentError as error:
        why = error.loader if isinstance(error, LibraryError) else error.reason
        raise AgentError(name, f"{missing.reason}; {why}") from missing


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
                agent_errors.count(self.agent, "at_unload")
                agent_errors.error("agent %s: what it wanted called at its end raised", self.agent, error=error)
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
            with later.ProgramsCode():
                status = function(self.vm, self.options)
        except BaseException as error:
            self.vm.dispose()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise AgentError(self.name, f"{entry} raised {_show(error)}") from error
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
                agent_errors.count(self.name, "agent_on_unload")
                agent_errors.error("agent %s: agent_on_unload%s raised", self.name, self._suffix, error=error)

    def __repr__(self) -> str:
        return f"<Agent {self.name}{'=' if self.options else ''}{self.options}{', linked' if self.linked else ''}>"


def _find_linked(name: str) -> object | None:
    """What embedding code has linked by this name, or a built-in or frozen module that says it is an agent."""
    if name in _linked:
        return _linked[name]
    if name in sys.builtin_module_names or sys.modules["_imp"].is_frozen(name):
        module = __import__(name)
        if hasattr(module, f"agent_on_load_{name}"):
            return module
    return None


def _is_linked_natively(name: str) -> bool:
    """Whether the executable has a native agent of this name: no module takes it away, as no library does."""
    exports = getattr(native, "program_exports", None)  # the twin knows no native agents
    return exports is not None and "\0" not in name and exports(f"Agent_OnLoad_{name}")


def _import(name: str) -> object:
    try:
        with later.ProgramsCode():
            __import__(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise AgentError(name, f"no module is called {error.name}") from error
        raise AgentError(name, f"its import raised {_show(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise AgentError(name, f"its import raised {_show(error)}") from error
    return sys.modules[name]


def _show(error: BaseException) -> str:
    """In one line, with the place that raised it."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"
