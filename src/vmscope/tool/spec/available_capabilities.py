"""CPython's capability sets: which mechanism serves each capability, and what of it this interpreter has.

The rules by which sets change stand in `CapabilityRules` and are HotSpot's; the sets follow from mechanisms alone.
"""

from __future__ import annotations

import sys
import time

from vmscope import native
from vmscope.tool.spec.capabilities import Capability, CapabilitySet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MONITORING = "sys.monitoring"
OWN_CPU = "time.thread_time"
OTHERS_CPU = "time.pthread_getcpuclockid"
TRACER = "PyRefTracer"

WHY_NOT = {
    MONITORING: "sys.monitoring came with 3.12",
    OWN_CPU: "this system has no CPU clock of a thread",
    OTHERS_CPU: "this system has no CPU clock of another thread",
    TRACER: "PyRefTracer came with 3.13; without a GIL an object may be gone before its event can be sent",
}

NO_VIRTUAL_THREADS = (
    "CPython has no virtual threads: each is the system's own, made by `pthread_create` (Python/thread_pthread.h) and "
    "numbered by the kernel (threading.get_native_id), and `suspend_thread` stops it; a coroutine is not a thread, "
    'but an object as a generator is (PEP 492, "Coroutine object methods")'
)

# Bit: the set, the feature it needs or "", and the mechanism; or set "", and why there is none.
# fmt: off
SERVED_BY: dict[int, tuple[str, str, str]] = {
    0: ("always", "", "a map by identity; gc.get_objects and gc.get_referents"),
    1: ("always_solo", "", "`__setattr__` of the watched class, replaced while a watch is set"),
    2: ("always_solo", "", "`__getattribute__` of the watched class, replaced while a watch is set"),
    3: ("always", "", "co_code"),
    4: ("always", "", "names in angle brackets: lambdas, comprehensions, module bodies"),
    5: ("onload", "", "locks made after it was taken are wrapped"),
    6: ("onload", "", "locks made after it was taken are wrapped"),
    7: ("always", "", "the lock's own state"),
    8: ("", "", "no way to unwind another frame than by an exception"),
    9: ("always", "", "a function's `__code__` can be assigned; running frames keep the old one"),
    10: ("always", "", "PyThreadState_SetAsyncExc; PyErr_SetInterruptEx for the main thread"),
    11: ("always", "", "co_filename"),
    12: ("always", "", "co_lines"),
    13: ("", "", "code objects have no room for a source debug extension"),
    14: ("always", "", "f_locals; writing since 3.13"),
    15: ("always", "", "a class's `__dict__` keeps the order of definition"),
    16: ("always", MONITORING, "INSTRUCTION, for the threads that step"),
    17: ("always", MONITORING, "RAISE, once for each exception; EXCEPTION_HANDLED"),
    18: ("always", MONITORING, "PY_RETURN and PY_UNWIND of the frame"),
    19: ("always_solo", MONITORING, "INSTRUCTION of the code object alone, disabled everywhere else in it"),
    20: ("always_solo", MONITORING, "LINE and JUMP: the thread waits in what they call"),
    21: ("always", "", "as redefining: any class and function that is Python's"),
    22: ("always", OWN_CPU, "time.thread_time_ns"),
    23: ("always", OTHERS_CPU, "the CPU clock of its native thread"),
    24: ("always", MONITORING, "PY_START"),
    25: ("always", MONITORING, "PY_RETURN and PY_UNWIND"),
    26: ("always", "", "loaders, wrapped where they make code objects"),
    27: ("", "", "the JIT does not announce its machine code"),
    28: ("onload", "", "locks made after it was taken are wrapped"),
    29: ("always_solo", TRACER, "PyRefTracer; each is sent when the code that made it has returned"),
    30: ("", "", "C functions are bound when their module is made, and not announced"),
    31: ("always", "", "gc.callbacks"),
    32: ("always", "", "weak references to tagged objects"),
    33: ("", "", "no way to unwind another frame than by an exception"),
    34: ("onload", "", "locks made after it was taken are wrapped"),
    35: ("always", "", "co_consts and co_names"),
    36: ("", "", "C functions are found by their address, never by a name that could have a prefix"),
    37: ("always", "", "a function's `__code__`, made anew from what the loader gave"),
    38: ("always", "", "as retransforming: any class and function that is Python's"),
    39: ("always", MONITORING, "RAISE of MemoryError"),
    40: ("always", MONITORING, "RAISE of `can't start new thread`"),
    41: ("onload", "", "START begins before the program's loader is set up"),
    42: ("onload", "", "loaders, wrapped before the first module of the program"),
    43: ("always_solo", TRACER, "PyRefTracer; by the bytes of the objects themselves"),
    44: ("", "", NO_VIRTUAL_THREADS),
}
# fmt: on


class CapabilitySets:
    """Four disjoint sets; they iterate as `CapabilityRules` takes them."""

    __slots__ = ("always", "always_solo", "onload", "onload_solo")

    def __init__(
        self, always: CapabilitySet, onload: CapabilitySet, always_solo: CapabilitySet, onload_solo: CapabilitySet
    ) -> None:
        self.always = always
        self.onload = onload
        self.always_solo = always_solo
        self.onload_solo = onload_solo

    def __iter__(self) -> Iterator[CapabilitySet]:
        return iter((self.always, self.onload, self.always_solo, self.onload_solo))

    def __repr__(self) -> str:
        return f"CapabilitySets({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def features() -> frozenset[str]:
    """What of the features above this interpreter has, by looking."""
    found = set()
    if hasattr(sys, "monitoring"):
        found.add(MONITORING)
    if hasattr(time, "thread_time_ns"):
        found.add(OWN_CPU)
    if hasattr(time, "pthread_getcpuclockid"):
        found.add(OTHERS_CPU)
    if native.traces_allocations():
        found.add(TRACER)
    return frozenset(found)


def features_of(version: tuple[int, int], gil: bool = True) -> frozenset[str]:
    """Those of this version's interpreter on Linux, with the extension."""
    found = {OWN_CPU, OTHERS_CPU}
    if version >= (3, 12):
        found.add(MONITORING)
    if version >= (3, 13) and gil:
        found.add(TRACER)
    return frozenset(found)


def capability_sets(available: frozenset[str] | None = None) -> CapabilitySets:
    """The sets of an interpreter with these features; by default, of this one."""
    if available is None:
        available = features()

    def chosen(name: str) -> CapabilitySet:
        return CapabilitySet(
            bit for bit, (where, need, _) in SERVED_BY.items() if where == name and (not need or need in available)
        )

    return CapabilitySets(chosen("always"), chosen("onload"), chosen("always_solo"), chosen("onload_solo"))


def why_absent(capability: Capability, available: frozenset[str] | None = None) -> str:
    """Why it stands in none of the four sets; "" for one that does."""
    where, need, text = SERVED_BY[capability]
    if not where:
        return text
    if need and need not in (features() if available is None else available):
        return WHY_NOT[need]
    return ""
