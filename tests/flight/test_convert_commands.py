"""`vmscope convert` and `vmscope diff`, as people run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flight.jfr_writer import Writer
from tests.support import PATIENCE
from vmscope.flight.convert import recording


def vmscope(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vmscope", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=cwd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With two recordings, of a service before and after a change."""
    for name, price in (("before", 6), ("after", 16)):
        writer = Writer()
        for number in range(price):
            writer.sample("jdk.ExecutionSample", f"worker-{number % 2}", "shop/Orders.run", "shop/Orders.price")
        for _ in range(4):
            writer.sample("jdk.ExecutionSample", "worker-0", "shop/Orders.run")
        (tmp_path / f"{name}.jfr").write_bytes(writer.chunk())
    return tmp_path


def test_without_a_file_it_shows_the_functions(folder: Path) -> None:
    run = vmscope("convert", "before.jfr", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "cpu: 10 samples of 2 threads in 0.0 s\n\n"
        "     SELF  SELF%  TOTAL%  FUNCTION\n"
        "6 samples  60.0%   60.0%  shop.Orders.price\n"
        "4 samples  40.0%  100.0%  shop.Orders.run\n"
    )


@pytest.mark.parametrize("end", ["html", "collapsed", "speedscope.json", "pb.gz"])
def test_the_ending_picks_the_format(folder: Path, end: str) -> None:
    run = vmscope("convert", "--thread=worker-1", "before.jfr", "after.jfr", f"shop.{end}", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"shop.{end}: cpu: 11 samples of 1 thread in 0.0 s\n"
    assert (folder / f"shop.{end}").stat().st_size


def test_recordings_are_joined_as_they_are(folder: Path) -> None:
    run = vmscope("convert", "before.jfr", "after.jfr", "both.jfr", cwd=folder)
    assert run.returncode == 0
    assert (folder / "both.jfr").read_bytes() == b"".join(
        (folder / name).read_bytes() for name in ("before.jfr", "after.jfr")
    )
    assert len(list(recording.events(str(folder / "both.jfr")))) == 30


def test_diff_shows_what_has_changed(folder: Path) -> None:
    run = vmscope("diff", "before.jfr", "after.jfr", "-o", "change.html", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "cpu: 10 samples of 2 threads in 0.0 s\n"
        "cpu: 20 samples of 2 threads in 0.0 s\n\n"
        "CHANGE  BEFORE  AFTER  TOTAL CHANGE  FUNCTION\n"
        " +20.0   60.0%  80.0%         +20.0  shop.Orders.price\n"
        " -20.0   40.0%  20.0%          +0.0  shop.Orders.run\n\n"
        "change.html: 10 samples before, 20 samples after\n"
    )
    assert (folder / "change.html").read_bytes().startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["convert"], 2, "convert needs a recording"),
        (["convert", "before.jfr", "shop.txt"], 2, "cannot tell what 'shop.txt' is to be"),
        (["convert", "--mode=disk", "before.jfr"], 2, "does not take --mode=disk: use cpu, wall,"),
        (["convert", "--from=soon", "before.jfr"], 2, "does not take 'soon' as a time"),
        (["convert", "--mode=alloc", "before.jfr"], 1, "before.jfr has no events for a profile of the mode alloc"),
        (["convert", "missing.jfr"], 1, "No such file or directory: 'missing.jfr'"),
        (["convert", "text.jfr", "a.html"], 1, "text.jfr has at byte 0 no flight recording"),
        (["convert", "cut.jfr", "a.jfr"], 1, "cut.jfr has at byte 0 a chunk of"),
        (["convert", "before.jfr", "after.jfr", "before.jfr"], 2, "cannot write to 'before.jfr', which it reads"),
        (["convert", "--mode=cpu", "before.jfr", "a.jfr"], 2, "--mode needs another format"),
        (["diff", "before.jfr"], 2, "diff needs two recordings"),
        (["diff", "before.jfr", "after.jfr", "-o", "a.jfr"], 2, "its name ends in one of .html"),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, arguments: list[str], status: int, said: str) -> None:
    (folder / "text.jfr").write_text("not one " * 20)
    (folder / "cut.jfr").write_bytes((folder / "before.jfr").read_bytes()[:-1])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run = vmscope(*arguments, cwd=folder)
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    assert (run.returncode, run.stdout) == (status, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_names_of_others_do_not_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    writer = Writer()
    writer.sample("jdk.ExecutionSample", "main", "shop.\x1b[2Jevil\u202e")
    (tmp_path / "a.jfr").write_bytes(writer.chunk())
    for command in (["convert", "a.jfr"], ["diff", "a.jfr", "a.jfr"]):
        run = vmscope(*command, cwd=tmp_path)
        assert "shop.\\x1b[2Jevil\\u202e" in run.stdout
        assert "\x1b" not in run.stdout
