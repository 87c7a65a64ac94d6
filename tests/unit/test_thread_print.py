"""Thread.print: jstack's layout, with Python's threads, frames and locks."""

from __future__ import annotations

import _queue
import io
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.support import PATIENCE
from tests.wait import wait_for
from vmscope import commands, native

HEADER = re.compile(
    r'"(?P<name>.*)" #(?P<number>\d+) (?P<daemon>daemon )?prio=\d+ os_prio=-?\d+ cpu=(?P<cpu>[\d.]+)ms '
    r"elapsed=(?P<elapsed>[\d.]+)s tid=0x(?P<tid>[0-9a-f]{16}) nid=0x(?P<nid>[0-9a-f]+) "
    r"(?P<doing>.*?)  \[0x[0-9a-f]{16}\]"
)


def dump(arguments: str = "") -> str:
    out = io.StringIO()
    commands.execute(f"Thread.print {arguments}", out)
    return out.getvalue()


def section(text: str, name: str) -> str:
    """What a dump says of one thread, without its header."""
    [found] = [part for part in text.split("\n\n") if part.startswith(f'"{name}" #')]
    return found.partition("\n")[2]


class Threads:
    def __init__(self) -> None:
        self.made: list[threading.Thread] = []
        self.release: list[Callable[[], object]] = []

    def start(self, target: Callable[..., object], *arguments: object, name: str | None = None) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
        self.made.append(thread)
        thread.start()
        return thread

    def end(self) -> None:
        for each in self.release:
            each()
        for thread in self.made:
            thread.join(PATIENCE)
            assert not thread.is_alive(), thread.name


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads()
    yield threads
    threads.end()


def until(name: str, *wanted: str, arguments: str = "") -> str:
    """The section of a thread, as soon as it shows what is wanted."""
    texts: list[str] = []

    def shown() -> bool:
        texts[:] = [dump(arguments)]
        return f'"{name}" #' in texts[0] and all(each in section(texts[0], name) for each in wanted)

    wait_for(shown, lambda: texts[0])
    return texts[0]


def shown(thing: object) -> str:
    kind = type(thing)
    return f"<0x{id(thing):016x}> (a {kind.__module__}.{kind.__qualname__})"


def test_the_layout(threads: Threads) -> None:
    over = threading.Event()
    threads.release.append(over.set)
    thread = threads.start(over.wait, name='odd "name"\n\udc80')
    text = until('odd "name"\\n\\udc80', "threading.Event")
    lines = text.split("\n")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", lines[0])
    assert re.fullmatch(r"Full thread dump CPython 64-Bit VM \(3\.\d+\.\d+ interpreted mode\):", lines[1])
    heads = {match["name"]: match for match in map(HEADER.fullmatch, lines) if match}
    head = heads['odd "name"\\n\\udc80']
    assert (head["daemon"], heads["MainThread"]["daemon"]) == ("daemon ", None)
    assert (int(head["tid"], 16), int(head["nid"], 16)) == (thread.ident, thread.native_id)
    assert float(heads["MainThread"]["cpu"]) > 0
    assert float(heads["MainThread"]["elapsed"]) >= float(head["elapsed"])
    own = section(text, "MainThread").split("\n")
    assert own[0] == "   java.lang.Thread.State: RUNNABLE"
    assert own[1].startswith(f"\tat {__name__}.dump(test_thread_print.py:"), "vmscope's own frames are left out"
    assert (
        section(text, 'odd "name"\\n\\udc80').split("\n")[0] == "   java.lang.Thread.State: WAITING (on object monitor)"
    )
    assert text.encode().endswith(b"\n")


def test_events_queues_semaphores_and_futures(threads: Threads) -> None:
    event, things, items = threading.Event(), queue.Queue[int](), _queue.SimpleQueue[int]()
    semaphore, future, barrier = threading.Semaphore(0), Future[int](), threading.Barrier(2)
    threads.release += [
        event.set,
        lambda: things.put(1),
        lambda: items.put(1),
        semaphore.release,
        lambda: future.set_result(1),
        barrier.abort,
    ]

    def meet() -> None:
        try:
            barrier.wait()
        except threading.BrokenBarrierError:
            return

    def get() -> int:
        return items.get()

    threads.start(event.wait, name="event")
    threads.start(things.get, name="queue")
    threads.start(get, name="simple")
    threads.start(semaphore.acquire, name="semaphore")
    threads.start(future.result, name="future")
    threads.start(meet, name="barrier")
    first = threads.start(event.wait, 1000, name="timed")
    threads.start(first.join, name="join")
    for name, what in (
        ("event", event),
        ("queue", things),
        ("semaphore", semaphore),
        ("future", future),
        ("barrier", barrier),
    ):
        text = until(name, f"- parking to wait for  {shown(what)}", "- waiting on <", "a threading.Condition)")
        assert "State: WAITING (on object monitor)" in section(text, name)
    text = until("simple", f"- parking to wait for  {shown(items)}")
    assert "State: WAITING (parking)" in section(text, "simple")
    text = until("timed", f"- parking to wait for  {shown(event)}")
    assert "State: TIMED_WAITING (on object monitor)" in section(text, "timed")
    text = until("join", f"- parking to wait for  {shown(first)}")
    assert "State: WAITING (parking)" in section(text, "join")
    assert "deadlock" not in text


