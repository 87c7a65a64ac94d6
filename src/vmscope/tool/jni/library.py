"""An agent's library as the tool interface has its agents: an object with agent_on_load, _attach and _unload."""

from __future__ import annotations

from vmscope.errors import AgentError
from vmscope.tool.jni.machine import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.agents import AgentVM
    from vmscope.tool.host import Host

ENTRIES = {
    "agent_on_load": "Agent_OnLoad",
    "agent_on_attach": "Agent_OnAttach",
    "agent_on_unload": "Agent_OnUnload",
}


class Library:
    """`path` is opened; its entry points are attributes, those that it has. AgentError with the loader's words."""

    def __init__(self, host: Host, name: str, path: str) -> None:
        self._jni = machine(host, name).jni
        try:
            self._library = self._jni.open(path)
        except OSError as error:
            raise AgentError(name, str(error), path=path) from error

    def __getattr__(self, name: str) -> Callable[..., int | None]:
        address = self._jni.symbol(self._library, ENTRIES[name]) if name in ENTRIES else 0
        if not address:
            raise AttributeError(name)

        def load(vm: AgentVM, options: str = "") -> int:
            return self._jni.call_start(address, options.encode() if options else None)

        def unload(vm: AgentVM) -> None:
            self._jni.call_unload(address)

        return unload if name == "agent_on_unload" else load

    def close(self) -> None:
        self._jni.close(self._library)
