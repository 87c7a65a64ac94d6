"""Threads that wait for each other in a cycle: found among those that wait for a lock or a thread's end, and shown."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import CodeType, FrameType

from vmscope.agents.stacks import DEPTH, OWN, line, show
from vmscope.tool import Environment, Thread, ToolError
from vmscope.tool.model.cycles import cycles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


NAMED = 10  # of those that wait behind a deadlock


class LockWait:
    """One thread's wait: for a lock, or for the end of another Thread."""

    __slots__ = ("shown", "since", "what")

    def __init__(self, what: object, since: int) -> None:
        self.what = what
        self.since = since  # perf_counter_ns
        self.shown = False  # as part of a deadlock


class Link:
    """One of a deadlock: a thread, what it waits for, and who has that."""

    __slots__ = ("owner", "thread", "wait")

    def __init__(self, thread: Thread, wait: LockWait, owner: Thread) -> None:
        self.thread = thread
        self.wait = wait
        self.owner = owner


def joins(env: Environment, before: Mapping[Thread, LockWait]) -> dict[Thread, LockWait]:
    """Who waits in Thread.join, however long it takes; `before` is what was found by the last look."""
    found: dict[Thread, LockWait] = {}
    all_ = env.get_all_threads()
    frames = sys._current_frames()
    for thread in all_:
        ident = joined(frames.get(thread.ident))
        what = next((each for each in all_ if each.ident == ident), None) if ident else None
        if what is not None:
            known = before.get(thread)
            same = known is not None and known.what is what
            found[thread] = known if known and same else LockWait(what, time.perf_counter_ns())
    return found


def joined(frame: FrameType | None) -> int | None:
    """The ident of the thread whose end is waited for without a time limit."""
    join = threading.Thread.join.__code__
    while frame is not None and frame.f_code.co_filename == join.co_filename:
        if frame.f_code is join:
            names = frame.f_locals
            ident: int | None = getattr(names.get("self"), "ident", None) if names.get("timeout") is None else None
            return ident
        frame = frame.f_back
    return None


def find(env: Environment, waits: Mapping[Thread, LockWait], after: int) -> list[list[Link]]:
    """Each cycle whose threads have waited for this many nanoseconds, and would wait for ever. Each is found once."""
    late = time.perf_counter_ns() - after
    links: dict[Thread, Link] = {}
    for thread, wait in waits.items():
        if wait.since <= late and (owner := owner_of(env, thread, wait)) is not None:
            links[thread] = Link(thread, wait, owner)
    found = []
    for threads in cycles({thread: link.owner for thread, link in links.items()}):
        cycle = [links[thread] for thread in threads]
        if not any(link.wait.shown for link in cycle) and lasts(env, cycle):
            for link in cycle:
                link.wait.shown = True
            found.append(cycle)
    return found


def owner_of(env: Environment, thread: Thread, wait: LockWait) -> Thread | None:
    """For whom the thread still waits; None where the owner is not known."""
    if isinstance(wait.what, Thread):
        return wait.what
    try:
        if env.get_current_contended_monitor(thread) is not wait.what:
            return None
        return env.get_object_monitor_usage(wait.what).owner
    except ToolError:  # it has ended
        return None


def lasts(env: Environment, cycle: list[Link]) -> bool:
    """Whether each still waits for the next one, and none with a time limit, after which the others would go on."""
    return all(link.thread.patient and owner_of(env, link.thread, link.wait) is link.owner for link in cycle)


def summary(cycle: list[Link]) -> str:
    """One line."""
    return "; ".join(f'"{link.thread.name}" waits for {name(link)}' for link in cycle)


def report(env: Environment, cycle: list[Link], waits: Mapping[Thread, LockWait]) -> str:
    """All there is to know of it: who waits for what, where, and where what they have was taken."""
    count = len(cycle)
    head = f"vmscope locks, {time.strftime('%Y-%m-%d %H:%M:%S')}, pid {os.getpid()}: deadlock: "
    head += "a thread waits for itself" if count == 1 else f"{count} threads wait for each other"
    lines = [head, ""]
    for link in cycle:
        lines.append(f'Thread "{link.thread.name}", native id {link.thread.native_id}, waits for {name(link)}:')
        lines += [*stack(env, link.thread), ""]
    behind = waiting_behind(env, cycle, waits)
    if behind:
        names = ", ".join(f'"{thread.name}"' for thread in behind[:NAMED])
        lines += [f"Behind them: {names}{f' and {len(behind) - NAMED} more' if len(behind) > NAMED else ''}", ""]
    return "\n".join(lines) + "\n"


def stack(env: Environment, thread: Thread) -> list[str]:
    """The frames, the innermost first, each with the locks that it has taken."""
    taken: dict[int, list[str]] = {}
    try:
        for info in env.get_owned_monitor_stack_depth_info(thread):
            taken.setdefault(info.stack_depth, []).append(f"    - has {kind(info.monitor)}")
    except ToolError:  # owners=off, or it has ended
        taken.clear()
    try:
        frames = env.get_stack_trace(thread, 0, DEPTH)
    except ToolError as error:
        return [f"  no stack: {error}"]
    lines: list[str] = []
    for depth, (method, location) in enumerate(frames):
        lines += [] if method.co_filename.startswith(OWN) else [show(method, location)]
        lines += taken.get(depth, ())
    return [*lines, *taken.get(-1, ())]


def waiting_behind(env: Environment, cycle: list[Link], waits: Mapping[Thread, LockWait]) -> list[Thread]:
    """Who waits for one of the cycle, or for one who does."""
    stuck = {link.thread for link in cycle}
    behind: list[Thread] = []
    left = {thread: owner_of(env, thread, wait) for thread, wait in waits.items() if thread not in stuck}
    while more := [thread for thread, owner in left.items() if owner in stuck]:
        for thread in more:
            del left[thread]
        stuck.update(more)
        behind += more
    return behind


def name(link: Link) -> str:
    """What is waited for."""
    if isinstance(link.wait.what, Thread):
        return f'the end of "{link.owner.name}"'
    whose = "it has itself" if link.owner is link.thread else f'"{link.owner.name}" has'
    return f"{kind(link.wait.what)}, which {whose}"


def kind(lock: object) -> str:
    """What it is, and where it was made."""
    return f"the {type(lock).__name__} of {made(lock)}"


def made(lock: object) -> str:
    """Where it was made: `module.function:line`. Of a condition, its lock."""
    known = getattr(lock, "made", None) or getattr(getattr(lock, "_lock", None), "made", None)
    return place(*known) if known else "?"


def place(module: str, code: CodeType, location: int) -> str:
    """`module.function:line`."""
    return f"{module}.{code.co_qualname}:{line(code, location)}"
