"""Python.asyncio_tasks and Thread.print -e: tasks and greenlets, as a thread outside of them sees them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from tests.diagnostics import run
from tests.support import PATIENCE


def looked_at(main: Callable[[], Coroutine[Any, Any, None]], line: str = "Python.asyncio_tasks") -> str:
    """What a command says, asked by another thread while this coroutine runs."""
    found: list[str] = []

    async def around() -> None:
        task = asyncio.create_task(main(), name="main")
        for _ in range(10):  # until all wait
            await asyncio.sleep(0)
        found.append(await asyncio.to_thread(run, line))
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(asyncio.wait_for(around(), PATIENCE))
    return found[0]


async def sleep() -> None:
    await asyncio.sleep(PATIENCE)


def parents(text: str) -> dict[str, str]:
    """Which task stands below which; "" is none."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.split("\n"):
        match = re.match(r'([ │├└─]*)"(.*?)" <0x[0-9a-f]{16}> \(a [\w.]+\)', line)
        if match:
            depth = len(match[1])
            above = [each for each in above if each[0] < depth]
            found.setdefault(match[2], above[-1][1] if above else "")
            above.append((depth, match[2]))
    return found


def test_the_tree_of_awaiters() -> None:
    shielded: list[asyncio.Task[None]] = []

    async def shield() -> None:
        shielded.append(asyncio.create_task(sleep(), name="shielded"))
        await asyncio.shield(shielded[0])

    async def wait() -> None:
        await asyncio.wait([asyncio.create_task(sleep(), name="waited")])

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleep(), name="grouped")
            tasks.create_task(direct(), name="direct")

    async def direct() -> None:
        await asyncio.create_task(sleep(), name="awaited")

    async def main() -> None:
        try:
            await asyncio.gather(*(asyncio.create_task(each(), name=each.__name__) for each in (shield, wait, group)))
        finally:
            shielded[0].cancel()

    text = looked_at(main)
    assert re.match(
        r"Event loop <0x[0-9a-f]{16}> \(a asyncio\.\S+EventLoop\) runs in thread \"MainThread\": \d+ tasks\n", text
    )
    expected = {
        "main": "",
        "shield": "main",
        "wait": "main",
        "group": "main",
        "shielded": "shield",
        "waited": "wait",
        "grouped": "group",
        "direct": "group",
        "awaited": "direct",
    }
    found = parents(text)
    assert {name: found[name] for name in expected} == expected
    assert text.count("shown above") == 0
    assert "    at asyncio.tasks.sleep(tasks.py:" in text


def test_what_a_task_waits_for() -> None:
    lock, queue, event = asyncio.Lock(), asyncio.Queue[int](), asyncio.Event()

    async def locked() -> None:
        async with lock:
            pass

    async def values() -> AsyncIterator[int]:
        yield await queue.get()

    async def iterate() -> None:
        async for _ in values():
            return

    async def main() -> None:
        await lock.acquire()
        await asyncio.gather(locked(), iterate(), event.wait())

    text = looked_at(main)
    for what in (lock, queue, event):
        assert f"- waiting on <0x{id(what):016x}> (a asyncio." in text
    assert f"    at {__name__}.test_what_a_task_waits_for.<locals>.values(test_asyncio_tasks.py:" in text
    assert "asyncio.queues.Queue.get(queues.py:" in text


def test_tasks_that_await_each_other() -> None:
    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []

        async def other(at: int) -> None:
            await asyncio.wait([tasks[at]])

        tasks += [asyncio.create_task(other(1), name="one"), asyncio.create_task(other(0), name="two")]
        await sleep()

    text = looked_at(main)
    assert parents(text)["two"] == "one"
    assert re.search(r'"one" <0x[0-9a-f]+> \(a _asyncio.Task\): shown above\n', text)


def test_loops_in_several_threads_and_in_the_thread_dump() -> None:
    over, inside = threading.Event(), threading.Event()

    def run() -> None:
        async def main() -> None:
            task = asyncio.create_task(sleep(), name="other loop")
            await asyncio.sleep(0)
            inside.set()
            while not over.is_set():
                await asyncio.sleep(0.005)  # a loop that works
            task.cancel()

        asyncio.run(main())

    thread = threading.Thread(target=run, name="second loop")
    thread.start()
    try:
        assert inside.wait(PATIENCE)
        text = looked_at(sleep, "Thread.print -e")
    finally:
        over.set()
        thread.join(PATIENCE)
    loops = text.split("\nEvent loop ")[1:]
    assert len(loops) == 2
    assert '"second loop" #' in text.partition("\nEvent loop ")[0]
    [other] = [each for each in loops if '"other loop"' in each]
    assert 'runs in thread "second loop": 2 tasks\n' in other


def test_greenlets() -> None:
    greenlet: Any = pytest.importorskip("greenlet")

    def work() -> None:
        greenlet.getcurrent().parent.switch()

    own: Any = type("Own", (greenlet.greenlet,), {"__module__": __name__})
    waiting = own(work)
    waiting.switch()
    text = run("Thread.print -e")
    shown = f"<0x{id(waiting):016x}> (a {__name__}.Own)"
    assert f"{shown}\n\tat {__name__}.test_greenlets.<locals>.work(test_asyncio_tasks.py:" in text
    waiting.switch()
    assert shown not in run("Thread.print -e")
