"""native.Mapping, the extension's and the twin's: the same results, and no crash when the file shrinks.

What needs processes of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.unit.test_reader_mapping import PAGE, extension
from tests.unit.test_reader_mapping import make as make
from tests.unit.test_reader_mapping import mapping_type as mapping_type
from tests.unit.test_reader_mapping import words as words

ORDERED = programs.source("reader_mapping/ordered")


@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="the writer writes at offsets")
def test_read_in_order_reads_a_later_range_later(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """A writer counts at the beginning and then at the end: who reads the end first sees no less at the beginning."""
    path = tmp_path / "counting"
    path.write_bytes(bytes(4 * PAGE))
    mapping = make(path)
    far = (4 * PAGE - 8, 8)
    with subprocess.Popen([sys.executable, "-c", ORDERED, str(path)], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            seen = 0
            while seen < 20_000:
                before, begin, after = (
                    int.from_bytes(part, sys.byteorder) for part in mapping.read_in_order(far, (0, 8), far)
                )
                assert before <= begin <= after + 1
                seen = begin
        finally:
            child.kill()


FOREIGN_FAULT = programs.source("reader_mapping/foreign_fault")


@pytest.mark.parametrize("call", ["read", "read_in_order"])
@pytest.mark.parametrize("handler", ["default", "faulthandler"])
def test_a_fault_that_is_not_ours_goes_to_whom_it_belongs(tmp_path: Path, handler: str, call: str) -> None:
    extension()
    path = tmp_path / "big"
    path.write_bytes(bytes(8 << 20))
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN_FAULT, str(path), handler, call], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGBUS, done
    assert done.stdout == "touching\n"
    assert ("Fatal Python error: Bus error" in done.stderr) == (handler == "faulthandler")


HANDLERS = programs.source("reader_mapping/handlers")


def test_no_handler_is_left_behind(tmp_path: Path) -> None:
    extension()
    path = tmp_path / "two"
    path.write_bytes(bytes(8192))
    done = subprocess.run([sys.executable, "-c", HANDLERS, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n" * 4, "")


SENT_SIGNAL = programs.source("reader_mapping/sent_signal")


def test_a_sent_signal_reaches_the_handler_that_was_there(tmp_path: Path) -> None:
    extension()
    path = tmp_path / "big"
    path.write_bytes(bytes(8 << 20))
    done = subprocess.run([sys.executable, "-c", SENT_SIGNAL, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "guarded 20\n", "")


def test_the_guard_works_in_a_forked_child(make: Callable[[Path], Any], words: tuple[Path, list[int]]) -> None:
    mapping = make(words[0])
    os.truncate(words[0], PAGE)
    pid = os.fork()
    if pid == 0:
        try:
            mapping.read(PAGE, 8)
        except OSError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
