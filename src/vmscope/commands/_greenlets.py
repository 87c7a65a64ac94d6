"""Greenlets, gevent's among them: those that have begun, have not ended and do not run now, with their stacks."""

from __future__ import annotations

import sys

from vmscope import native
from vmscope.commands import _layout as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from vmscope.commands.registry import Output


def write(out: Output, turn: Callable[[], None]) -> None:
    """Nothing where the program has no greenlets."""
    module: Any = sys.modules.get("greenlet")
    if module is None:
        return
    found = [each for of in family(module.greenlet) for each in native.tracked_objects(of)]
    spelt = layout.Frames(turn)
    shown = []
    for each in found:
        turn()
        stack = frames(spelt, module.greenlet.gr_frame.__get__(each))
        if stack:
            shown.append("\n".join([layout.thing(each), *stack, "\n"]))
    if shown:
        out.write(f"Greenlets that wait: {len(shown)}\n\n")
        for text in shown:
            out.write(text)


def family(kind: type) -> list[type]:
    """A class and all that derive from it."""
    found = [kind]
    for each in found:
        below: list[type] = type.__subclasses__(each)
        found += [other for other in below if other not in found]
    return found


def frames(spelt: layout.Frames, frame: FrameType | None) -> list[str]:
    """The innermost first."""
    lines = []
    while frame is not None:
        lines.append(f"\tat {spelt(frame.f_code, frame.f_lasti)}")
        frame = frame.f_back
    return lines
