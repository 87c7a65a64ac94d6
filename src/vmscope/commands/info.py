"""VM.info: what a bug report needs. Of the environment only what changes how Python works is shown."""

from __future__ import annotations

import _thread
import gc
import os
import sys
import time

from vmscope import flags, native, own_threads
from vmscope.commands import command_line, uptime, version
from vmscope.commands.flags import derived_flags, written
from vmscope.commands.modules import modules
from vmscope.commands.registry import Command
from vmscope.tool import processors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vmscope.commands.registry import Output

_VARIABLES = ("PYTHON", "VMSCOPE_", "LC_", "LD_", "MALLOC_")
_VARIABLE_NAMES = frozenset(("LANG", "LANGUAGE", "TZ", "PATH", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX"))
_LIMITS = {
    "AS": "address space",
    "CORE": "core file",
    "DATA": "data",
    "NOFILE": "open files",
    "NPROC": "processes",
    "STACK": "stack",
}


def run(out: Output) -> None:
    for title, section in _SECTIONS.items():
        out.write(f"{title}:\n")
        try:
            section(out)
        except Exception as error:  # the rest is still worth having
            out.write(f"  {type(error).__name__}: {error}\n")
        out.write("\n")


def _lines(out: Output, rows: Iterable[tuple[str, object]]) -> None:
    for name, value in rows:
        out.write(f"  {name}: {value}\n")


def _vm(out: Output) -> None:
    version.run(out)
    now = time.time()
    seconds = uptime.seconds_up()
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now - seconds))
    _lines(
        out,
        (
            ("Time", time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now))),
            ("Started", f"{started}, {seconds:.1f} s ago"),
            ("Process", f"pid {os.getpid()}, parent {os.getppid()}, uid {os.getuid()}, euid {os.geteuid()}"),
            ("Program", command_line.program()),
            ("Command line", " ".join(sys.orig_argv)),
            ("Executable", sys.executable),
            ("Prefix", sys.prefix if sys.prefix == sys.base_prefix else f"{sys.prefix}, of {sys.base_prefix}"),
            ("Working directory", _folder()),
        ),
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        return f"({error.strerror})"


def _region(out: Output) -> None:
    runtime = sys.modules.get("vmscope.runtime")
    if runtime is None:
        out.write("  vmscope.start() was not called\n")
        return
    status = runtime.VM.status()
    _lines(
        out,
        (
            ("File", status.path or f"none: {status.reason}"),
            ("Socket", status.attach_path or f"none: {status.attach_reason}"),
            ("Errors of agents", status.agent_errors),
            ("Size", f"{status.used} of {status.capacity} bytes used, {status.overflow} did not fit"),
            ("Saved by a crash", "yes" if status.fatal_path else "no"),
        ),
    )


def _flags(out: Output) -> None:
    values, origins = flags.in_force.values(), flags.in_force.origins
    _lines(out, ((written(name, values[name]), origins[name]) for name in values if name in origins))
    made = [name for name, value in derived_flags(always=False).items() if value]
    _lines(out, [("Made possible by capabilities", ", ".join(made))] if made else ())
    _lines(
        out,
        (
            ("Interpreter", str(sys.flags)),
            ("-X", " ".join(f"{name}={value}" for name, value in sys._xoptions.items())),
            ("-W", " ".join(sys.warnoptions)),
            ("GIL", "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"),
            ("Switch interval", f"{sys.getswitchinterval()} s"),
            ("Recursion limit", sys.getrecursionlimit()),
            ("sys.monitoring tools", ", ".join(_tools()) or "none"),
        ),
    )


def _tools() -> list[str]:
    monitoring = getattr(sys, "monitoring", None)
    tools = ((number, monitoring.get_tool(number)) for number in range(6)) if monitoring is not None else ()
    return [f"{number} {name}" for number, name in tools if name is not None]


def _environment(out: Output) -> None:
    for name, value in sorted(os.environ.items()):
        if name.startswith(_VARIABLES) or name in _VARIABLE_NAMES:
            out.write(f"  {name}={value}\n")


