"""What java.lang.System and Runtime tell and do, here."""

from __future__ import annotations

import os
import sys
import time

from vmscope import flags
from vmscope.tool import properties
from vmscope.tool.functions.classes import hash_of
from vmscope.tool.jni.java_classes import Runtime, System, VMSupport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RUNTIME = Runtime()
AGENT_PROPERTIES: dict[str, str] = {}


def system_get_property(name: str, default: str | None = None) -> str | None:
    return properties.properties().get(name, default)


def system_set_property(name: str, to: str) -> str | None:
    before = system_get_property(name)
    if not properties.set_property(name, to):
        raise PermissionError(f"{name} says what this VM is, and cannot be changed")
    return before


def system_get_properties() -> dict[str, str]:
    return properties.properties()


def system_getenv(name: str) -> str | None:
    return os.environ.get(name)


def system_identity_hash_code(thing: object) -> int:
    return 0 if thing is None else hash_of(thing) & 0x7FFF_FFFF


def system_current_time_millis() -> int:
    return time.time_ns() // 1_000_000


def system_nano_time() -> int:
    return time.monotonic_ns()


def system_gc() -> None:
    import gc

    gc.collect()


def system_line_separator() -> str:
    return os.linesep


def runtime_get() -> Runtime:
    return RUNTIME


def runtime_available_processors(runtime: Runtime) -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def runtime_memory(runtime: Runtime) -> int:
    """Of the process, in bytes: what is resident."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def runtime_gc(runtime: Runtime) -> None:
    system_gc()


def agent_properties() -> dict[str, str]:
    """What the agents of this VM have put there for others, and how it was started."""
    AGENT_PROPERTIES.setdefault("sun.java.command", " ".join(sys.argv))
    AGENT_PROPERTIES.setdefault("sun.jvm.args", " ".join(flags.in_force.arguments))
    return AGENT_PROPERTIES


METHODS: dict[type, dict[str, Callable[..., object]]] = {
    Runtime: {
        "availableProcessors": runtime_available_processors,
        "totalMemory": runtime_memory,
        "gc": runtime_gc,
    },
}

STATIC: dict[type, dict[str, Callable[..., object]]] = {
    System: {
        "getProperty": system_get_property,
        "setProperty": system_set_property,
        "getProperties": system_get_properties,
        "getenv": system_getenv,
        "identityHashCode": system_identity_hash_code,
        "currentTimeMillis": system_current_time_millis,
        "nanoTime": system_nano_time,
        "gc": system_gc,
        "lineSeparator": system_line_separator,
    },
    Runtime: {"getRuntime": runtime_get},
    VMSupport: {"getAgentProperties": agent_properties},
}
