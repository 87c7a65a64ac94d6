"""Unit tests start no process: what needs one belongs into tests/integration/modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

STARTS = frozenset(("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"))

started: list[str] | None = None  # while a unit test runs


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTS and started is not None:
        started.append(event)


sys.addaudithook(watch)  # for good: there is no way to take one back


@pytest.fixture(autouse=True)
def starts_no_process() -> Iterator[None]:
    global started
    started = []
    yield
    found, started = started, None
    assert found == [], "a unit test has started a process: move it to tests/integration/modules"
