"""The functions by which an agent's module is loaded and unloaded, where each load of it is an object of its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from vmscope.agents.options import VM

    class Loaded(Protocol):
        """What an agent's load has made."""

        def close(self) -> None: ...


def entries(load: Callable[[VM, str], Loaded]) -> tuple[Callable[[VM, str], int], Callable[[VM], None]]:
    """What a module calls `agent_on_load`, and `agent_on_attach`, and `agent_on_unload`.

    `load` is given the VM and the options: ValueError for bad ones, NotAvailable where something is missing.
    """
    loaded: dict[int, Loaded] = {}

    def on_load(vm: VM, text: str) -> int:
        loaded[id(vm)] = load(vm, text)
        return 0

    def on_unload(vm: VM) -> None:
        loaded.pop(id(vm)).close()

    return on_load, on_unload
