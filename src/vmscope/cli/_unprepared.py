"""A profile of a CPython that does not run vmscope: its stacks are sampled from outside."""

from __future__ import annotations

import re

from vmscope import terminal
from vmscope.errors import VMScopeError
from vmscope.flight.convert.modes import HOLDS, MODES
from vmscope.flight.convert.profile import SAMPLES, STATE, Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.flight.convert.modes import Window
    from vmscope.interpreters.profile import Sampled

PERIOD = 0.01  # seconds between two samples, as the settings called profile have it
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/")
_NANOSECONDS = 1_000_000_000


def profile(pid: int, mode: str, seconds: float, window: Window) -> Profile:
    """VMScopeError for a mode that cannot be had from outside; else what `profile_unprepared` raises."""
    from time import time_ns

    from vmscope.interpreters.profile import profile_unprepared

    if mode not in ("cpu", "wall", "gil"):
        raise VMScopeError(
            f"the mode {mode} of process {pid} cannot be seen from outside, where cpu, wall and gil can",
            hint="start it with vmscope run, or switch vmscope autostart on and start it again",
        )
    begin = time_ns()
    found = profile_unprepared(pid, seconds, min(PERIOD, seconds), started=lambda: _begin(pid, seconds))
    if terminal.ERR.isatty():
        terminal.ERR.put("\r\x1b[K")
    made = Profile(mode, MODES[mode].unit)
    weight = 1 if made.unit == SAMPLES else round(found.period * _NANOSECONDS)
    root = [made.frame(HOLDS, STATE)] if mode == "gil" else []
    for each in found.stacks:
        name = found.threads[each.thread].name
        if each.frames and _counts(each, mode) and window.is_wanted(name):
            stack = [made.frame(_name(function, file)) for function, file, _ in reversed(each.frames)]
            made.add(name, (*root, *stack), each.samples * weight, begin)
    made.begin, made.end = begin, time_ns()
    return made


def _begin(pid: int, seconds: float) -> None:
    if terminal.ERR.isatty():
        terminal.ERR.put(f"\r\x1b[Ksampling process {pid} from outside for {seconds:g} s; Ctrl-C ends it now")


def _counts(each: Sampled, mode: str) -> bool:
    return each.gil or (mode == "wall") or (mode == "cpu" and each.running)


def _name(function: str, file: str) -> str:
    """`module.function`, the module by what is left of its file's name."""
    module = file.removeprefix("<frozen ").removesuffix(">") if file.startswith("<frozen ") else file
    found = _LIBRARY.match(module)
    if found:
        module = module[found.end() :]
    elif module.endswith("/__init__.py"):
        module = "/".join(module.split("/")[-2:])
    else:
        module = module.rpartition("/")[2]
    module = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{module}.{function.replace('.<locals>', '')}"
