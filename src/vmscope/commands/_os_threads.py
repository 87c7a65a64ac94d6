"""What the kernel knows of this process's native threads."""

from __future__ import annotations

import os

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.native import StackSnapshot
    from vmscope.tool.model.thread_snapshot import Turns

AT_ONCE = 100
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class OsThread:
    """One native thread as of now; of one that has ended, or where there is no /proc, nothing but its number."""

    __slots__ = ("call", "cpu", "elapsed", "name", "native_id", "nice", "running")

    def __init__(self, native_id: int, stat: bytes, call: bytes, cpu: int, now: float) -> None:
        self.native_id = native_id
        self.call = call.decode().split()  # as `thread_state.system_call`
        self.cpu = max(cpu, 0)  # ns
        self.name = ""
        self.elapsed = 0.0  # s
        self.nice = 0
        self.running = False
        head, _, rest = stat.decode(errors="replace").rpartition(")")
        fields = rest.split()
        if fields:
            self.name = head.partition("(")[2]
            self.running = fields[0] == "R"
            self.nice = int(fields[16])
            self.elapsed = max(0.0, now - int(fields[19]) / _TICKS)

    @property
    def stack(self) -> int:
        """The page of its stack that it is in, where it waits in the kernel; else 0."""
        return int(self.call[-2], 16) & ~0xFFF if len(self.call) > 2 else 0


def os_threads(now: float, turn: Turns, asked: StackSnapshot | None) -> dict[int, OsThread]:
    """By their numbers, as of the snapshot if it has them; `now` is the time since the system started."""
    found = {}
    for number, stat, call, cpu in (asked.os_threads() if asked is not None else None) or read(turn):
        turn()
        found[number] = OsThread(number, stat, call, cpu, now)
    return found


def read(turn: Turns) -> Iterator[tuple[int, bytes, bytes, int]]:
    ids = native.os_thread_ids()
    turn()
    for at in range(0, len(ids), AT_ONCE):
        part = ids[at : at + AT_ONCE]
        for number, facts in zip(part, native.read_os_threads(part), strict=True):
            yield number, *facts
