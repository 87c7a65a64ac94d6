"""Threads that wait for each other in a circle: found among those that wait for a lock, and shown."""

from __future__ import annotations

import os
import time
from types import CodeType

from vmscope.agents.stacks import DEPTH, line, show
from vmscope.tool import Environment, Thread, ThreadState, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Wait:
    """One thread's wait for a lock."""

    __slots__ = ("lock", "shown", "since")

    def __init__(self, lock: object, since: int) -> None:
        self.lock = lock
        self.since = since  # perf_counter_ns
        self.shown = False  # as part of a deadlock


class Link:
    """One of a deadlock: a thread, what it waits for, and who has that."""

    __slots__ = ("owner", "thread", "wait")

    def __init__(self, thread: Thread, wait: Wait, owner: Thread) -> None:
        self.thread = thread
        self.wait = wait
        self.owner = owner


def find(env: Environment, blocked: Mapping[Thread, Wait], after: int) -> list[list[Link]]:
    """Each circle whose threads have waited for so many nanoseconds, without an end to their patience. Each is found
    once."""
    late = time.perf_counter_ns() - after
    links: dict[Thread, Link] = {}
    for thread, wait in [*blocked.items()]:
        if wait.since <= late and (owner := owner_of(env, thread, wait)) is not None:
            links[thread] = Link(thread, wait, owner)
    found = []
    visited: set[Thread] = set()
    for begin in links:
        path: list[Link] = []
        thread = begin
        while thread in links and thread not in visited:
            visited.add(thread)
            path.append(links[thread])
            thread = links[thread].owner
        circle = path[next((at for at, link in enumerate(path) if link.thread is thread), len(path)) :]
        if circle and not any(link.wait.shown for link in circle) and lasts(env, circle, blocked):
            for link in circle:
                link.wait.shown = True
            found.append(circle)
    return found


def owner_of(env: Environment, thread: Thread, wait: Wait) -> Thread | None:
    """Who has what the thread still waits for; None where nobody is known."""
    try:
        if env.get_current_contended_monitor(thread) is not wait.lock:
            return None
        return env.get_object_monitor_usage(wait.lock).owner
    except ToolError:  # it has ended
        return None


def lasts(env: Environment, circle: list[Link], blocked: Mapping[Thread, Wait]) -> bool:
    """Whether each of them still waits, and none with a time limit, after which the others would go on."""
    try:
        states = [env.get_thread_state(link.thread) for link in circle]
    except ToolError:
        return False
    return not any(state & ThreadState.PARKED for state in states) and all(
        blocked.get(link.thread) is link.wait for link in circle
    )


def summary(circle: list[Link]) -> str:
    """One line."""
    return "; ".join(
        f'"{link.thread.name}" waits for {name(link.wait.lock)}, which "{link.owner.name}" has' for link in circle
    )


def report(env: Environment, circle: list[Link], blocked: Mapping[Thread, Wait]) -> str:
    """All there is to know of it: who waits for what, where, and where what they have was taken."""
    count = len(circle)
    head = f"vmscope locks, {time.strftime('%Y-%m-%d %H:%M:%S')}, pid {os.getpid()}: deadlock: "
    head += "a thread waits for itself" if count == 1 else f"{count} threads wait for each other"
    lines = [head, ""]
    for link in circle:
        whose = "it has itself" if link.owner is link.thread else f'"{link.owner.name}" has'
        begin = f'Thread "{link.thread.name}", native id {link.thread.native_id}'
        lines.append(f"{begin}, waits for {name(link.wait.lock)}, which {whose}:")
        lines += stack(env, link.thread)
        lines.append("")
    behind = waiting_behind(env, circle, blocked)
    if behind:
        names = ", ".join(f'"{thread.name}"' for thread in behind[:10])
        lines += [f"Behind them: {names}{f' and {len(behind) - 10} more' if len(behind) > 10 else ''}", ""]
    return "\n".join(lines) + "\n"


def stack(env: Environment, thread: Thread) -> list[str]:
    """The frames, the innermost first, each with the locks that it has taken."""
    taken: dict[int, list[str]] = {}
    try:
        for info in env.get_owned_monitor_stack_depth_info(thread):
            taken.setdefault(info.stack_depth, []).append(f"    - has {name(info.monitor)}")
    except ToolError:  # owners=off, or it has ended
        taken.clear()
    try:
        frames = env.get_stack_trace(thread, 0, DEPTH)
    except ToolError as error:
        return [f"  no stack: {error}"]
    lines: list[str] = []
    for depth, (method, location) in enumerate(frames):
        lines += [show(method, location), *taken.get(depth, ())]
    return [*lines, *taken.get(-1, ())]


def waiting_behind(env: Environment, circle: list[Link], blocked: Mapping[Thread, Wait]) -> list[Thread]:
    """Who waits for one of the circle, or for one who does."""
    stuck = {link.thread for link in circle}
    behind: list[Thread] = []
    left = {thread: owner_of(env, thread, wait) for thread, wait in [*blocked.items()] if thread not in stuck}
    while more := [thread for thread, owner in left.items() if owner in stuck]:
        for thread in more:
            del left[thread]
        stuck.update(more)
        behind += more
    return behind


def name(lock: object) -> str:
    """Its kind, and where it was made."""
    return f"the {type(lock).__name__} of {made(lock)}"


def made(lock: object) -> str:
    """Where it was made: `module.function:line`. Of a condition, its lock."""
    known = getattr(lock, "made", None) or getattr(getattr(lock, "_lock", None), "made", None)
    return place(*known) if known else "?"


def place(module: str, code: CodeType, location: int) -> str:
    """`module.function:line`."""
    return f"{module}.{code.co_qualname}:{line(code, location)}"
