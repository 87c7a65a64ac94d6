"""What a VM says of its own work on standard error, switched on and off while it runs."""

from __future__ import annotations

import _imp
import gc
import sys
from enum import IntEnum

from vmscope import terminal
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class VerboseFlag(IntEnum):
    """`SetVerboseFlag`'s: what to report."""

    OTHER = 0
    GC = 1
    CLASS = 2
    JNI = 4


class _Announcer:
    """On sys.meta_path it sees each module that is looked for, and finds none."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:  # fmt: skip
        _say(f"import {name}")
        return None


_announcer = _Announcer()
_create_dynamic: Callable[..., ModuleType] = _imp.create_dynamic
_patches = Patches()


def _announce(spec: ModuleSpec, file: object = None) -> ModuleType:
    _say(f"load {spec.name} from {spec.origin}")
    return _create_dynamic(spec, file)


def _say(text: str) -> None:
    terminal.ERR.show(f"# vmscope: {terminal.printable(text)}\n")


def set_flag(flag: VerboseFlag, value: bool) -> None:
    """OTHER is taken, and nothing comes of it, as in HotSpot."""
    if flag == VerboseFlag.GC:
        debug = gc.get_debug()
        gc.set_debug(debug | gc.DEBUG_STATS if value else debug & ~gc.DEBUG_STATS)
    elif flag == VerboseFlag.CLASS:
        if _announcer in sys.meta_path:
            sys.meta_path.remove(_announcer)
        if value:
            sys.meta_path.insert(0, _announcer)
    elif flag == VerboseFlag.JNI:
        _patches.undo()
        if value:
            _patches.replace(_imp, "create_dynamic", _announce)
