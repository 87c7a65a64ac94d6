"""The functions on stacks: what threads are executing, and who called it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

from vmscope import native
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.frames import frames_of, is_own
from vmscope.tool.model.introspection import is_a
from vmscope.tool.model.thread_state import ThreadState, state_of
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.errors import IllegalArgument, InvalidThread, NoMoreFrames, shown

ALL = sys.maxsize
OWN_FRAMES = 8  # the most that a thread is deep in vmscope: in a lock, in a function of the interface


class FrameInfo(NamedTuple):
    """One frame: its code, and the offset of the instruction that it is at, in bytes of `co_code`."""

    method: CodeType
    location: int


class StackInfo(NamedTuple):
    """One thread at one moment, the innermost frame first."""

    thread: Thread
    state: ThreadState
    frames: list[FrameInfo]


class Stacks(Base):
    @function
    def get_frame_count(self, thread: Thread | None = None) -> int:
        """How many frames are on a thread's stack; None is the current one. ThreadNotAlive.

        CPython: those of Python code.
        Differs: a C function has no frame; within an agent's callback neither that nor vmscope has.
        """
        return len(self._frames(thread, ALL))

    @function
    def get_frame_location(self, thread: Thread | None, depth: int) -> FrameInfo:
        """What the frame at this depth executes; 0 is the innermost. NoMoreFrames, ThreadNotAlive.

        CPython: f_code and f_lasti.
        """
        frames = self._frames(thread, depth + 1)
        if depth >= len(frames):
            raise NoMoreFrames(f"the stack has {len(frames)} frames, and so none at depth {depth}")
        return frames[depth]

    @function
    def get_stack_trace(self, thread: Thread | None, start_depth: int, max_frame_count: int) -> list[FrameInfo]:
        """The frames of one thread from this depth on, this many at most. A negative depth counts from the outermost
        frame, which is -1. IllegalArgument for a depth that the stack has not, ThreadNotAlive.

        CPython: read in one go, while no thread runs; on a build without the GIL the thread goes on meanwhile.
        """
        frames = self._frames(thread, start_depth + max(max_frame_count, 1) if start_depth >= 0 else ALL)
        if (start_depth > 0 and start_depth >= len(frames)) or -start_depth > len(frames):
            raise IllegalArgument(f"the stack has {len(frames)} frames: it cannot begin at {start_depth}")
        begin = start_depth if start_depth >= 0 else len(frames) + start_depth
        return frames[begin : begin + max_frame_count]

    @function
    def get_all_stack_traces(self, max_frame_count: int) -> list[StackInfo]:
        """All live threads with their states and stacks, this many frames of each at most.

        CPython: all stacks as of one moment; on a build without the GIL one after the other.
        """
        return self._stacks(threads.living(), max_frame_count)

    @function
    def get_thread_list_stack_traces(self, threads: Sequence[Thread], max_frame_count: int) -> list[StackInfo]:
        """As `get_all_stack_traces`, for these threads in this order; one that has ended has no frames. InvalidThread.

        CPython: all stacks as of one moment; on a build without the GIL one after the other.
        """
        for each in threads:
            if not is_a(each, Thread):
                raise InvalidThread(f"{shown(each)} is not a Thread")
        return self._stacks(threads, max_frame_count)

    def _frames(self, thread: Thread | None, limit: int) -> list[FrameInfo]:
        own = threads.current()
        if thread is None or thread is own:
            frames = (FrameInfo(frame.f_code, frame.f_lasti) for frame in frames_of(self.host, own))
            return [frame for _, frame in zip(range(limit), frames, strict=False)]
        stacks = native.thread_stacks(min(limit, ALL - OWN_FRAMES) + OWN_FRAMES, thread.state)
        return program(stacks[0][1], limit) if stacks else []

    def _stacks(self, those: Sequence[Thread], limit: int) -> list[StackInfo]:
        stacks = dict(native.thread_stacks(max(limit, 1) + OWN_FRAMES))
        found = []
        for thread in those:
            if thread is threads.current():
                frames = self._frames(thread, max(limit, 1))
            else:
                frames = program(stacks.get(thread.state, ()), max(limit, 1))
            state = state_of(thread, frames[0].method if frames else None)
            found.append(StackInfo(thread, state, frames[:limit]))
        return found


def program(frames: Sequence[tuple[CodeType, int]], limit: int) -> list[FrameInfo]:
    """Without vmscope's own at the top."""
    begin = next((at for at, (code, _) in enumerate(frames) if not is_own(code)), len(frames))
    return [FrameInfo(*frame) for frame in frames[begin : begin + limit]]
