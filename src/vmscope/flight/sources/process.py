"""What is read of the process and its system: a function for each event, which it may write several times."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic_ns

from vmscope import environ, flags, own_threads
from vmscope.counters import identity
from vmscope.tool import properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vmscope.native import EventType

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE = 1024  # /proc's memory figures are in kB
MASKED = "***"
# Parts of the names of variables, properties and options whose values no reader of a recording is to see.
SECRET = (
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "TOKEN",
    "KEY",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "SESSION",
    "DSN",
    "PRIVATE",
    "SIGNATURE",
)
LONGEST = 1024  # bytes of a command line
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_secret(name: str) -> bool:
    """Whether a value of this name is left out."""
    upper = name.upper()
    return any(word in upper for word in SECRET)


def _without_password(value: str) -> str:
    """A URL's password is masked: `scheme://user:***@host`."""
    scheme, found, rest = value.partition("://")
    user, at, host = rest.partition("@")
    if found and at and ":" in user and "/" not in user:
        return f"{scheme}://{user.partition(':')[0]}:{MASKED}@{host}"
    return value


def _shown(name: str, value: str) -> str:
    return MASKED if is_secret(name) else _without_password(value)


def python_threads() -> list[Any]:
    """Those that `threading` knows; none where the program has not imported it, or does so just now."""
    threading: Any = own_threads.threading_module()
    return [] if threading is None else [*threading._active.values()]


# -- what stays as it is


def vm_information(type_: EventType) -> None:
    name = f"{sys.implementation.name} {sys.version.split()[0]}"
    options = " ".join(map(_without_password, _masked(flags.in_force.arguments)))
    started = identity.start_time(identity.start_ticks())
    type_.commit(
        monotonic_ns(), None, name, sys.version.replace("\n", " "), options, None, identity.command_line(), started,
        os.getpid(),
    )  # fmt: skip


def os_information(type_: EventType) -> None:
    type_.commit(monotonic_ns(), None, " ".join(os.uname()[part] for part in (0, 2, 3, 4)))


def cpu_information(type_: EventType) -> None:
    model, packages, cores = "", set(), set()
    package = ""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "model name":
                model = value
            elif name == "physical id":
                package = value
                packages.add(value)
            elif name == "core id":
                cores.add((package, value))
    count = os.cpu_count() or 1
    type_.commit(
        monotonic_ns(), None, model or os.uname().machine, os.uname().machine, len(packages) or 1, len(cores) or count,
        count,
    )  # fmt: skip


def system_properties(type_: EventType) -> None:
    now = monotonic_ns()
    for name, value in properties.properties().items():
        type_.commit(now, None, name, _shown(name, value))


def environment_variables(type_: EventType) -> None:
    now = monotonic_ns()
    for name, value in environ.inherited().items():
        type_.commit(now, None, name, _shown(name, value))


def collector_configuration(type_: EventType) -> None:
    young = f"threshold {', '.join(map(str, gc.get_threshold()))}" if gc.isenabled() else "disabled"
    type_.commit(monotonic_ns(), None, young, "generations", 0, 0, False, False, False, 0, 0)


def system_processes(type_: EventType) -> None:
    """All of the system, as far as this user may read what they were called with."""
    now = monotonic_ns()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read(LONGEST).rstrip(b"\0").decode(errors="replace").split("\0")
            except OSError:  # it has ended
                continue
            type_.commit(now, None, name, " ".join(map(_without_password, _masked(words))))


def _masked(words: Iterable[str]) -> Iterator[str]:
    """An option's value behind `=` or as the next word, where its name is one of a secret's."""
    hide = False
    for word in words:
        name, is_option, _ = word.partition("=")
        if hide:
            yield MASKED
            hide = False
        elif word.startswith("-") and is_secret(name):
            yield f"{name}={MASKED}" if is_option else word
            hide = not is_option
        else:
            yield word


# -- what is read again and again


class Load:
    """Shares of CPU since the last time: of the process, of each thread, of the machine."""

    def __init__(self) -> None:
        self._process = (0, 0.0, 0.0)
        self._machine = (0, 0)
        self._threads: dict[int, tuple[int, int, int]] = {}

    def process(self, type_: EventType) -> None:
        usage, now = resource.getrusage(resource.RUSAGE_SELF), monotonic_ns()
        before, user, system = self._process
        self._process = (now, usage.ru_utime, usage.ru_stime)
        busy, total = self._machine
        self._machine = _machine_ticks()
        if before:
            capacity = (now - before) / 1e9 * CPUS
            elapsed = self._machine[1] - total
            machine = (self._machine[0] - busy) / elapsed if elapsed > 0 else 0.0
            type_.commit(
                now, None, min((usage.ru_utime - user) / capacity, 1.0), min((usage.ru_stime - system) / capacity, 1.0),
                machine,
            )  # fmt: skip

    def threads(self, type_: EventType) -> None:
        """Of those that Python knows, by the kernel's ticks."""
        now, found = monotonic_ns(), {}
        for thread in python_threads():
            ident, native_id = thread.ident, thread.native_id
            if ident is None or native_id is None:
                continue
            try:
                with open(f"/proc/self/task/{native_id}/stat", "rb") as file:
                    words = file.read().rpartition(b")")[2].split()
            except OSError:  # it has ended
                continue
            user, system = int(words[11]), int(words[12])
            found[native_id] = (now, user, system)
            before = self._threads.get(native_id)
            if before is not None:
                capacity = (now - before[0]) / 1e9 * TICKS * CPUS
                type_.commit(now, None, ident, (user - before[1]) / capacity, (system - before[2]) / capacity)
        self._threads = found


def _machine_ticks() -> tuple[int, int]:
    """Of all CPUs: busy, and all."""
    with open("/proc/stat", "rb") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def thread_statistics(type_: EventType) -> None:
    living = python_threads()
    daemons = sum(thread.daemon for thread in living)
    type_.commit(monotonic_ns(), None, len(living), daemons, len(living), len(living))


def module_statistics(type_: EventType) -> None:
    type_.commit(monotonic_ns(), None, len(sys.modules), 0)


def _kilobytes(path: str, *names: str) -> list[int]:
    """Figures of a file whose lines are `name: number kB`, in bytes."""
    with open(path, "rb") as file:
        rows = dict(line.split(b":", 1) for line in file if b":" in line)
    return [int(rows[name.encode()].split()[0]) * PAGE for name in names]


def resident_size(type_: EventType) -> None:
    type_.commit(monotonic_ns(), None, *_kilobytes("/proc/self/status", "VmRSS", "VmHWM"))


def physical_memory(type_: EventType) -> None:
    total, available = _kilobytes("/proc/meminfo", "MemTotal", "MemAvailable")
    type_.commit(monotonic_ns(), None, total, total - available)


_LOAD = Load()

READINGS: dict[str, Callable[[EventType], None]] = {
    "jdk.JVMInformation": vm_information,
    "jdk.OSInformation": os_information,
    "jdk.CPUInformation": cpu_information,
    "jdk.InitialSystemProperty": system_properties,
    "jdk.InitialEnvironmentVariable": environment_variables,
    "jdk.GCConfiguration": collector_configuration,
    "jdk.SystemProcess": system_processes,
    "jdk.CPULoad": _LOAD.process,
    "jdk.ThreadCPULoad": _LOAD.threads,
    "jdk.JavaThreadStatistics": thread_statistics,
    "jdk.ClassLoadingStatistics": module_statistics,
    "jdk.ResidentSetSize": resident_size,
    "jdk.PhysicalMemory": physical_memory,
}
