"""What agents do wrong: into the log, and into counters, which tell of it where nobody reads a log."""

from __future__ import annotations

from vmscope import log
from vmscope.counters.kinds import EVENTS
from vmscope.counters.registry import REGISTRY

ERRORS = "vmscope.agents.errors"
DISABLED = "vmscope.agents.disabled"
UNNAMED = "without a name"
OTHERS = {"agent": "others", "at": "others"}

_MOST = 32  # agents and places that are counted apart: each is an entry of the region, whose room is limited
_LONGEST = 100  # characters of an agent's name
_counted: set[tuple[str, str]] = set()


def error(message: str, *arguments: object, error: BaseException | None = None) -> None:
    """Logs what went wrong; `error` is what was raised."""
    log.say("error", message, *arguments, error=error, name=log.TOOL)


def misuse(text: str) -> None:
    """Logs what -Xcheck:jni has found, each time: whoever asked for it wants all of it."""
    log.say("error", "%s", text, name=log.TOOL, each=True)


def warning(message: str, *arguments: object) -> None:
    log.say("warning", message, *arguments, name=log.TOOL)


def count(agent: str, place: str, name: str = ERRORS) -> None:
    """Counts it, by the agent and where in it: the name of an event, or of what else called it."""
    counter = REGISTRY.counter(name, units=EVENTS)
    counter.inc()
    key = (agent[:_LONGEST] or UNNAMED, place)
    if key not in _counted and len(_counted) < _MOST:
        _counted.add(key)
    labels = dict(zip(OTHERS, key, strict=True)) if key in _counted else OTHERS
    counter.labels(**labels).inc()
