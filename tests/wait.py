"""How tests wait: for what they assert, not for a time. It imports nothing else, so that programs may use it too."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

PATIENCE = 30.0  # seconds; nothing that is waited for takes one on an idle machine
FIRST, LONGEST = 0.001, 0.05  # seconds between two looks: many in the beginning, few where each look costs much


def wait_for(
    condition: Callable[[], T | None],
    what: str | Callable[[], object] = "it did not come to that",
    seconds: float = PATIENCE,
) -> T:
    """What `condition` gives, once that is true. AssertionError with `what`, or what that gives, after `seconds`."""
    end, pause = time.monotonic() + seconds, FIRST
    while not (found := condition()):
        if time.monotonic() >= end:
            raise AssertionError(f"{what() if callable(what) else what} ({seconds:g} s)")
        time.sleep(pause)  # between two looks
        pause = min(2 * pause, LONGEST)
    return found