def _platform(out: Output) -> None:
    import resource

    system = os.uname()
    _lines(
        out,
        (
            ("System", f"{system.sysname} {system.release} {system.version} {system.machine}"),
            ("C library", _library()),
            ("Processors", f"{processors.available()} of {os.cpu_count()}"),
            ("Load", " ".join(f"{load:.2f}" for load in os.getloadavg())),
        ),
    )
    for name, meaning in _LIMITS.items():
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        out.write(f"  Limit of {meaning}: {_limit(soft)}, {_limit(hard)} at most\n")


def _library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (OSError, ValueError):  # it is not GNU's
        return "unknown"


def _limit(value: int) -> str:
    return "unlimited" if value < 0 else str(value)


def _memory(out: Output) -> None:
    for path, names in (
        ("/proc/meminfo", ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")),
        ("/proc/self/status", ("VmPeak", "VmSize", "VmHWM", "VmRSS", "VmSwap", "VmData", "VmStk")),
    ):
        with open(path, encoding="ascii", errors="replace") as file:
            found = dict(line.split(":", 1) for line in file if ":" in line)
        _lines(out, ((name, " ".join(found[name].split())) for name in names if name in found))
    _lines(
        out,
        (
            ("Blocks in Python's allocator", sys.getallocatedblocks()),
            ("Garbage collector", f"{'on' if gc.isenabled() else 'off'}, thresholds {own_threads.thresholds()}"),
            ("Counts now", gc.get_count()),
            ("Collections", ", ".join(str(row["collections"]) for row in gc.get_stats())),
        ),
    )


def _threads(out: Output) -> None:
    names = {each.ident: each.name for each in [*sys.modules["threading"]._active.values()]} if _threading() else {}
    own = _thread.get_ident()
    out.write(f"  {'Ident':>18} {'Native id':>10}  Name\n")
    for _, ident, native_id, _ in native.thread_states():
        name = "(this command)" if ident == own and ident not in names else names.get(ident, "(not threading's)")
        out.write(f"  {ident:>18} {native_id:>10}  {name}\n")
    out.write(f"  Of the system's: {len(os.listdir('/proc/self/task'))}\n")


def _threading() -> bool:
    return "threading" in sys.modules


def _agents(out: Output) -> None:
    host = sys.modules.get("vmscope.tool.host")
    if host is None or not host.exists():
        out.write("  none\n")
        return
    vm = host.vm()
    out.write(f"  Phase: {vm.phase.name}\n")
    for agent in vm.agents:
        out.write(f"  {agent.name}={agent.options}{' (linked)' if agent.linked else ''}\n")
    for number, environment in enumerate(vm.environments):
        held = environment.get_capabilities()
        out.write(f"  Environment {number}, of {environment.agent or 'no agent'}: ")
        out.write(f"{', '.join(each.name.lower() for each in held) or 'no capabilities'}\n")


def _modules(out: Output) -> None:
    found = modules()
    out.write(f"  {len(found)} are imported; those with a version, and those in C that are not CPython's:\n")
    for each in found:
        foreign = each.kind == "extension" and "lib-dynload" not in each.file
        if (each.version and "." not in each.name) or foreign:
            out.write(f"  {each.name} {each.version} ({each.kind}) {each.file}\n")


def _libraries(out: Output) -> None:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {
            line.split(None, 5)[5].rstrip("\n") for line in file if line.count("/") and len(line.split(None, 5)) > 5
        }
    for path in sorted(path for path in paths if ".so" in path):
        out.write(f"  {path}\n")


_SECTIONS: dict[str, Callable[[Output], None]] = {
    "VM": _vm,
    "Region": _region,
    "Flags": _flags,
    "Environment": _environment,
    "Platform": _platform,
    "Memory": _memory,
    "Threads": _threads,
    "Agents": _agents,
    "Modules": _modules,
    "Libraries": _libraries,
}

COMMANDS = (
    Command("VM.info", "What a bug report needs: versions, flags, platform, memory, threads, agents, modules.", run),
)
