"""GC.class_histogram and GC.heap_info, as their clients see them."""

from __future__ import annotations

import gc
import re

import pytest

from tests.diagnostics import run
from vmscope.commands import class_histogram
from vmscope.errors import CommandError


class Cyclic:
    def __init__(self) -> None:
        self.me = self


def instances(text: str, name: str) -> int:
    found = re.search(rf"^ *\d+: +(\d+) +\d+  {re.escape(name)} \(", text, re.MULTILINE)
    return int(found[1]) if found else 0


def test_jmap_s_columns() -> None:
    lines = run("GC.class_histogram").splitlines()
    assert lines[0] == " num     #instances         #bytes  class name (module)"
    assert lines[1] == "-" * len(lines[0])
    rows = [re.fullmatch(r"( *\d+):([ \d]{14})([ \d]{15})  (\S.*?)(?: \((\S.*)\))?", line) for line in lines[2:-1]]
    assert [int(row[1]) for row in rows if row] == list(range(1, len(rows) + 1))
    sizes = [int(row[3]) for row in rows if row]
    assert sizes == sorted(sizes, reverse=True)
    total = re.fullmatch(r"Total([ \d]{14})([ \d]{15})", lines[-1])
    assert total, lines[-1]
    assert int(total[2]) == sum(sizes)
    assert int(total[1]) == sum(int(row[2]) for row in rows if row)
    names = {(row[4], row[5]) for row in rows if row}
    assert ("str", "builtins") in names
    assert ("re.Pattern", "re") in names


def test_unreachable_objects_count_with_all_alone() -> None:
    name = f"{__name__}.Cyclic"
    was = gc.isenabled()
    gc.disable()
    try:
        for _ in range(10):
            Cyclic()
        assert instances(run("GC.class_histogram -all"), name) == 10
        assert instances(run("GC.class_histogram -parallel=2"), name) == 0
    finally:
        if was:
            gc.enable()


def test_names_stay_on_their_line() -> None:
    odd = type("a\nb", (), {"__module__": "c\x1b"})()
    found = [line for line in class_histogram.histogram().splitlines() if "a\\nb" in line]
    assert [line.split("  ")[-1] for line in found] == ["c\\x1b.a\\nb (c\\x1b)"]
    del odd


def test_heap_info() -> None:
    text = run("GC.heap_info")
    collector = re.search(r"^ collector +(\w+), (\d+) uncollectable$", text, re.MULTILINE)
    assert collector, text
    assert collector[1] == ("enabled" if gc.isenabled() else "disabled")
    generations = re.findall(r"^  generation (\d) count \d+, threshold (\d+), (\d+) collections", text, re.MULTILINE)
    assert [int(row[1]) for row in generations] == list(gc.get_threshold())
    for heap in re.findall(r"^ \w+ heap +total (\d+)K, used (\d+)K$", text, re.MULTILINE):
        assert int(heap[0]) >= int(heap[1]) > 0
    assert re.search(r"^ process +resident [1-9]\d*K, peak [1-9]\d*K, virtual [1-9]\d*K$", text, re.MULTILINE)


@pytest.mark.parametrize("line", ["GC.class_histogram -live", "GC.heap_info -all"])
def test_what_they_do_not_take(line: str) -> None:
    with pytest.raises(CommandError):
        run(line)
