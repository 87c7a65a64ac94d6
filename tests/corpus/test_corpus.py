"""The corpus is what it says: sound, readable for the JDK, free of its maker's machine, and made by its scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import corpus
from tests.corpus.build import walk
from tests.corpus.handmade import handmade
from tests.corpus.make_regions import HERE, origin
from tests.oracle.jvmstat import jdks, read_all, release

REAL = [name for name in corpus.names() if not name.startswith("made-")]


def test_the_real_ones_cover_releases_and_collectors() -> None:
    assert {name.split(".")[0] for name in REAL} >= {"11", "17", "21", "25"}
    for collector in ("serial", "parallel", "g1", "z", "shenandoah", "overflow", "texts"):
        assert sum(name.endswith("-" + collector) for name in REAL) >= 4


def test_the_handmade_are_what_their_script_makes() -> None:
    assert handmade() == {name: data for name, data in corpus.regions().items() if name.startswith("made-")}


def test_the_origin_page_is_current() -> None:
    assert (HERE / "ORIGIN.md").read_text() == origin()


@pytest.mark.parametrize("name", REAL)
def test_nothing_of_the_machine_is_in_the_data(name: str) -> None:
    data = corpus.load(name)
    assert data[:8] == b"\xca\xfe\xc0\xc0\x01\x02\x00\x01"
    paths = set(re.findall(rb"(?<![\w.>])(?:/[\w.-]+){2,}", data))
    neutral = re.compile(rb"/opt/jdk-[\d.]+(/lib)?|/usr/(lib|java)[/\w-]*|/lib/x86_64-linux-gnu")
    assert all(neutral.fullmatch(path) for path in paths), paths
    assert b"java.home" not in data or any(path.startswith(b"/opt/jdk-") for path in paths)


def test_every_region_can_be_read_by_every_jdk(tmp_path: Path) -> None:
    if not jdks():
        pytest.skip("no JDK with javac and jps")
    paths = corpus.write(tmp_path)
    for jdk in jdks():
        results = read_all(paths.values(), jdk)
        for name, path in paths.items():
            result = results[str(path)]
            state = "unready" if name == "made-not-accessible" else "readable"
            assert result.state == state, (release(jdk), name, result)
            if result.readable and name != "made-repeated-names":
                assert len(result.counters) == sum(1 for _ in walk(corpus.load(name)))


def test_the_turned_region_says_the_same(tmp_path: Path) -> None:
    if not jdks():
        pytest.skip("no JDK with javac and jps")
    paths = corpus.write(tmp_path)
    results = read_all(paths.values())
    assert results[str(paths["made-big-endian"])].entries == results[str(paths["17.0.15-debian-serial"])].entries
    little, big = (results[str(paths[f"made-v1-{order}-endian"])].entries for order in ("little", "big"))
    assert little == big
    assert len(little) == 56
