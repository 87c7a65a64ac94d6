"""The twin of stack_snapshot.c: threads go on while it looks at one after the other, and it sees no frame's stack."""

from __future__ import annotations

import sys

from vmscope.native.stacks.thread_states import thread_states

__all__ = ["StackSnapshot"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    Place = tuple[str, str, int]

GLOBALS = -1


class _Frame:
    """One frame as it was met."""

    __slots__ = ("code", "kept", "offset", "place")

    def __init__(self, frame: FrameType, kept: tuple[object, ...], place: int) -> None:
        self.code = frame.f_code
        self.offset = frame.f_lasti
        self.kept = kept
        self.place = place


class StackSnapshot:
    def __init__(self, kinds: tuple[type, ...] = ()) -> None:
        self._wants: dict[tuple[int, int, bool], tuple[CodeType, tuple[int, ...]]] = {}
        self._threads: list[tuple[int, int, int, bool, bool]] = []
        self._stacks: list[list[_Frame]] = []
        self._places: list[Place] = []
        self._numbers: dict[Place, int] = {}

    def reserve(self) -> int:
        """For how many threads; there is nothing else to do."""
        return len(sys._current_frames())

    def want(self, code: CodeType, offset: int, innermost: bool, slots: tuple[int, ...], /) -> None:
        self._wants[id(code), offset, bool(innermost)] = code, slots

    def take(self, limit: int, /) -> None:
        frames = sys._current_frames()
        self.clear()
        for state, ident, native_id, _ in thread_states():
            stack, cut = self._stack(frames.get(ident), limit)
            self._threads.append((state, ident, native_id, cut, False))
            self._stacks.append(stack)

    def clear(self) -> None:
        self._threads, self._stacks = [], []

    def _stack(self, frame: FrameType | None, limit: int) -> tuple[list[_Frame], bool]:
        stack: list[_Frame] = []
        while frame is not None and len(stack) < limit:
            code = frame.f_code
            _, slots = self._wants.get((id(code), frame.f_lasti, not stack), (None, ()))
            place = code.co_qualname, code.co_filename, frame.f_lineno or code.co_firstlineno
            number = self._numbers.setdefault(place, len(self._places))
            if number == len(self._places):
                self._places.append(place)
            stack.append(_Frame(frame, kept(frame, slots), number))
            frame = frame.f_back
        return stack, frame is not None

    def instructions(self) -> list[tuple[CodeType, int, bool]]:
        found = {}
        for stack in self._stacks:
            for at, frame in enumerate(stack):
                found[id(frame.code), frame.offset, at == 0] = frame.code, frame.offset, at == 0
        return [*found.values()]

    def threads(self) -> list[tuple[int, int, int, bool, bool]]:
        return self._threads

    def frames(self, at: int, /) -> list[int]:
        return [frame.place for frame in self._stacks[at]]

    def places(self) -> list[Place]:
        return self._places

    def kept(self, at: int, other: StackSnapshot, there: int, /) -> list[tuple[int, CodeType, int, tuple[object, ...]]]:
        own, its = self._stacks[at], other._stacks[there]
        same = 0  # frames, from the outermost on
        for one, another in zip(reversed(own), reversed(its), strict=False):
            if one.code is not another.code or one.offset != another.offset:
                break
            same += 1
        begin = len(own) - same
        return [
            (len(its) - same + depth, frame.code, frame.offset, frame.kept)
            for depth, frame in enumerate(own[begin:])
            if frame.kept or begin + depth == 0
        ]

    def os_threads(self) -> None:
        """It was taken here."""


def kept(frame: FrameType, slots: tuple[int, ...]) -> tuple[object, ...]:
    if not slots:
        return ()
    code = frame.f_code
    names = list(dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars)))
    values = frame.f_locals
    return tuple(
        frame.f_globals if slot == GLOBALS else values.get(names[slot]) if slot < len(names) else None for slot in slots
    )
