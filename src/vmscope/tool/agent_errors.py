"""What agents do wrong: each error is logged, and counted for those who do not read the log."""

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


def report(agent: str, place: str, message: str, *arguments: object, error: BaseException) -> None:
    """Counts what was raised, by agent and place, and logs it: `message` follows the agent's name."""
    count(agent, place)
    log.say("error", f"agent %s: {message}", agent or UNNAMED, *arguments, error=error, name=log.TOOL, depth=2)


def count(agent: str, place: str, name: str = ERRORS) -> None:
    """Counts it, by the agent and where in it: the name of an event, or of what else called it."""
    counter = REGISTRY.counter(name, units=EVENTS)
    counter.inc()
    key = (agent[:_LONGEST] or UNNAMED, place)
    if key not in _counted and len(_counted) < _MOST:
        _counted.add(key)
    labels = dict(zip(OTHERS, key, strict=True)) if key in _counted else OTHERS
    counter.labels(**labels).inc()