class Bank:
    def __init__(self) -> None:
        self.first, self.second = threading.Lock(), threading.RLock()
        self.over = threading.Event()

    def hold(self) -> None:
        with self.first, self.second:
            self.over.wait(PATIENCE)

    def enter(self) -> None:
        with self.first:
            pass

    def call(self) -> None:
        self.second.acquire()
        self.second.release()

    def limited(self) -> None:
        self.second.acquire(timeout=PATIENCE)
        self.second.release()


def test_owners_and_waiters(threads: Threads) -> None:
    bank = Bank()
    threads.release.append(bank.over.set)
    threads.start(bank.hold, name="holder")
    until("holder", "threading.Event")
    for name in ("enter", "call", "limited"):
        threads.start(getattr(bank, name), name=name)
    first, second = shown(bank.first), shown(bank.second)
    held = '\n\t  held by "holder" #'
    text = until("enter", f"- waiting to lock {first}{held}")
    assert "State: BLOCKED (on object monitor)" in section(text, "enter")
    text = until("call", f"- waiting to lock {second}{held}")
    text = until("limited", "State: TIMED_WAITING (parking)", f"- waiting to lock {second}{held}")
    number = {match["name"]: match["number"] for match in map(HEADER.fullmatch, text.split("\n")) if match}
    calls = ", ".join(f'"{name}" #{number[name]}' for name in ("call", "limited"))
    text = until(
        "holder",
        f'- locked {first}\n\t  waited for by "enter" #{number["enter"]}\n',
        f"- locked {second}\n\t  waited for by {calls}\n",
    )
    assert "deadlock" not in text


def test_a_lock_whose_owner_cannot_be_told(threads: Threads) -> None:
    bank = Bank()
    bank.first.acquire()
    threads.release.append(bank.first.release)
    threads.start(bank.enter, name="enter")
    until("enter", f"- waiting to lock {shown(bank.first)}\n\t  owner unknown\n")


def test_a_lock_without_a_name(threads: Threads) -> None:
    """Of locks that somebody has, the kernel tells which one is waited for."""
    locks, over = {"a": threading.Lock(), "b": threading.Lock()}, threading.Event()

    def hold() -> None:
        with locks["a"], locks["b"]:
            over.wait(PATIENCE)

    def enter(name: str) -> None:
        with locks[name]:
            pass

    threads.release.append(over.set)
    threads.start(hold, name="holder")
    until("holder", "threading.Event")
    threads.start(enter, "b", name="enter")
    if native.lock_address(locks["b"]):
        until("enter", f'- waiting to lock {shown(locks["b"])}\n\t  held by "holder" #')
    else:
        until("enter", "- waiting to lock <no object reference available>\n")


def test_a_deep_stack(threads: Threads) -> None:
    over = threading.Event()

    def deep(times: int) -> None:
        if times:
            deep(times - 1)
        else:
            over.wait(PATIENCE)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * limit + 2000)
    try:
        thread = threads.start(deep, 1500, name="deep")
        text = until("deep", "threading.Event")
    finally:
        over.set()
        thread.join(PATIENCE)
        sys.setrecursionlimit(limit)
    lines = section(text, "deep").split("\n")
    assert lines[-1] == "\t..."
    assert len([line for line in lines if line.startswith("\tat ")]) == 1024


def test_locks_beyond_frames(threads: Threads) -> None:
    bank = Bank()

    def keep() -> None:
        bank.second.acquire()
        bank.over.wait(PATIENCE)
        bank.second.release()

    threads.release.append(bank.over.set)
    threads.start(keep, name="keeper")
    until("keeper", "threading.Event")
    threads.start(bank.call, name="call")
    text = until("call", f'{shown(bank.second)}\n\t  held by "keeper"', arguments="-l")
    after = text.partition('"keeper" #')[2].split("\n\n")[1]
    assert after.startswith(f'   Locked ownable synchronizers:\n\t- {shown(bank.second)}\n\t  waited for by "call" #')
    assert "Locked ownable" not in dump()


def test_a_condition_is_given_up_by_who_waits(threads: Threads) -> None:
    condition = threading.Condition()

    def wait() -> None:
        with condition:
            condition.wait(PATIENCE)

    def notify() -> None:
        with condition:
            condition.notify_all()

    threads.release.append(notify)
    threads.start(wait, name="wait")
    text = until("wait", f"- waiting on {shown(condition)}", f"- locked {shown(condition)}")
    with condition:  # nobody has it
        threads.start(notify, name="notify")
        text = until("notify", "- waiting to lock")
        assert 'held by "wait"' not in text
        lock = shown(vars(condition)["_lock"])
        assert f'- waiting to lock {lock}\n\t  held by "MainThread" #' in section(text, "notify")


def test_threads_that_come_and_go(threads: Threads) -> None:
    over = threading.Event()
    threads.release.append(over.set)

    def busy() -> None:
        while not over.is_set():
            thread = threading.Thread(target=sorted, args=([3, 1, 2],))
            thread.start()
            thread.join()

    for _ in range(3):
        threads.start(busy)
    for _ in range(30):
        for line in dump("-l -e").split("\n"):
            assert not line.startswith('"') or " nid=0x" in line or line.endswith('":')
    assert [each for each in threading.enumerate() if isinstance(each, threading._DummyThread)] == []
