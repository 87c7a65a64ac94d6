"""Breakpoints and pending frame pops: where code stops, and which frames are waited for."""

from __future__ import annotations

from opcode import opmap
from types import CodeType, FrameType

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.frames import frame_at, frame_of, frames_of
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.errors import Duplicate, InvalidLocation, NotFound
from vmscope.tool.spec.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from vmscope.tool.host import Host
    from vmscope.tool.model.introspection import Method

    Environment = Base

KEPT = 4096  # code objects whose prologues are remembered
_prologues: dict[int, tuple[CodeType, int]] = {}  # by id, which the code object in it keeps from being used again


class Points:
    """The breakpoints of one VM: JVM TI has them for all environments together."""

    def __init__(self) -> None:
        self.by_code: dict[int, tuple[CodeType, frozenset[int]]] = {}
        self.holder: object = None  # the environment that set one last: one at a time may

    def at(self, code: CodeType) -> frozenset[int]:
        """The offsets at which this code object has one."""
        found = self.by_code.get(id(code))
        return found[1] if found is not None and found[0] is code else frozenset()

    def put(self, code: CodeType, offsets: frozenset[int], holder: object) -> None:
        self.holder = holder
        if offsets:
            self.by_code[id(code)] = code, offsets
        else:
            self.by_code.pop(id(code), None)

    def move(self, old: CodeType, new: CodeType) -> None:
        """This code has taken the place of that: breakpoints that it has an instruction for stay."""
        stops = self.at(old)
        self.by_code.pop(id(old), None)
        if stops:
            self.put(new, self.at(new) | stops & offsets(new), self.holder)

    def drop(self, holder: object) -> None:
        """Those of an environment that is disposed of."""
        if self.holder is holder:
            self.holder = None
            self.by_code.clear()


class Pops:
    """The frames whose end an agent waits for, on all threads."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[FrameType, list[Environment]]] = {}  # by id, which the frame keeps

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, frame: FrameType, environment: Environment) -> None:
        waiting = self._waiting.setdefault(id(frame), (frame, []))[1]
        if environment in waiting:
            raise Duplicate(f"the end of this frame of {frame.f_code.co_qualname} is awaited already")
        waiting.append(environment)

    def remove(self, environment: Environment, frames: Container[FrameType] | None = None) -> None:
        """This environment waits no more: for these, or for any."""
        for key, (frame, waiting) in list(self._waiting.items()):
            if environment in waiting and (frames is None or frame in frames):
                waiting.remove(environment)
                if not waiting:
                    del self._waiting[key]

    def popped(self, host: Host, code: CodeType, by_exception: bool) -> None:
        """The innermost frame with this code ends: sends FramePop to those who wait for it, in creation order."""
        frame = frame_of(code)
        with host.lock:
            found = self._waiting.pop(id(frame), None)
            last = not self._waiting
        if found is None:
            return
        if last:
            host.changed()
        thread = threads.current()
        for environment in host.environments:
            if environment in found[1] and environment.wants(Event.FRAME_POP, thread):
                environment.deliver(Event.FRAME_POP, (thread, code, by_exception))


class Breakpoints(Base):
    @function
    def set_breakpoint(self, method: Method, location: int) -> None:
        """Sends Breakpoint before the instruction at this offset runs. InvalidLocation, Duplicate.

        CPython: INSTRUCTION of the code object alone, disabled at all its other instructions; within the prologue,
        PY_START, after MethodEntry.
        """
        code = check(method, location)
        points = self.host.points
        with self.host.lock:
            if location in points.at(code):
                raise Duplicate(f"{code.co_qualname} has a breakpoint at {location} already")
            points.put(code, points.at(code) | {location}, self)
            self._close_with(self._drop)
        self.host.changed()

    @function
    def clear_breakpoint(self, method: Method, location: int) -> None:
        """Takes it away. InvalidLocation, NotFound.

        CPython: as it was set.
        """
        code = check(method, location)
        points = self.host.points
        with self.host.lock:
            if location not in points.at(code):
                raise NotFound(f"{code.co_qualname} has no breakpoint at {location}")
            points.put(code, points.at(code) - {location}, points.holder)
        self.host.changed()

    @function
    def notify_frame_pop(self, thread: Thread | None, depth: int) -> None:
        """Sends FramePop, once, when this frame of the thread ends. NoMoreFrames, Duplicate.

        CPython: PY_RETURN and PY_UNWIND while one is awaited. Depth 0 on the current thread is the frame that an
        agent's callback is about, or else the one that called this function.
        Differs: the thread need not be suspended.
        """
        frame = frame_at(self.host, thread or threads.current(), depth)
        with self.host.lock:
            self.host.pops.add(frame, self)
            self._close_with(self._drop)
        self.host.changed()

    @function
    def clear_all_frame_pops(self, thread: Thread | None) -> None:
        """Takes back every notify_frame_pop of this environment on this thread.

        CPython: as they were asked for.
        """
        frames = list(frames_of(self.host, thread or threads.current()))
        with self.host.lock:
            self.host.pops.remove(self, frames)
        self.host.changed()

    def _close_with(self, close: Callable[[], None]) -> None:
        if close not in self.closers:
            self.closers.append(close)

    def _drop(self) -> None:
        """It is disposed of."""
        with self.host.lock:
            self.host.points.drop(self)
            self.host.pops.remove(self)
        self.host.changed()


def check(method: Method, location: int) -> CodeType:
    if not isinstance(method, CodeType):
        raise InvalidLocation(f"{method!r} is native and has no locations")
    if location not in offsets(method):
        raise InvalidLocation(f"no instruction of {method.co_qualname} is at {location}")
    return method


def offsets(code: CodeType) -> set[int]:
    """Where its instructions begin."""
    import dis

    return {instruction.offset for instruction in dis.get_instructions(code)}


def prologue(code: CodeType) -> int:
    """The offset of the RESUME that ends it."""
    found = _prologues.get(id(code))
    if found is None:
        if len(_prologues) >= KEPT:
            _prologues.clear()
        at = code.co_code[::2].find(opmap["RESUME"])
        found = _prologues[id(code)] = code, at * 2
    return found[1]
