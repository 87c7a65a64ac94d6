"""jstack's layout: how a frame, a lock and a state are spelt, so that what reads a JVM's thread dumps reads ours."""

from __future__ import annotations

import sys

from vmscope.terminal import printable
from vmscope.tool.model.blocking_analysis import namespace
from vmscope.tool.model.thread_snapshot import ACQUIRED, ENDED, NOTIFIED, kind
from vmscope.tool.model.thread_state import ThreadState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from vmscope.tool.model.thread_snapshot import Place, Wait

UNKNOWN = "<no object reference available>"
LINES = {
    ACQUIRED: "waiting to lock",
    NOTIFIED: "waiting on",
    ENDED: "parking to wait for ",  # two blanks, as jstack has it
}


class Frames:
    """How frames are spelt: `module.function(file:line)`. Modules have their names by their files, as of now."""

    def __init__(self, turn: Callable[[], None]) -> None:
        self._known: dict[Place, str] = {}
        self._names: dict[str, str] = {}
        for name, module in [*sys.modules.items()]:
            turn()
            file = (namespace(module) or {}).get("__file__")
            if type(file) is str:
                self._names.setdefault(file, name)

    def __call__(self, code: CodeType, offset: int) -> str:
        return self.at((code.co_qualname, code.co_filename, line(code, offset)))

    def at(self, place: Place) -> str:
        known = self._known.get(place)
        if known is None:
            function, path, number = place
            known = self._known[place] = printable(f"{self._module(path)}.{function}({base(path)}:{number})")
        return known

    def _module(self, path: str) -> str:
        if path.startswith("<frozen "):
            return path[len("<frozen ") : -1]
        if path == "<string>" and "-c" in sys.orig_argv:
            return "__main__"
        return self._names.get(path) or base(path).removesuffix(".py").strip("<>")


def base(path: str) -> str:
    return path.rpartition("/")[2]


def line(code: CodeType, offset: int) -> int:
    """Of an instruction; the function's first where it has none."""
    for begin, end, number in code.co_lines():
        if begin <= offset < end and number is not None:
            return number
    return code.co_firstlineno


def thing(what: object) -> str:
    """An object as jstack shows one: where it stands, and its type."""
    return f"<0x{id(what):016x}> (a {kind(what)})"


def states(activity: ThreadState, waits: list[Wait]) -> tuple[str, str]:
    """What stands in the thread's header, and its java.lang.Thread.State."""
    how = waits[0].how if waits else None
    if activity & ThreadState.SLEEPING:
        return "waiting on condition", "TIMED_WAITING (sleeping)"
    if activity & ThreadState.RUNNABLE:
        return "runnable", "RUNNABLE"
    limited = "TIMED_WAITING" if activity & ThreadState.WAITING_WITH_TIMEOUT else "WAITING"
    if how == NOTIFIED:
        return "in Object.wait()", f"{limited} (on object monitor)"
    if how == ACQUIRED and limited == "WAITING":
        return "waiting for monitor entry", "BLOCKED (on object monitor)"
    return "waiting on condition", f"{limited} (parking)"
