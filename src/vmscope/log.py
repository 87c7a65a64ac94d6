"""What vmscope says in the program's logs, and how often.

A record is one line of printable text, whatever the names in it are: what a client or another process has written
makes no second record of one. Of one kind the first ten records are logged, then one a minute, which says how many
there were since the last one. So nothing that others do again and again fills a log.

Nothing is ever printed, not even by logging's last resort. `shown` says that this is `vmscope run`, whose terminal
belongs to who named the agents: there what agents and commands do wrong is shown, unless logging has been configured.
"""

from __future__ import annotations

import sys
from time import monotonic

from vmscope.terminal import lines, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger

ROOT, TOOL, COMMANDS = "vmscope", "vmscope.tool", "vmscope.commands"  # the loggers
LEVELS = {"debug": 10, "warning": 30, "error": 40}

FIRST = 10  # of one kind at once
AGAIN = 60.0  # seconds until there may be one more
_KINDS = 64  # that count by themselves; all others count as one
_LONGEST = 1000  # characters of an argument
_FRAMES = 50  # of a traceback; then only the last ones are logged,
_LONGEST_TRACE = 16 << 10  # and this many characters

shown = False


class Repeats:
    """Which of many equal records are logged."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        # Of each kind: how many may still be logged, since when that is, and how many were not logged.
        self._kinds: dict[tuple[str, ...], list[float]] = {}

    def admit(self, *kind: str) -> int | None:
        """None: do not log this one. Else the number of its kind that were not logged since the last one that was.

        Two threads at once may make a number wrong by one; that is not worth a lock, which a signal's handler or a
        fork could find taken.
        """
        now = monotonic()
        state = self._kinds.get(kind)
        if state is None:
            if len(self._kinds) >= _KINDS:
                quiet = now - FIRST * AGAIN
                self._kinds = {each: known for each, known in self._kinds.items() if known[1] > quiet}
            if len(self._kinds) >= _KINDS:
                kind = ()
            state = self._kinds.setdefault(kind, [FIRST, now, 0])
        earned = int((now - state[1]) / AGAIN)
        if earned:
            state[0], state[1] = min(FIRST, state[0] + earned), state[1] + earned * AGAIN
        if state[0] < 1:
            state[2] += 1
            return None
        state[0] -= 1
        suppressed, state[2] = int(state[2]), 0
        return suppressed

    def suppressed(self) -> int:
        """The number that the next record of their kind reports."""
        return int(sum(state[2] for state in [*self._kinds.values()]))


repeats = Repeats()  # of records


def say(
    level: str,
    message: str,
    *arguments: object,
    error: BaseException | None = None,
    name: str = ROOT,
    each: bool = False,
    depth: int = 1,
) -> None:
    """Logs a record where the program has loaded logging; where it has not, it cannot have asked to see it.

    `error` is what was raised. Records that say the same are of one kind, whatever was raised; with `each` all are
    logged. The record names the place of the call; with a `depth` of 2, of the call of the function that calls this.
    """
    if shown:
        __import__("logging")
    logging = sys.modules.get("logging")
    if logging is None or not hasattr(logging, "shutdown"):  # the last of what it defines: it is being imported
        return
    # Made no earlier than it is needed: configuring logging disables the loggers that there are, by default.
    logger: Logger = logging.getLogger(name)
    number = LEVELS[level]
    if not logger.isEnabledFor(number):
        return
    if _is_heard(logger):
        handle = logger.handle
    elif shown and name != ROOT and logging.lastResort is not None:
        handle = logging.lastResort.handle
    else:
        return
    safe = tuple(each if isinstance(each, int) else printable(str(each)[:_LONGEST]) for each in arguments)
    suppressed = 0 if each else repeats.admit(name, message, *map(str, safe))
    if suppressed is None:
        return
    if suppressed:
        message += f" ({suppressed} more like this were not logged)"
    info = None if error is None else (type(error), error, error.__traceback__)
    file, line, function, _ = logger.findCaller(stacklevel=1 + depth)
    record = logger.makeRecord(name, number, file, line, message, safe, info, function)
    if error is not None and not _is_plain(error):
        record.exc_text = _trace(error)
    handle(record)


def _is_heard(logger: Logger) -> bool:
    """Whether the program has said where its messages go."""
    from logging import NullHandler

    place: Logger | None = logger
    while place is not None:
        if not all(isinstance(each, NullHandler) for each in place.handlers):
            return True
        place = place.parent if place.propagate else None
    return False


def _is_plain(error: BaseException) -> bool:
    """Whether the program may format the traceback: of each error a line of printable text, and not too many frames."""
    todo, seen = [error], set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        try:
            texts = [str(each), *getattr(each, "__notes__", ())]
        except Exception:
            return False
        if any(len(text) > _LONGEST or printable(text) != text for text in texts) or _is_deep(each):
            return False
        others = (each.__cause__, each.__context__, *getattr(each, "exceptions", ()))
        todo += [other for other in others if isinstance(other, BaseException)]
    return True


def _is_deep(error: BaseException) -> bool:
    trace, left = error.__traceback__, _FRAMES
    while trace is not None and left:
        trace, left = trace.tb_next, left - 1
    return trace is not None


def _trace(error: BaseException) -> str:
    """A traceback of which no line can be taken for a record: none begins at the margin."""
    import traceback

    text = "".join(traceback.format_exception(error, limit=-_FRAMES))
    return "\n".join([f"    {line}" for line in lines(text)[:_LONGEST_TRACE].splitlines()])
