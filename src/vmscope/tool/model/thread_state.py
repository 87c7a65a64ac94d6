"""What a thread is doing, as seen from outside: its innermost frame, and what the kernel says that it waits for."""

from __future__ import annotations

import os
from enum import IntFlag

from vmscope import native, own_threads
from vmscope.tool.model import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from vmscope.tool.model.threads import Thread


class ThreadState(IntFlag):
    """JVM TI's bits."""

    ALIVE = 0x1
    TERMINATED = 0x2
    RUNNABLE = 0x4
    WAITING_INDEFINITELY = 0x10
    WAITING_WITH_TIMEOUT = 0x20
    SLEEPING = 0x40
    WAITING = 0x80
    IN_OBJECT_WAIT = 0x100
    PARKED = 0x200
    BLOCKED_ON_MONITOR_ENTER = 0x400
    SUSPENDED = 0x100000
    INTERRUPTED = 0x200000
    IN_NATIVE = 0x400000


_MACHINE = os.uname().machine if hasattr(os, "uname") else ""
# By machine: the kernel's numbers of futex, of what sleeps, and the place of futex's timeout among the arguments.
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(_MACHINE, "")
_SLEEP = {"x86_64": ("35", "230"), "aarch64": ("101", "115")}.get(_MACHINE, ())
_TIMEOUT = 4
_OWN_LOCKS = range(native.runtime_span()[0], sum(native.runtime_span()))


def state_of(thread: Thread, method: CodeType | None) -> ThreadState:
    """`method` is what its innermost frame runs. RUNNABLE where nothing more is known."""
    if not thread.started:
        return ThreadState(0)
    if not thread.alive:
        return ThreadState.TERMINATED
    runs = thread.parked or thread is threads.current()
    state = ThreadState.ALIVE | activity(
        [] if runs else system_call(thread.native_id), method is not None and method is condition_wait()
    )
    if thread.suspended:
        state |= ThreadState.SUSPENDED
    if thread.interrupted:
        state |= ThreadState.INTERRUPTED
    return state


def activity(call: list[str], notified: bool, waits: bool = False) -> ThreadState:
    """By what `system_call` says. `notified`: its innermost frame is Condition.wait's; `waits`: it is at what may wait
    for a lock."""
    if not call or call[0] == "running":
        return ThreadState.RUNNABLE
    if call[0] in _SLEEP:
        return ThreadState.WAITING | ThreadState.WAITING_WITH_TIMEOUT | ThreadState.SLEEPING
    if call[0] != _FUTEX:
        return ThreadState.RUNNABLE | ThreadState.IN_NATIVE
    address, timeout = int(call[1], 16), int(call[_TIMEOUT], 16)
    if address in _OWN_LOCKS or (timeout and not _OWN_LOCKS and not waits):
        return ThreadState.RUNNABLE  # it only waits for its turn
    limit = ThreadState.WAITING_WITH_TIMEOUT if timeout else ThreadState.WAITING_INDEFINITELY
    if notified:
        return ThreadState.WAITING | limit | ThreadState.IN_OBJECT_WAIT
    if timeout:
        return ThreadState.WAITING | limit | ThreadState.PARKED
    return ThreadState.BLOCKED_ON_MONITOR_ENTER


def system_call(native_id: int | None) -> list[str]:
    """The number and the arguments of what it waits for in the kernel; `running`; [] where the kernel does not say."""
    try:
        with open(f"/proc/self/task/{native_id}/syscall") as file:
            return file.read().split()
    except OSError:
        return []


def condition_wait() -> CodeType | None:
    """The code of threading.Condition.wait; None where it is not imported."""
    threading = own_threads.threading_module()
    if threading is None:
        return None
    wait = threading.Condition.wait
    code: CodeType = getattr(wait, "__wrapped__", wait).__code__
    return code
