"""Diagnostic commands: what `jcmd PID ...` and `vmscope cmd PID ...` ask of this process, and what agents add to it.

    from vmscope import commands

    def run(out, size, verbose): ...

    commands.register(commands.Command("Shop.report", "What is in stock.", run, arguments=(
        commands.Argument("size", "how many rows", "INT", default="10"),
        commands.Argument("-verbose", "everything", "BOOLEAN", default="false"),
    )), vm)

Each name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.arguments import Argument
    from vmscope.commands.registry import Command, Output, execute, register, unregister

__all__ = ["Argument", "Command", "Output", "execute", "register", "unregister"]

_HOMES = {"Argument": "arguments"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"vmscope.commands.{_HOMES.get(name, 'registry')}", fromlist=[name])
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
