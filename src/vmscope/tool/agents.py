"""Agents: how one is found by its name, loaded, listed and unloaded.

An agent is a Python module with `agent_on_load(vm, options)`, called before the program begins, and/or
`agent_on_attach(vm, options)`, called while it runs, and, where it wants to, `agent_on_unload(vm)`. An agent L that is
linked into the executable has functions of the same names with `_L` behind them, and these only. Or it is a shared
library, with Agent_OnLoad and so on (`jni/library.py`).
"""

from __future__ import annotations

import os
import sys

from vmscope import log, native, own_threads
from vmscope.errors import AgentError, LibraryError
from vmscope.tool import agent_errors, host
from vmscope.tool.agent import PREFIX, SUFFIX, Agent, shown
from vmscope.tool.functions import entry_checks
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, WrongPhase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vmscope.tool.host import Host

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

    `name` is a module, an agent that is linked, or the path of a library; None stands for no options, which an agent in
    Python sees as "". AgentError, where the program goes on as before, without it; WrongPhase when the VM is not LIVE;
    IllegalArgument for what is not a text.
    """
    return attach_one(name, options, lambda: None)


def attach_one(name: str, options: str | None, found: Callable[[], None], kind: str = "") -> Agent:
    """As `load_agent`; `found` is called when there is such an agent, before it is called. `kind` says
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
            log.say("error", "%s", error, name=log.TOOL)
            failed.append(error)
    return failed


def _begin() -> Host:
    """The VM; its main thread is the one that `threading` takes for it."""
    __import__("threading")
    return host.begin()


def _begin_program(vm: Host) -> None:
    vm.enter(Phase.PRIMORDIAL)
    vm.start_early()
    vm.enter(Phase.START)
    vm.enter(Phase.LIVE)


def agent_of(vm: Host, option: str) -> Agent:
    """The agent that `-pyagent:NAME=OPTIONS` or similar names. AgentError."""
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
        with own_threads.ProgramsCode():
            __import__(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise AgentError(name, f"no module is called {error.name}") from error
        raise AgentError(name, f"its import raised {shown(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise AgentError(name, f"its import raised {shown(error)}") from error
    return sys.modules[name]
