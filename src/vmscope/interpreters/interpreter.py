"""Which CPython a process runs, and where that has what a reader of stacks needs."""

from __future__ import annotations

import os
import platform
import sys

from vmscope.errors import NotReadable, VMScopeError
from vmscope.interpreters._layouts import FIELDS, TOLD
from vmscope.interpreters.elf import Image
from vmscope.interpreters.memory import WORD, Memory, Unreadable, denied, gone
from vmscope.reader.process import namespace_pids, read_file

OLDEST, NEWEST = min(FIELDS), max(FIELDS)
_COOKIE = b"xdebugpy"
_LIMIT = 16 << 20  # bytes of a process's maps
_MOST_IMAGES = 8
# Those that have their symbol's name of CPython's too, and are none.
_OTHERS = (("libjvm.so", "a JVM"), ("libpypy", "PyPy"), ("libnode", "Node.js"))


class Interpreter:
    """The CPython of a process. `version` is as sys.version_info begins; `fields` is what native.RemoteStacks takes."""

    __slots__ = ("fields", "memory", "version")

    def __init__(self, pid: int) -> None:
        """Raises NoSuchProcess, AccessDenied, and NotReadable with the reason."""
        check_system()
        self.memory = Memory(pid)
        try:
            runtime, code_type, version = _symbols(self.memory)
            self.version = (version >> 24, version >> 16 & 255, version >> 8 & 255)
            minor = self.version[:2]
            if minor not in FIELDS:
                raise NotReadable(
                    f"process {pid} is CPython {_text(minor)}, whose stacks cannot be read from outside",
                    pid=pid,
                    hint=f"those of {_text(OLDEST)} to {_text(NEWEST)} can",
                )
            self.fields = {**FIELDS[minor], "runtime": runtime, "code_type": code_type, "minor": minor[1]}
            self.fields["namespaced"] = len(namespace_pids(pid)) > 1
            if minor in TOLD:
                self._take_what_it_tells(TOLD[minor], runtime, version)
        except Unreadable:
            self.memory.close()
            raise NotReadable(
                f"process {pid} has changed or ended while it was read", pid=pid, hint="try it again"
            ) from None
        except BaseException:
            self.memory.close()
            raise

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))

    def _take_what_it_tells(self, told: dict[str, int], runtime: int, version: int) -> None:
        """From 3.13 on a process tells where it has most of it."""
        read = self.memory
        if read.read(runtime, WORD) != _COOKIE or read.word(runtime + WORD) >> 16 != version >> 16:
            raise _unknown(read.pid, self.text)
        if read.word(runtime + 2 * WORD):
            raise NotReadable(
                f"process {read.pid} is a CPython without a GIL, whose stacks cannot be read from outside",
                pid=read.pid,
                hint="start it with vmscope run, and ask it: vmscope cmd PID Thread.print",
            )
        own = {name: read.word(runtime + offset) for name, offset in told.items()}
        if own["code_size"] != self.fields["code_size"] or max(own.values()) >= 1 << 20:
            raise _unknown(read.pid, self.text)
        if own["state_datastack_chunk"] != self.fields["state_datastack_chunk"]:  # what it does not tell is elsewhere
            self.fields["state_datastack_top"] = own["state_datastack_chunk"] + WORD
            self.fields["state_id"] = own["state_thread_id"]
        self.fields.update(own)

    def close(self) -> None:
        self.memory.close()


def check_system() -> None:
    """Raises NotReadable where no other process can be read."""
    from vmscope import native

    hint = ""
    if sys.platform != "linux":
        reason = "only on Linux"
    elif sys.byteorder != "little" or sys.maxsize < 1 << 32 or platform.machine() not in ("x86_64", "aarch64"):
        reason = f"not on {platform.machine()}"
    elif not hasattr(native, "RemoteStacks"):
        reason = f"not without vmscope's C extension: {native.TWIN_REASON}"
        hint = "install a C compiler and Python's headers, then vmscope anew"
    else:
        return
    raise NotReadable(f"stacks of processes that were not prepared can be read {reason}", hint=hint)


def _symbols(memory: Memory) -> tuple[int, int, int]:
    """The addresses of _PyRuntime and PyCode_Type, and the version. Raises NotReadable, Unreadable."""
    pid = memory.pid
    images, others = _images(pid)
    old = ""
    for base, name in images:
        try:
            image = Image(memory, base)
            runtime = image.symbol("_PyRuntime")
            if not runtime:
                continue
            version, code_type = image.symbol("Py_Version"), image.symbol("PyCode_Type")
            if version and code_type:
                return runtime, code_type, memory.word(version) & 0xFFFFFFFF
            old = name
        except Unreadable:
            continue
    if old:
        raise NotReadable(
            f"process {pid} runs {os.path.basename(old)}, whose stacks cannot be read from outside",
            pid=pid,
            hint=f"those of CPython {_text(OLDEST)} to {_text(NEWEST)} can",
        )
    what = f"is {others[0]}" if others else "is not a CPython, or one without the names of its parts"
    hint = "vmscope cmd PID Thread.print shows a JVM's threads" if "a JVM" in others else ""
    raise NotReadable(f"process {pid} {what}: its stacks cannot be read from outside", pid=pid, hint=hint)


def _images(pid: int) -> tuple[list[tuple[int, str]], list[str]]:
    """Where files that may have an interpreter are mapped, the likeliest first; and what else the process is."""
    try:
        maps = read_file(f"/proc/{pid}/maps", _LIMIT)
        program = os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        raise denied(pid) from None
    except (FileNotFoundError, ProcessLookupError):
        raise gone(pid) from None
    found: dict[str, int] = {}
    for line in maps.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[2] == b"00000000" and fields[5].startswith(b"/"):
            found.setdefault(os.fsdecode(fields[5]), int(fields[0].partition(b"-")[0], 16))
    others = [what for word, what in _OTHERS if any(word in os.path.basename(path) for path in found)]
    libraries = [path for path in found if os.path.basename(path).startswith("libpython3")]
    wanted = [*libraries[:_MOST_IMAGES], *([program] if program in found else [])]
    return [(found[path], path) for path in wanted], others


def _unknown(pid: int, version: str) -> VMScopeError:
    return NotReadable(
        f"process {pid} is a CPython {version} that keeps its stacks in a way that is not known", pid=pid
    )


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
