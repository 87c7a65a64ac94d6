"""The Python twin of picture.c: threads go on while it looks at one after the other, and it sees no frame's stack."""

from __future__ import annotations

import sys

from vmscope import native

__all__ = ["Picture"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    Frame = tuple[CodeType, int, tuple[object, ...]]

GLOBALS = -1


class Picture:
    def __init__(self, kinds: tuple[type, ...] = ()) -> None:
        self._wants: dict[tuple[int, int, bool], tuple[CodeType, tuple[int, ...]]] = {}
        self._threads: list[tuple[int, int, int, bool]] = []
        self._stacks: list[list[Frame]] = []

    def reserve(self) -> None:
        """There is nothing to do."""

    def want(self, code: CodeType, offset: int, innermost: bool, slots: tuple[int, ...], /) -> None:
        self._wants[id(code), offset, bool(innermost)] = code, slots

    def take(self, limit: int, /) -> None:
        frames = sys._current_frames()
        self._threads = native.thread_states()
        self._stacks = [self._stack(frames.get(ident), limit) for _, ident, *_ in self._threads]

    def clear(self) -> None:
        self._threads, self._stacks = [], []

    def _stack(self, frame: FrameType | None, limit: int) -> list[Frame]:
        stack: list[Frame] = []
        while frame is not None and len(stack) < limit:
            _, slots = self._wants.get((id(frame.f_code), frame.f_lasti, not stack), (None, ()))
            stack.append((frame.f_code, frame.f_lasti, kept(frame, slots)))
            frame = frame.f_back
        return stack

    def places(self) -> list[tuple[CodeType, int, bool]]:
        found = {}
        for stack in self._stacks:
            for at, (code, offset, _) in enumerate(stack):
                found[id(code), offset, at == 0] = code, offset, at == 0
        return [*found.values()]

    def threads(self) -> list[tuple[int, int, int, bool]]:
        return self._threads

    def frames(self, at: int, /) -> list[Frame]:
        return self._stacks[at]


def kept(frame: FrameType, slots: tuple[int, ...]) -> tuple[object, ...]:
    if not slots:
        return ()
    code = frame.f_code
    names = list(dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars)))
    values = frame.f_locals
    return tuple(
        frame.f_globals if slot == GLOBALS else values.get(names[slot]) if slot < len(names) else None for slot in slots
    )
