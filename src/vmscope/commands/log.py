"""VM.log: what vmscope's own loggers say, and where to. It is the same `logging` that the program has."""

from __future__ import annotations

import sys

from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

    from vmscope.commands.registry import Output

ROOT = "vmscope"
# A JVM's words for logging's levels; 0 is none of its own, 100 more than anything has.
LEVELS = {"default": 0, "trace": 5, "debug": 10, "info": 20, "warning": 30, "error": 40, "off": 100}

_FORMAT = "[%(asctime)s][%(levelname)s][%(name)s] %(message)s"

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
    for selection in what.split(","):
        tag, equals, level = selection.partition("=")
        if not tag or not all(part.isidentifier() for part in tag.split(".")):
            raise CommandError(f"Invalid logger '{tag}': write all, tool or commands")
        if (level if equals else "debug") not in LEVELS:
            raise CommandError(f"Invalid level '{level}': one of {', '.join(LEVELS)}")
        found.append((ROOT if tag == "all" else f"{ROOT}.{tag}", LEVELS[level if equals else "debug"]))
    return found


def _logger(name: str) -> logging.Logger:
    import logging

    return logging.getLogger(name)


def _open(output: str) -> None:
    """`stderr`, or a file to which is appended. A second time it is the same output."""
    import logging

    if output in _outputs:
        return
    try:
        handler: logging.Handler = logging.StreamHandler() if output == "stderr" else logging.FileHandler(output)
    except OSError as error:
        raise CommandError(f"cannot write the log to {output}: {error.strerror}") from error
    handler.setFormatter(logging.Formatter(_FORMAT))
    _outputs[output] = handler
    _logger(ROOT).addHandler(handler)


def _disable() -> None:
    """As if nobody had ever asked."""
    while _outputs:
        _, handler = _outputs.popitem()
        _logger(ROOT).removeHandler(handler)
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
    known = module.Logger.manager.loggerDict
    for name in sorted(name for name in [*known] if f"{name}.".startswith(f"{ROOT}.")):
        logger = known[name]
        if isinstance(logger, module.Logger):
            level = logger.getEffectiveLevel()
            out.write(f" {name}: {words.get(logger.level, logger.level)}, so {words.get(level, level)} and above\n")
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
