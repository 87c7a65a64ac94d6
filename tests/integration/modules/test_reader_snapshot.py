"""Reading a region that its owner goes on writing: nothing half, nothing torn, nothing that nobody wrote.

What needs processes of its own.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import programs
from tests.published import image, region
from tests.unit.test_reader_snapshot import Open, Writer, number
from tests.unit.test_reader_snapshot import path as path
from tests.unit.test_reader_snapshot import read as read
from vmscope.errors import FormatError
from vmscope.reader.snapshot import RETRIES


def test_half_an_entry_is_waited_for(read: Open, path: Path) -> None:
    """In HotSpot's order the prologue comes first: the entry is there a moment later."""
    writer = Writer(path)
    writer.add(number("one", 1))
    second = number("two", 2)
    start = writer.end
    writer.end += len(second)
    writer.count += 1
    writer.publish()
    code = (
        "import os, sys, time\n"
        f"fd = os.open({str(path)!r}, os.O_RDWR)\n"
        "print('ready', flush=True); sys.stdin.readline(); time.sleep(0.005)\n"  # the half is read
        f"os.pwrite(fd, {second!r}, {start})\n"
        f"os.pwrite(fd, {struct.pack('=q', time.monotonic_ns())!r}, 16)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        child.stdin.write(b"\n")
        child.stdin.flush()
        reader = read(path)
        first = reader.snapshot()
        assert first.values in ({"one": 1}, {"one": 1, "two": 2})
        child.wait()
    assert reader.values() == {"one": 1, "two": 2}
    assert 0 < first.retries <= RETRIES


def test_waiting_for_an_owner_that_is_starting(read: Open, path: Path) -> None:
    path.write_bytes(region({"one": 1}, accessible=0))
    reader = read(path)
    begin = time.monotonic()
    assert not reader.wait_accessible(0)
    assert not reader.wait_accessible(0.1)
    assert 0.1 <= time.monotonic() - begin < 5
    taken = reader.snapshot()  # nobody waits who did not ask for it
    assert (taken.values, taken.accessible) == ({"one": 1}, False)
    # The reader waits by then.
    code = f"import os, time; time.sleep(0.1); os.pwrite(os.open({str(path)!r}, os.O_RDWR), b'\\1', 7)"
    with subprocess.Popen([sys.executable, "-c", code]):
        assert reader.wait_accessible(20)
    assert reader.snapshot().accessible


RESTLESS = programs.source("reader_snapshot/restless")


def right(name: str, value: int | str, order: str) -> bool:
    position = int(name.partition(".")[2])
    if position % 10 == 0:
        return value == name * 2 or (order == "HotSpot" and value == "")
    return value == (position << 32) + position or (order == "HotSpot" and value == 0)


@pytest.mark.parametrize("order", ["vmscope", "HotSpot"])
def test_a_writer_that_adds_entries_without_pause(read: Open, path: Path, order: str) -> None:
    """Each read is a beginning of what was written, all of it right, after a bounded number of copies."""
    path.write_bytes(image([], size=2 << 20))
    command = [sys.executable, "-c", RESTLESS, str(path), order]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            reader, looks, seen, refused = read(path), 0, 0, 0
            while child.poll() is None:
                fresh = read(path) if looks % 4 == 0 else reader
                looks += 1
                try:
                    taken = fresh.snapshot()
                except FormatError:
                    assert order == "HotSpot"  # in its order there may be half an entry in every copy
                    refused += 1
                    continue
                wrong = {name: value for name, value in taken.values.items() if not right(name, value, order)}
                assert not wrong
                numbers = sorted(int(name.partition(".")[2]) for name in taken.values)
                assert numbers == list(range(1, len(numbers) + 1))  # a beginning, without a hole
                if fresh is reader:
                    assert len(numbers) >= seen
                    seen = len(numbers)
                assert taken.retries <= RETRIES
            written = int(child.stdout.readline())
            assert looks >= 3
            assert len(reader.values()) == len(read(path).values()) == written
            assert reader.snapshot().settled
            assert refused <= looks * 3 / 4  # 0.1 to 0.6 of them, by how busy the machine is
        finally:
            child.kill()


TEARING = """
import os, sys
fd, offset, length = os.open(sys.argv[1], os.O_RDWR), int(sys.argv[2]), int(sys.argv[3])
texts = [bytes([65 + i]) * length for i in range(2)]
print("ready", flush=True)
while True:
    for text in texts:
        for start in range(0, length, 8):
            os.pwrite(fd, text[start:start + 8], offset + start)
"""


def test_a_number_is_never_torn_and_a_quiet_text_is_whole(read: Open, path: Path) -> None:
    """While one text is rewritten word by word without pause, the numbers and the other text stay right."""
    path.write_bytes(region({"a": -1, "busy": "x" * 64, "quiet": "q" * 64, "b": 2**62 + 5}))
    reader = read(path)
    reader.snapshot()
    at = {row[1]: row[7] for row in reader.structure().rows}
    start = (at["busy"] + 7) & ~7
    command = [sys.executable, "-c", TEARING, str(path), str(start), "48"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            end = time.monotonic() + 1
            while time.monotonic() < end:
                values = reader.values()
                assert (values["a"], values["b"], values["quiet"]) == (-1, 2**62 + 5, "q" * 64)
        finally:
            child.kill()
