"""A program that stands still: a deadlock, and a task that waits; docs/how-to/what-it-waits-for.md shows both."""

from __future__ import annotations

import asyncio
import threading

accounts, journal = threading.Lock(), threading.Lock()
both_started = threading.Barrier(2)


def transfer(first: threading.Lock, second: threading.Lock) -> None:
    with first:
        both_started.wait()
        with second:
            pass


async def fetch_price() -> None:
    await asyncio.Event().wait()  # an answer that never comes


async def checkout() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(fetch_price(), name="price")


if __name__ == "__main__":
    threading.Thread(target=transfer, args=(accounts, journal), name="booking", daemon=True).start()
    threading.Thread(target=transfer, args=(journal, accounts), name="audit", daemon=True).start()
    asyncio.run(checkout())
