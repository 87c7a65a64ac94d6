"""What `vmscope.status()` tells."""

from __future__ import annotations

from errno import EADDRINUSE, EINPROGRESS, ENOENT, EXDEV
from os import strerror

from vmscope import native
from vmscope.counters.kinds import Counter
from vmscope.counters.registry import REGISTRY
from vmscope.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from vmscope.flags import Flags
    from vmscope.memory.region import Region

    class VirtualMachine(Protocol):
        running: bool
        region: Region | None
        reason: str
        problems: list[str]
        listener: native.Listener | None
        socket_path: str
        attach_reason: str
        flags: Flags

        def survived(self) -> bool: ...


class Status:
    """What `vmscope.status()` returns: this process at that moment. `print` shows it, a line for each attribute.

    * `running`: True between `start()` and `stop()`.
    * `path`: of the region's file, or None; `reason`: why there is none, or "".
    * `attach_path`: of the socket that clients attach to, or None; `attach_reason`: why there is none, or "".
    * `capacity`, `used`, `overflow`: of the region, in bytes. `overflow` is what counters need that found no room.
    * `flags`: the VM options in force, as attributes.
    * `implementation`: "c" or "python"; `implementation_reason`: why it is "python" where "c" could be in use, or "".
    * `fatal_path`: whether a crash saves the region where asked and unlinks its file. The Python twin cannot.
    * `agent_errors`: how often code of an agent has raised. The counters `vmscope.agents.errors` say which agent's.
    * `problems`: a list of lines: what does not work and ended nothing, as an agent that cannot be loaded.
    """

    __slots__ = (
        "agent_errors", "attach_path", "attach_reason", "capacity", "fatal_path", "flags", "implementation",
        "implementation_reason", "overflow", "path", "problems", "reason", "running", "used",
    )  # fmt: skip

    def __init__(self, vm: VirtualMachine) -> None:
        region = vm.region
        self.running = vm.running
        self.path = None if region is None or region.file is None else region.file.path
        self.reason = printable(vm.reason)
        self.attach_path, self.attach_reason = _attachable(vm)
        self.capacity = 0 if region is None else region.capacity
        self.used = 0 if region is None else region.mirror.used
        self.overflow = 0 if region is None else region.mirror.overflow
        self.flags = vm.flags
        self.implementation = native.IMPLEMENTATION
        self.implementation_reason = native.TWIN_REASON
        self.fatal_path = native.IMPLEMENTATION == "c" and native.is_armed()
        errors = REGISTRY.get("vmscope.agents.errors")
        self.problems = _problems(vm)
        self.agent_errors = errors.value if type(errors) is Counter else 0
        if vm.survived():
            self.path = None
            self.reason = "a fatal signal took the file away, and the program went on: stop() and start() again"

    def __repr__(self) -> str:
        """As a prompt shows it, a line for each thing."""
        lines = [f"  {name:<16}{printable(text)}" for name, text in self._lines()]
        return "\n".join([f"<vmscope.Status: {'running' if self.running else 'not running'}", *lines]) + ">"

    def _lines(self) -> Iterator[tuple[str, str]]:
        used = f"{self.used:,} of {self.capacity:,} bytes used"
        lost = f", {self.overflow:,} bytes did not fit" if self.overflow else ""
        yield "region", f"{self.path or f'no file: {self.reason}'}" + (f" ({used}{lost})" if self.capacity else "")
        yield "socket", self.attach_path or f"none: {self.attach_reason}"
        yield "options", " ".join(self.flags.arguments) or "none"
        yield "implementation", ": ".join(filter(None, (self.implementation, self.implementation_reason)))
        if self.path:
            yield "after a crash", "the file goes" if self.fatal_path else "the file stays"
        if self.agent_errors:
            yield "agents", f"their code has raised {self.agent_errors:,} times"
        for problem in self.problems:
            yield "problem", problem


def _problems(vm: VirtualMachine) -> tuple[str, ...]:
    found = [printable(text) for text in vm.problems]
    region = vm.region
    if region is not None and region.file is not None and region.mirror.error:
        found.append(f"{region.file.path} is not kept current: {strerror(region.mirror.error)}")
    if vm.listener is not None and (limit := vm.listener.limit()) and limit not in found:
        found.append(limit)
    return tuple(found)


def _attachable(vm: VirtualMachine) -> tuple[str | None, str]:
    """The socket's path, or None and why no client can connect to it now."""
    error = 0 if vm.listener is None else vm.listener.check()
    if error:
        return None, why_no_socket(OSError(error, strerror(error)), vm.socket_path)
    return (None, printable(vm.attach_reason)) if vm.listener is None else (vm.socket_path, "")


def why_no_socket(error: Exception, path: str) -> str:
    """What `attach_reason` says where the listener is not open because of this error."""
    if not isinstance(error, OSError):
        return str(error) or "no memory for the listener"
    if error.errno == EADDRINUSE:
        return f"{path} is in use by another VM of the same pid, as in a container that shares the folder"
    if error.errno == EXDEV:
        return f"{path} is taken: a file system is mounted there"
    if error.errno == ENOENT:
        return f"{path} was closed, removed or replaced: it is being made anew"
    if error.errno == EINPROGRESS:
        return f"{path} is being made"
    return f"cannot make {path}: {error.strerror}"
