"""Threads that stand still, each in a place that is known; it ends with its input."""

import asyncio
import sys
import threading

stop = threading.Event()
ready = threading.Barrier(6)


def waits(number, text):
    word, items, nothing = text * 2, [number], None  # noqa: F841
    ready.wait()
    stop.wait()


class Shop:
    def work(self):
        waits(-5, "é\n")


def deep(left):
    if left:
        deep(left - 1)
    else:
        waits(2**40, "deep")


def generate(left):
    if left:
        yield from generate(left - 1)
    else:
        waits(0, "generator")
        yield


async def awaits(left):
    if left:
        await awaits(left - 1)
    else:
        waits(1, "await")


def calls_back(left):
    if left:
        list(map(calls_back, [left - 1]))  # by C
    else:
        waits(3, "map")


def start(name, function, *arguments):
    threading.Thread(target=function, args=arguments, name=name, daemon=True).start()


def main():
    start("w\xf6rker\x1b[2J", Shop().work)
    start("deep", deep, 900)
    start("generator", lambda: list(generate(30)))
    start("awaits", lambda: asyncio.run(awaits(30)))
    start("calls", calls_back, 20)
    ready.wait()
    print("ready", flush=True)
    sys.stdin.readline()


main()
