"""Agents in C: a shared library, or a part of the executable, with Agent_OnLoad, Agent_OnAttach and Agent_OnUnload.

A library that is named by `-agentlib:L` is libL.so, in the folders of the property `java.library.path`, else where the
system's loader looks. The executable has an agent L linked into it when it exports Agent_OnLoad_L; then only its
functions with `_L` count, whatever libraries there are. What goes wrong is said as a JVM says it.
"""

from __future__ import annotations

import os

from vmscope.errors import LibraryError
from vmscope.tool.agent import PREFIX, SUFFIX, Agent
from vmscope.tool.jni.bridge import bridge
from vmscope.tool.properties import properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.native import Jni
    from vmscope.tool.host import Host

ENTRIES = {
    "agent_on_load": "Agent_OnLoad",
    "agent_on_attach": "Agent_OnAttach",
    "agent_on_unload": "Agent_OnUnload",
}
FOLDERS = "java.library.path"  # the property

# An ELF file's bridge: where it is written, and some names of those that others have
MACHINE = slice(18, 20)
MACHINES = {0x03: "x86", 0x28: "ARM", 0x3E: "x86-64", 0xB7: "AArch64", 0xF3: "RISC-V", 0x15: "PowerPC", 0x16: "S390"}


def find_native(vm: Host, is_path: bool, name: str, plain: str, options: str | None) -> NativeAgent:
    """The agent that is linked as `plain`, or that the library `name` holds, which is opened. LibraryError; AgentError
    where native agents cannot be."""
    jni = bridge(vm, name).jni
    if plain and "\0" not in plain:
        program = jni.open(None)
        if jni.symbol(program, f"{ENTRIES['agent_on_load']}_{plain}"):
            return NativeAgent(vm, name, options, program, plain)
    path = name if is_path else _find(f"{PREFIX}{name}{SUFFIX}")
    try:
        library = jni.open(path)
    except (OSError, ValueError) as error:  # ValueError: no path can have a NUL
        loader = str(error) + _other_machine(path)
        where = "in absolute path" if is_path else "on the library path"
        text = f"Could not find agent library {name} {where}, with error: {loader}"
        raise LibraryError(name, text, path=path, loader=loader) from error
    return NativeAgent(vm, name, options, library)


def _find(file: str) -> str:
    """Its path in the first folder that has it, else its name, for the loader."""
    for folder in properties()[FOLDERS].split(os.pathsep):
        path = os.path.join(folder, file)
        if folder and os.path.exists(path):
            return path
    return file


def _other_machine(path: str) -> str:
    """Of a library that exists, for which machine it is, where that is not this one; the loader does not say so."""
    try:
        with open(path, "rb") as file, open("/proc/self/exe", "rb") as own:
            wanted, found = own.read(MACHINE.stop), file.read(MACHINE.stop)
    except (OSError, ValueError):
        return ""
    if len(found) < MACHINE.stop or found[:4] != wanted[:4] or found[MACHINE] == wanted[MACHINE]:
        return ""
    number = int.from_bytes(found[MACHINE], "big" if found[5] == 2 else "little")
    return f" (it is for another bridge: {MACHINES.get(number, number)})"


class NativeAgent(Agent):
    """An agent whose functions are in a library. Its environments are those that it makes while it is loaded."""

    def __init__(self, vm: Host, name: str, options: str | None, library: int, plain: str | None = None) -> None:
        super().__init__(vm, name, options, None, plain)
        self._bridge = bridge(vm, name)
        self._jni: Jni = self._bridge.jni
        self._library = library
        self._text = None if options is None else _encode(options)

    def call(self, entry: str) -> None:
        """Calls Agent_OnLoad or Agent_OnAttach. LibraryError; a library that was to attach is closed again then, and
        one that was to be loaded stays, as the process ends."""
        symbol = ENTRIES[entry] + self._suffix
        address = self._jni.symbol(self._library, symbol)
        attaching = entry == "agent_on_attach"
        if not address:
            if not attaching:
                raise LibraryError(self.name, f"Could not find {symbol} function in the agent library: {self.name}")
            self._close()
            raise LibraryError(self.name, f"{symbol} is not available in {self.name}")
        with self._bridge.loading(self.vm, address):
            status = self._jni.call_start(address, self._text)
        if status:
            self.vm.dispose()
            if attaching:
                self._close()
            raise LibraryError(self.name, f"agent library failed to init: {self.name}", status=status)
        self._listed()

    @property
    def code(self) -> object:
        return self._library

    def _has_unload(self) -> bool:
        return bool(self._unload())

    def _unload(self) -> int:
        return self._jni.symbol(self._library, ENTRIES["agent_on_unload"] + self._suffix)

    def unload(self) -> None:
        """Calls Agent_OnUnload, if it has one. The library stays: a thread may be in it."""
        address = self._unload()
        if address:
            with self._bridge.loading(self.vm, address):
                self._jni.call_unload(address)

    def _close(self) -> None:
        if not self.linked:
            self._jni.close(self._library)


def _encode(options: str) -> bytes:
    """As they were given on a command line; what no command line can hold, in UTF-8."""
    try:
        return os.fsencode(options)
    except UnicodeEncodeError:
        return options.encode("utf-8", "surrogatepass")
