"""Exemplars: what the text of a region says, read as others' text, and how OpenMetrics shows it."""

from __future__ import annotations

import math

from vmscope.export.names import Labels, label_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 128  # characters of the names and values of all labels
LATEST = 1e11  # seconds since the epoch: what is later is not a time


class Exemplar:
    """The labels of one value that was counted, the value, and when that was, in seconds since the epoch."""

    __slots__ = ("labels", "time", "value")

    def __init__(self, labels: Labels, value: float, time: float) -> None:
        self.labels = labels
        self.value = value
        self.time = time


def parsed(text: str) -> Exemplar | None:
    """`{trace_id="..."} 0.25 1700000000.123`; None for what is not an exemplar, or not valid in OpenMetrics."""
    inner, end, numbers = text.removeprefix("{").rpartition("} ")
    words = numbers.split(" ")
    if not (text.startswith("{") and end and len(words) == 2):
        return None
    labels = label_list(inner)
    try:
        value, time = map(float, words)
    except ValueError:
        return None
    if labels is None or not (math.isfinite(value) and 0 <= time < LATEST):
        return None
    if sum(len(name) + len(word) for name, word in labels) > LONGEST:
        return None
    return Exemplar(labels, value, time)


def latest(texts: Iterable[str]) -> Exemplar | None:
    """Of several processes' the last one."""
    found = [exemplar for text in texts if (exemplar := parsed(text)) is not None]
    return max(found, key=lambda exemplar: exemplar.time, default=None)
