"""VM.log: what vmscope's own loggers say, and where to. It is the same `logging` that the program has."""

from __future__ import annotations

import sys

from vmscope import log
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

    from vmscope.commands.registry import Output

# A JVM's words for logging's levels; 0 is none of its own, 100 more than anything has.
LEVELS = {"default": 0, "trace": 5, "debug": 10, "info": 20, "warning": 30, "error": 40, "off": 100}

_MOST = 8  # outputs, each of which is a descriptor of the program's

_outputs: dict[str, logging.Handler] = {}
_changed: set[str] = set()  # the loggers whose level was set here


def run(out: Output, output: str | None, what: str | None, disable: bool, list: bool) -> None:
    if disable:
        _disable()
    selections = [] if what is None else _selections(what)
    if output is not None:
        _open(output)
    for name, level in selections:
        _logger(name).setLevel(level)
        _changed.add(name)
    if list or not (disable or selections or output is not None):
        _list(out)


def _selections(what: str) -> list[tuple[str, int]]:
    """`LOGGER=LEVEL,...`: `all`, or a logger's name without `vmscope.`; a level is `debug` where none is written."""
    found = []
    known = _names()
    for selection in what.split(","):
        tag, equals, level = selection.partition("=")
        name = log.ROOT if tag == "all" else f"{log.ROOT}.{tag}"
        if name not in known:  # logging would keep it for ever, and what stands before each of its dots
            tags = [each.partition(".")[2] for each in known if each != log.ROOT]
            raise CommandError(f"Invalid logger '{tag}': write {' or '.join(['all', *tags])}")
        if (level if equals else "debug") not in LEVELS:
            raise CommandError(f"Invalid level '{level}': one of {', '.join(LEVELS)}")
        found.append((name, LEVELS[level if equals else "debug"]))
    return found


def _names() -> list[str]:
    """Of vmscope's loggers, and of those below it that agents have made."""
    names = {log.TOOL, log.COMMANDS}
    module = sys.modules.get("logging")
    if module is not None:
        made = [*module.Logger.manager.loggerDict.items()]
        names |= {name for name, each in made if name.startswith(f"{log.ROOT}.") and isinstance(each, module.Logger)}
    return [log.ROOT, *sorted(names)]


def _logger(name: str) -> logging.Logger:
    import logging

    return logging.getLogger(name)


def _open(output: str) -> None:
    """`stderr`, or a file to which is appended. A second time it is the same output."""
    if output in _outputs:
        return
    if len(_outputs) == _MOST:
        raise CommandError(f"there are {_MOST} outputs already, and there can be no more: VM.log disable ends them all")
    from vmscope.commands._log_output import LogOutput

    try:
        handler = LogOutput(output)
    except (OSError, ValueError) as error:  # ValueError: no path can have a NUL
        why = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"cannot write the log to {output}: {why}") from error
    _outputs[output] = handler
    _logger(log.ROOT).addHandler(handler)


def _disable() -> None:
    """As before the first request."""
    while _outputs:
        _, handler = _outputs.popitem()
        _logger(log.ROOT).removeHandler(handler)
        handler.close()
    while _changed:
        _logger(_changed.pop()).setLevel(0)


def _list(out: Output) -> None:
    out.write(f"Available log levels: {', '.join(LEVELS)}\n")
    module = sys.modules.get("logging")
    if module is None:
        out.write("The program has not imported logging: nothing is said\n")
        return
    words = {number: word for word, number in LEVELS.items()}
    for name in _names():
        logger = module.Logger.manager.loggerDict.get(name)
        if isinstance(logger, module.Logger):
            level = logger.getEffectiveLevel()
            out.write(f" {name}: {words.get(logger.level, logger.level)}, so {words.get(level, level)} and above\n")
    out.write(f"Repeated records that were not logged since the last one like them: {log.repeats.suppressed()}\n")
    out.write("Log output: what the program's own handlers do with it\n")
    for output in _outputs:
        out.write(f" {output}\n")


COMMANDS = (
    Command(
        "VM.log",
        "Which of vmscope's own messages are logged, and where to; without arguments, how it is.",
        run,
        arguments=(
            Argument(
                "output", "stderr, or a file to append to, besides the program's own handlers.", "FILE", option=True
            ),
            Argument("what", "LOGGER=LEVEL,...; the logger all is every one of vmscope's.", option=True),
            Argument("disable", "Takes back what this command has changed.", "BOOLEAN", default="false", option=True),
            Argument("list", "Shows how it is.", "BOOLEAN", default="false", option=True),
        ),
    ),
)
