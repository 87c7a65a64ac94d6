"""Thread.print: the threads, what they execute, which locks they have and wait for; deadlocks."""

from __future__ import annotations

import os
import sys
import time

from vmscope import own_threads
from vmscope.commands import _layout as layout
from vmscope.commands._os_threads import OsThread, os_threads
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.commands.reply import Reply
from vmscope.terminal import printable
from vmscope.tool import properties
from vmscope.tool.model import thread_snapshot, threads
from vmscope.tool.model.cycles import cycles
from vmscope.tool.model.thread_snapshot import ACQUIRED, ENDED, ThreadSnapshot, Turns, lock_of
from vmscope.tool.model.thread_state import ThreadState, activity, condition_wait

NAMED = 3  # of those that wait for a lock
OWN = "vmscope "  # so the names of vmscope's own threads begin, as the kernel has them

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output
    from vmscope.native import StackSnapshot
    from vmscope.tool.model.thread_snapshot import Place, Wait


class ThreadRow:
    """One thread of the dump."""

    __slots__ = ("daemon", "header", "name", "seen", "state", "still", "task", "waits")

    def __init__(self, seen: ThreadSnapshot, task: OsThread, name: str, daemon: bool) -> None:
        self.seen = seen
        self.task = task
        self.name = name
        self.daemon = daemon
        thread = threads.known(seen.state)
        suspended = thread is not None and thread.parked
        doing = activity([] if suspended else task.call, is_condition_wait(seen.frames[0]), bool(seen.waits))
        self.waits: list[Wait] = [] if doing & ThreadState.RUNNABLE else seen.waits
        self.still = not doing & (ThreadState.RUNNABLE | ThreadState.WAITING_WITH_TIMEOUT)  # until another acts
        self.header, self.state = layout.states(doing, self.waits)

    def ask_kernel(self, addresses: dict[int, object]) -> None:
        """It knows which of the locks that others have a thread waits for, whatever the code calls it."""
        wait = self.waits[0] if self.waits else None
        if wait is not None and wait.how == ACQUIRED:
            wait.what = addresses.get(int(self.task.call[1], 16), wait.what)


