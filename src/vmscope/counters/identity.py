"""What this process is, in the words that the JDK's tools look for."""

from __future__ import annotations

import os
import sys
import time

from vmscope import native

if sys.platform == "win32":
    from vmscope import win32

_LEVELS = {"alpha": "a", "beta": "b", "candidate": "rc", "final": ""}
_NAMES = {"cpython": "CPython", "pypy": "PyPy"}


def command_line() -> str:
    """The program and its arguments: `path/script`, `package.module` or `-c`, without the blanks of `sys.orig_argv`.

    jps shows what follows the last slash and then the last dot, so a script loses its `.py`.
    """
    first, *arguments = map(str, getattr(sys, "argv", None) or [""])  # an embedded interpreter may have none
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name != "__main__":  # which a directory's or a zip file's is called
        program = spec.name.removesuffix(".__main__")
        if program == "_pyrepl":  # which 3.13 runs as a module where nothing else is to be run
            program = "python"
    elif first == "-m":  # python -m, while the module is still being looked for
        position = sys.orig_argv.index("-m") + 1 if "-m" in sys.orig_argv else 0
        program = sys.orig_argv[position] if 0 < position < len(sys.orig_argv) else "-m"
        arguments = sys.orig_argv[position + 1 :] if position else arguments
    else:
        program = first.removesuffix(".py") or "python"
    return " ".join([program, *arguments])


def class_path() -> str:
    """Where modules are looked for."""
    return os.pathsep.join(map(str, sys.path))


def started() -> tuple[int, int]:
    """When this process started, in clock ticks since boot, and the address at which its stack began at the last exec.

    Fields 22 and 28 of /proc/self/stat; 0 where there is no /proc. On Windows the first is in units of 100 ns since
    1601, the second 0.
    """
    if sys.platform == "win32":
        return win32.own_started(), 0
    try:
        with native.Descriptor(os.open, "/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC) as fd:
            text = os.read(fd, 4096)
    except OSError:
        return 0, 0
    fields = text[text.rindex(b")") + 2 :].split()  # from the third on
    return int(fields[22 - 3]), int(fields[28 - 3])


def start_ticks() -> int:
    """The first of these."""
    return started()[0]


def start_time(ticks: int) -> int:
    """When this process started, ms since the epoch; now, where they are 0."""
    now = time.time_ns() // 1_000_000
    if not ticks:
        return now
    if sys.platform == "win32":
        return win32.milliseconds(ticks)
    age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 - ticks * 1000 // os.sysconf("SC_CLK_TCK")
    return now - max(0, age)


def constants(
    program: tuple[str, str], arguments: str, version: str, implementation: str, implementation_reason: str,
    service: str = "",
) -> dict[str, int | str]:  # fmt: skip
    """The values of the catalogue's constants, by name. `program`: its command line and its class path."""
    command, path = program
    info = sys.version_info
    python = f"{info.major}.{info.minor}.{info.micro}"
    full = f"{python}{_LEVELS[info.releaselevel]}{info.serial if info.releaselevel != 'final' else ''}"
    text = " ".join(sys.version.split())
    flags = str(sys.flags).partition("(")[2].rstrip(")").split(", ")
    seed = os.environ.get("PYTHONHASHSEED", "")
    given = not sys.flags.hash_randomization or (seed not in ("", "random") and not sys.flags.ignore_environment)
    jit = getattr(sys, "_jit", None)
    return {
        "sun.rt.javaCommand": command,
        "java.rt.vmArgs": arguments,
        "java.rt.vmFlags": "",
        "sun.rt.jvmVersion": sys.hexversion,
        "sun.rt.internalVersion": text,
        "java.property.java.version": python,
        "java.property.java.home": sys.prefix,
        "java.property.java.class.path": path,
        "java.property.java.vm.name": _NAMES.get(sys.implementation.name, sys.implementation.name),
        "java.property.java.vm.version": full,
        "java.property.java.vm.vendor": "Python Software Foundation",
        "java.property.java.vm.info": text.partition(" (")[2].partition(")")[0],
        "java.property.java.vm.specification.name": "Python Language Reference",
        "java.property.java.vm.specification.vendor": "Python Software Foundation",
        "java.property.java.vm.specification.version": f"{info.major}.{info.minor}",
        "python.abiFlags": getattr(sys, "abiflags", ""),  # Windows has none
        "python.debug": int(hasattr(sys, "gettotalrefcount")),
        "python.platform": sys.platform,
        "python.executable": sys.executable or "",
        "python.commandLine": " ".join(sys.orig_argv),
        "python.flags": " ".join(flag for flag in flags if not flag.endswith(("=0", "=False"))),
        "python.options": " ".join(
            name if value is True else f"{name}={value}" for name, value in sys._xoptions.items()
        ),
        "python.warnings": ",".join(sys.warnoptions),
        "python.virtualEnvironment": "" if sys.prefix == sys.base_prefix else sys.prefix,
        "python.hashSeedGiven": int(given),
        "python.jit": int(jit is not None and jit.is_enabled()),
        "sun.os.hrt.frequency": 1_000_000_000,
        "sun.gc.collector.0.name": "generation 0",
        "sun.gc.collector.1.name": "generation 2",
        "sun.gc.collector.2.name": "generation 1",
        "java.cls.sharedLoadedClasses": 0,
        "java.cls.sharedUnloadedClasses": 0,
        "vmscope.version": version,
        "vmscope.service": service,
        "vmscope.implementation": implementation,
        "vmscope.implementation.reason": implementation_reason,
    }
