"""What agents do wrong: into the log `vmscope.tool`, and into counters, which tell of it where nobody reads a log.
What commands do wrong: into the log `vmscope.commands`.

In a program that hosts agents nothing is ever printed, not even by logging's last resort. `shown` says that this is
`vmscope run`, whose terminal belongs to who named the agents: there it is shown, unless logging has been configured.
"""

from __future__ import annotations

import logging

from vmscope.counters.kinds import EVENTS
from vmscope.counters.registry import REGISTRY

ERRORS = "vmscope.agents.errors"
DISABLED = "vmscope.agents.disabled"
UNNAMED = "without a name"
TOOL, COMMANDS = "vmscope.tool", "vmscope.commands"  # the loggers

shown = False


def error(message: str, *arguments: object, error: BaseException | None = None, log: str = TOOL) -> None:
    """Logs what went wrong; `error` is what was raised."""
    _logger(log).error(message, *arguments, exc_info=error)


def warning(message: str, *arguments: object) -> None:
    _logger(TOOL).warning(message, *arguments)


def count(agent: str, place: str, name: str = ERRORS) -> None:
    """Counts it, by the agent and where in it: the name of an event, or of what else called it."""
    counter = REGISTRY.counter(name, units=EVENTS)
    counter.inc()
    counter.labels(agent=agent or UNNAMED, at=place).inc()


class _Unconfigured(logging.Handler):
    """What takes the place of logging's last resort."""

    def emit(self, record: logging.LogRecord) -> None:
        if shown and logging.lastResort is not None and not _configured():
            logging.lastResort.handle(record)


def _configured() -> bool:
    """Whether the program has said where messages go."""
    handlers = [*logging.getLogger("vmscope").handlers, *logging.getLogger().handlers]
    return not all(isinstance(each, logging.NullHandler) for each in handlers)


def _logger(name: str) -> logging.Logger:
    """Made no earlier than it is needed: configuring logging disables what there is, unless told otherwise."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(_Unconfigured())
    return logger