class ThreadDump:
    """All of it, as of one moment: that of the snapshot that was taken when it was asked for, if there is one."""

    def __init__(self, asked: StackSnapshot | None = None) -> None:
        self.turn = Turns()
        seen = thread_snapshot.take(self.turn, asked)
        self.turn()
        there = os_threads(time.clock_gettime(time.CLOCK_BOOTTIME), self.turn, asked)
        self.frames = layout.Frames(self.turn)
        self.owners = thread_snapshot.owners(seen, self.turn)
        addresses = thread_snapshot.addresses(seen, self.turn)
        threading = own_threads.threading_module()
        known = {} if threading is None else dict(threading._active)
        self.rows: list[ThreadRow] = []
        for each in seen:
            self.turn()
            if each.frames:
                thread = known.get(each.ident)
                main = each.native_id == os.getpid() or (threading is None and each is seen[0])
                number = os.getpid() if main else each.native_id  # which the twin has from threading
                task = there.pop(number, None) or OsThread(number, b"", b"", 0, 0.0)
                name, daemon = "MainThread" if main else task.name, not main
                if thread is not None:
                    name, daemon = str(thread._name), bool(thread._daemonic)
                self.rows.append(ThreadRow(each, task, printable(name), daemon))
                self.rows[-1].ask_kernel(addresses)
        self.by_state = {row.seen.state: row for row in self.rows}
        self.turn()
        own = {each.native_id for each in seen if each.own}  # Python threads, such as the twin's
        self.others = [task for task in there.values() if task.native_id not in own and not task.name.startswith(OWN)]
        self.waiting: dict[int, list[ThreadRow]] = {}  # who wait for each lock
        for row in self.rows:
            self.turn()
            for wait in row.waits:
                if wait.how == ACQUIRED and wait.what is not None:
                    self.waiting.setdefault(id(wait.what), []).append(row)

    def close(self) -> None:
        """Lets go of it bit by bit."""
        self.by_state.clear()
        self.owners.clear()
        self.waiting.clear()
        while self.rows:
            self.rows.pop()
            self.turn()

    # -- one thread

    def thread(self, row: ThreadRow, beyond: bool) -> str:
        lines = [self.head(row), f"   java.lang.Thread.State: {row.state}", *self.stack(row)]
        if beyond:
            lines += ["", "   Locked ownable synchronizers:"]
            for lock in row.seen.beyond:
                lines += [f"\t- {layout.thing(lock)}", *self.behind(lock)]
            if not row.seen.beyond:
                lines.append("\t- None")
        return "\n".join([*lines, "", ""])

    def head(self, row: ThreadRow) -> str:
        seen, task = row.seen, row.task
        daemon = " daemon" if row.daemon else ""
        return (
            f'"{row.name}" #{seen.state}{daemon} prio=5 {self.times(task)} tid=0x{seen.ident:016x} '
            f"nid=0x{task.native_id:x} {row.header}  [0x{task.stack:016x}]"
        )

    def times(self, task: OsThread) -> str:
        return f"os_prio={task.nice} cpu={task.cpu / 1e6:.2f}ms elapsed={task.elapsed:.2f}s"

    def stack(self, row: ThreadRow) -> list[str]:
        lines = []
        for depth, place in enumerate(row.seen.frames):
            lines.append(f"\tat {self.frames.at(place)}")
            for wait in row.waits:
                if wait.depth == depth:
                    lines += self.wait(wait)
            for at, lock in row.seen.has:
                if at == depth:
                    lines += self.has(row, lock)
        return [*lines, "\t..."] if row.seen.cut else lines

    def wait(self, wait: Wait) -> list[str]:
        if wait.what is None:
            return [f"\t- {layout.LINES[wait.how]} {layout.UNKNOWN}"]
        lines = [f"\t- {layout.LINES[wait.how]} {layout.thing(wait.what)}"]
        if wait.how == ACQUIRED:
            owner = self.owner(wait)
            lines.append(f"\t  held by {called(owner)}" if owner is not None else "\t  owner unknown")
        return lines

    def has(self, row: ThreadRow, lock: object) -> list[str]:
        inner = lock_of(lock)
        for wait in row.waits:
            if wait.how == thread_snapshot.NOTIFIED and lock_of(wait.what) is inner:
                return [f"\t- locked {layout.thing(wait.what)}"]  # which it gives up while it waits, as a JVM's
        return [f"\t- locked {layout.thing(inner)}", *self.behind(inner)]

    def behind(self, lock: object) -> list[str]:
        """Who waits for a lock."""
        waiting = self.waiting.get(id(lock), [])
        names = ", ".join(map(called, waiting[:NAMED])) + (f" and {len(waiting) - NAMED} more" * (len(waiting) > NAMED))
        return [f"\t  waited for by {names}"] if waiting else []

    def owner(self, wait: Wait) -> ThreadRow | None:
        """For whom a thread waits, where that is known."""
        if wait.how == ACQUIRED:
            seen = self.owners.get(id(wait.what))
            return None if seen is None else self.by_state.get(seen.state)
        ident = thread_ident(wait.what)
        return next((row for row in self.rows if row.seen.ident == ident), None) if ident else None

    # -- all of it

    def write(self, out: Output, beyond: bool, more: bool) -> None:
        fixed = properties.fixed()
        bits = 64 if sys.maxsize > 1 << 32 else 32
        out.write(
            f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n"
            f"Full thread dump {fixed['java.vm.name']} {bits}-Bit VM ({fixed['java.version']} interpreted mode):\n\n"
        )
        for row in self.rows:
            out.write(self.thread(row, beyond))
            self.turn()
        for task in self.others:
            name = printable(task.name)
            out.write(
                f'"{name}" {self.times(task)} tid=0x{task.native_id:016x} nid=0x{task.native_id:x} '
                f"{'runnable' if task.running else 'waiting on condition'}  \n\n"
            )
            self.turn()
        if more and "asyncio" in sys.modules:
            from vmscope.commands import asyncio_tasks

            asyncio_tasks.write(out, self.turn)
        if more and "greenlet" in sys.modules:
            from vmscope.commands import _greenlets

            _greenlets.write(out, self.turn)
        self.write_deadlocks(out)

    def write_deadlocks(self, out: Output) -> None:
        found = self.deadlocks()
        for cycle in found:
            out.write(f"\nFound one Java-level deadlock:\n{'=' * 29}\n")
            for row in cycle:
                out.write(f'"{row.name}":\n  {self.blocked(row)},\n  which is held by "{self.ahead(row).name}"\n\n')
            out.write(f"Java stack information for the threads listed above:\n{'=' * 51}\n")
            for row in cycle:
                out.write("\n".join([f'"{row.name}":', *self.stack(row), ""]))
        if found:
            out.write(f"\nFound {len(found)} deadlock{'s' if len(found) > 1 else ''}.\n")

    def blocked(self, row: ThreadRow) -> str:
        wait = row.waits[0]
        at, of = f"0x{id(wait.what):016x}", thread_snapshot.kind(wait.what)
        if wait.how == ACQUIRED:
            return f"waiting to lock monitor {at} (object {at}, a {of})"
        return f"waiting for ownable synchronizer {at}, (a {of})"

    def ahead(self, row: ThreadRow) -> ThreadRow:
        owner = self.owner(row.waits[0])
        assert owner is not None
        return owner

    def links(self) -> dict[int, tuple[int, int]]:
        """Of each thread that waits for another's lock or end without a time limit: what, and who; by their states."""
        found = {}
        for row in self.rows:
            self.turn()
            if row.still and row.waits and row.waits[0].how in (ACQUIRED, ENDED):
                owner = self.owner(row.waits[0])
                if owner is not None:
                    found[row.seen.state] = id(row.waits[0].what), owner.seen.state
        return found

    def deadlocks(self) -> list[list[ThreadRow]]:
        """Circles that a second look finds again: in one the threads may just have been on their way."""
        links = self.links()
        found = cycles({state: owner for state, (_, owner) in links.items()})
        if found:
            second = ThreadDump()
            again = second.links()
            second.close()
            found = [cycle for cycle in found if all(links[state] == again.get(state) for state in cycle)]
        return [[self.by_state[state] for state in cycle] for cycle in found]


def is_condition_wait(place: Place) -> bool:
    code = condition_wait()
    return code is not None and place[:2] == (code.co_qualname, code.co_filename)


def called(row: ThreadRow) -> str:
    return f'"{row.name}" #{row.seen.state}'


def thread_ident(what: object) -> int | None:
    """Of a threading.Thread."""
    threading = own_threads.threading_module()
    if threading is None or not issubclass(type(what), threading.Thread):
        return None
    ident: int | None = vars(what).get("_ident")
    return ident


def run(out: Output, l: bool, e: bool) -> None:  # noqa: E741
    dump = ThreadDump(out.snapshot if isinstance(out, Reply) else None)
    try:
        dump.write(out, l, e)
    finally:
        dump.close()


COMMANDS = (
    Command(
        "Thread.print",
        "All threads: what they execute, which locks they have and wait for, and deadlocks.",
        run,
        impact="Medium: Depends on the number of threads.",
        arguments=(
            Argument("-e", "Show the tasks of event loops, and greenlets.", "BOOLEAN", default="false"),
            Argument(
                "-l",
                "Show the locks that a thread has and no frame of it is seen to have taken.",
                "BOOLEAN",
                default="false",
            ),
        ),
    ),
)
