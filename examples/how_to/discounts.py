"""A shop that hides an error from its customers; docs/how-to/swallowed-exceptions.md finds it."""

from __future__ import annotations

import time

DISCOUNTS = {"summer": 10, "winter": "20"}


def discount(code: str) -> int:
    try:
        return 100 - DISCOUNTS[code]  # type: ignore[operator]
    except Exception:
        return 100


if __name__ == "__main__":
    for number in range(3000):
        discount("winter" if number % 3 else "summer")
        time.sleep(0.001)
