"""A thread's frames, as the program has them: without those of an agent's callback and of vmscope itself."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, FunctionType, MethodType

from vmscope.tool.model import threads
from vmscope.tool.spec.errors import NoMoreFrames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread

OWN = sys._getframe().f_code.co_filename[: -len("tool/model/frames.py")]  # the folder of vmscope's own code


def is_own(code: CodeType) -> bool:
    """Whether it is vmscope's: no event reports it."""
    return code.co_filename.startswith(OWN)


def frames_of(host: Host, thread: Thread) -> Iterator[FrameType]:
    """The innermost first. On the current thread it begins below the innermost callback of an agent, or else with what
    called vmscope."""
    if thread is not threads.current():
        top = sys._current_frames().get(thread.ident)
        while top is not None and is_own(top.f_code):
            top = top.f_back
        yield from below(top)
        return
    called = {code_of(callback) for environment in host.environments for callback in environment.callbacks.values()}
    own = True
    found: FrameType | None = None
    for frame in below(sys._getframe(1)):
        own = own and is_own(frame.f_code)
        if not own and found is None:
            found = frame
        if frame.f_code in called:
            found = frame.f_back
            while found is not None and is_own(found.f_code):  # what called the callback
                found = found.f_back
            break
    yield from below(found)


def frame_at(host: Host, thread: Thread, depth: int) -> FrameType:
    """NoMoreFrames when the stack is not so deep."""
    for at, frame in enumerate(frames_of(host, thread)):
        if at == depth:
            return frame
    raise NoMoreFrames(f"the stack of {thread!r} has no frame at depth {depth}")


def frame_of(code: CodeType) -> FrameType | None:
    """The innermost frame that runs this code: from within a callback of sys.monitoring, the one that it is about."""
    for frame in below(sys._getframe(1)):
        if frame.f_code is code:
            return frame
    return None


def below(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def code_of(callback: object) -> CodeType | None:
    """What runs first when it is called; None for what is not written in Python."""
    if isinstance(callback, MethodType):
        callback = callback.__func__
    if not isinstance(callback, FunctionType):
        callback = vars(type(callback)).get("__call__")
    return callback.__code__ if isinstance(callback, FunctionType) else None
