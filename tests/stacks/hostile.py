"""Programs that change their stacks as fast as they can, while `hammer` reads them: `hostile.py PROGRAM ROUNDS`.

A wrong stack is told by its lines: each line that calls names what it calls. What is printed is JSON: counts, and the
pairs of frames of which one cannot have called the other.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import hammer  # type: ignore[import-not-found]  # built by the test

Place = tuple[str, str, int]  # qualname, filename, line

OVER = threading.Event()
MADE: dict[str, list[str]] = {}  # the lines of what is compiled here, by its file
GIVEN = {"short", "main", "middle", "leaf", "<lambda>", "__del__", "<genexpr>"}  # which libraries call for us


def recursion() -> None:
    def deep(times: int) -> None:
        if times:
            deep(times - 1)

    while not OVER.is_set():
        deep(900)
        deep(5)


def calls() -> None:
    def leaf() -> int:
        return 1

    def one() -> int:
        return leaf() + leaf()

    def two() -> int:
        leaf()
        return one() + leaf()

    def three() -> int:
        return two() + one()

    while not OVER.is_set():
        three()
        two()
        one()


def generators() -> None:
    def inner(times: int) -> Iterator[int]:
        yield from range(times)

    def outer() -> Iterator[int]:
        for number in inner(5):
            yield number + 0

    def spread() -> Iterator[int]:
        yield from outer()

    while not OVER.is_set():
        list(spread())
        sum(number for number in outer())


def finalizers() -> None:
    class Dying:
        def __del__(self) -> None:
            one()

    def one() -> int:
        return 1

    def two() -> None:
        Dying()  # __del__
        one()

    while not OVER.is_set():
        two()


def initializers() -> None:
    class Made:
        def __init__(self) -> None:
            one()

    def one() -> int:
        return 1

    while not OVER.is_set():
        Made()
        sorted([3, 1, 2], key=lambda number: one())  # <lambda>


def exceptions() -> None:
    def fail(times: int) -> None:
        if not times:
            raise ValueError
        try:
            fail(times - 1)
        finally:
            pass

    while not OVER.is_set():
        try:
            fail(20)
        except ValueError:
            pass


def threads() -> None:
    def short() -> None:
        sorted([3, 1, 2])

    while not OVER.is_set():
        made = [threading.Thread(target=short) for _ in range(4)]
        for thread in made:
            thread.start()
        for thread in made:
            thread.join()


def new_code() -> None:
    number = 0
    while not OVER.is_set():
        number += 1
        name = f"made{number % 50}"
        text = f"def {name}():\n    x = 1\n    return x\nfor _ in range(3): {name}()"
        MADE[f"<made {name}>"] = text.split("\n")
        exec(compile(text, f"<made {name}>", "exec"), {})  # <module>


def replaced_code() -> None:
    def base() -> int:
        return 1

    code = base.__code__
    while not OVER.is_set():
        base.__code__ = code.replace(co_name="base")
        base()


def coroutines() -> None:
    async def leaf() -> None:
        await asyncio.sleep(0)

    async def middle() -> None:
        await leaf()

    async def main() -> None:
        while not OVER.is_set():
            await asyncio.gather(*(middle() for _ in range(3)))

    asyncio.run(main())


def collections() -> None:
    class Node:
        own: Node

        def __del__(self) -> None:
            one()

    def one() -> int:
        return 1

    def cycle() -> None:
        node = Node()
        node.own = node

    while not OVER.is_set():
        cycle()  # __del__, where a collection begins
        gc.collect()  # __del__


def greenlets() -> None:
    greenlet = importlib.import_module("greenlet")

    def inner(times: int) -> None:
        if times:
            inner(times - 1)
        else:
            home.switch()

    home = greenlet.getcurrent()
    while not OVER.is_set():
        made = [greenlet.greenlet(inner) for _ in range(5)]
        for each in made:
            each.switch(10)
        for each in made:
            each.switch()


def interpreters() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    module: Any = importlib.import_module(name)
    run = module.exec if sys.version_info >= (3, 13) else module.run_string
    while not OVER.is_set():
        number = module.create()
        run(number, "def f(n):\n    return f(n - 1) if n else 0\nfor _ in range(100): f(50)")
        module.destroy(number)


def finalization() -> None:
    """The end of Python comes while the stacks are read."""
    threading.Thread(target=hammer.run, args=(1 << 60, 64), daemon=True).start()
    for _ in range(20):
        threading.Thread(target=OVER.wait, daemon=True).start()
    sys.stdout.write("{}\n")


PROGRAMS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        *(recursion, calls, generators, finalizers, initializers, exceptions, threads),
        *(new_code, replaced_code, coroutines, collections, greenlets, interpreters),
    )
}


# -- the check


def line_of(file: str, number: int) -> str:
    lines = MADE.get(file)
    if lines is not None:
        return lines[number - 1] if number <= len(lines) else ""
    return linecache.getline(file, number)


def may_call(caller: Place, callee: Place) -> bool:
    """Whether the line of the caller names the callee; among libraries it is taken for granted."""
    if not {caller[1], callee[1]} & {__file__, *MADE}:
        return True
    *outer, name = callee[0].split(".")
    if name == "_remove":  # of a weak set, called wherever an object ends
        return True
    if caller[1] != __file__ and caller[1] not in MADE:
        return name in PROGRAMS or name in GIVEN
    inline = {"for"} if name in ("<listcomp>", "<genexpr>") else set()
    names = {"_find_and_load": {"import"}, "__init__": {*outer}}.get(name, {name})
    return any(each in line_of(caller[1], caller[2]) for each in names | inline)


def may_be_outermost(place: Place) -> bool:
    return place[0] in ("<module>", "Thread._bootstrap", "greenlets.<locals>.inner") or place[1] != __file__


def main(name: str, rounds: int) -> None:
    sys.setrecursionlimit(3000)
    thread = threading.Thread(target=PROGRAMS[name], name=name)
    thread.start()
    edges, counts = hammer.run(rounds, 1024)
    OVER.set()
    thread.join()
    wrong = [
        (callee, caller, count)
        for callee, caller, count in edges
        if not (may_be_outermost(callee) if caller is None else may_call(caller, callee))
    ]
    sys.stdout.write(json.dumps({**counts, "edges": sum(count for *_, count in edges), "wrong": wrong}) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == finalization.__name__:
        finalization()
    else:
        main(sys.argv[1], int(sys.argv[2]))
