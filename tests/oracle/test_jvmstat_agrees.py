"""Our decoder and the JDK's own reader see the same in every region: sound, edge of the format, or damaged.

Same regions readable, same kind of error in the others, and where both read, the same names, types, units,
variabilities, vector lengths, flags and values; for the extension and for its Python twin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from pathlib import Path
from types import ModuleType

import pytest

from tests import corpus
from tests.fuzz.mutate import mutants
from tests.oracle.cases import CASES
from tests.oracle.jvmstat import MADE_UP, Entry, Result, jdks, read_all, release
from vmscope import native
from vmscope.errors import DataError, EntryTypeError, FormatError, MagicError, StructureError, VersionError
from vmscope.native.region import walk
from vmscope.wire import codes, decode

SEED, COUNT = 2026, 3000

# The reader's own exceptions; what Java itself throws on a bad offset is a structure error to us.
KINDS: dict[str, type[FormatError]] = {
    "MonitorVersionException": MagicError,
    "MonitorStructureException": StructureError,
    "MonitorDataException": DataError,
    "MonitorTypeException": EntryTypeError,
}
UNITS = {"None": codes.Units.NONE, **{units.name.capitalize(): units for units in codes.Units}}


class Answers:
    """Regions by a name for people, and what one JDK found in each."""

    def __init__(self, jdk: Path, directory: Path) -> None:
        self.release = release(jdk)
        self.regions = {
            **corpus.regions(),
            **{f"{case.group}: {case.name} {case.release}": case.data for case in CASES},
            **{f"mutant({SEED}, {number})": data for number, data in enumerate(mutants(SEED, COUNT))},
        }
        paths = {name: directory / str(number) for number, name in enumerate(self.regions)}
        for name, path in paths.items():
            path.write_bytes(self.regions[name])
        results = read_all(paths.values(), jdk)
        self.results = {name: results[str(path)] for name, path in paths.items()}
        for path in paths.values():
            path.unlink()

    def in_state(self, state: str) -> list[tuple[str, bytes, Result]]:
        return [(name, self.regions[name], result) for name, result in self.results.items() if result.state == state]


@pytest.fixture(scope="module", params=jdks(), ids=lambda home: f"jdk{release(home)}")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(request.param, tmp_path_factory.mktemp("regions"))


@pytest.fixture(params=["c", "python"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        _use(walk, monkeypatch)
    elif native.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built")


def _use(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scan", "read", "decode_text"):
        monkeypatch.setattr(native, name, getattr(module, name))


def test_the_regions_are_enough_to_mean_something(answers: Answers) -> None:
    states = Counter(result.state for result in answers.results.values())
    assert sum(states.values()) > COUNT + 400
    assert states["readable"] > 1500
    assert states["unreadable"] > 1000


def test_what_the_jdk_reads_we_read_the_same(answers: Answers) -> None:
    for name, data, result in answers.in_state("readable"):
        region = decode.decode(data)
        assert region.prologue.accessible, name
        values = region.values(data)
        entries = {entry.name: entry for entry in region.entries}  # the last of a name counts, as for the JDK
        assert decode.values(data) == values, name
        assert entries.keys() == values.keys(), name
        assert values.keys() == _names(result, values.keys()), name
        for key, theirs in result.entries.items():
            if key in entries:
                assert _shown(entries[key], values[key]) == theirs._replace(raw=b""), name
        _same_prologue(region.prologue, result, data, set(entries))


def _names(result: Result, ours: Container[str]) -> set[str]:
    """The JDK's names without those it made up itself; a region may have an entry of such a name."""
    return {name for name in result.entries if name not in MADE_UP or name in ours}


def _shown(entry: decode.Entry, value: int | str) -> Entry:
    units = next(name for name, code in UNITS.items() if code == entry.units)
    variability = codes.Variability(entry.variability).name.capitalize()
    return Entry(entry.name, chr(entry.data_type), units, variability, entry.vector_length, entry.supported, value, b"")


def _same_prologue(prologue: decode.Prologue, result: Result, data: bytes, named: set[str]) -> None:
    fields = {
        "majorVersion": prologue.major,
        "minorVersion": prologue.minor,
        "size": len(data),
        "used": prologue.used,
        "overflow": prologue.overflow,
        "timestamp": prologue.mod_time_stamp,
    }
    for field, value in fields.items():
        if (name := f"sun.perfdata.{field}") not in named:
            assert result.entries[name].value == value


def test_what_the_jdk_refuses_we_refuse_for_the_same_reason(answers: Answers) -> None:
    for name, data, result in answers.in_state("unreadable"):
        if result.exception in ("NullPointerException", "ClassCastException"):
            # JDK 17 fails on a version 1.0 region that is sound but not as a 1.4 VM would have written it.
            assert data[5] == 1, name
            decode.decode(data)
            continue
        expected = KINDS.get(result.exception, StructureError)
        if "PerfDataBuffer" in result.message:
            expected = VersionError
        if data[:4] != b"\xca\xfe\xc0\xc0"[: len(data)]:
            expected = MagicError  # which the JDK looks at after the version
        with pytest.raises(expected) as caught:
            decode.decode(data)
        assert type(caught.value) is expected, name
        with pytest.raises(expected):
            decode.values(data)


def test_what_the_jdk_waits_for_says_so(answers: Answers) -> None:
    unready = answers.in_state("unready")
    assert len(unready) > 10
    for name, data, _ in unready:
        prologue = decode.prologue(data)
        assert prologue.major == 1 or prologue.accessible == 0, name
        if prologue.major == 1:  # a counter is missing, and the region itself is sound
            needed = {17: "hotspot.rt.hrt.ticks", 25: "hotspot.rt.hrt.frequency"}
            values = decode.decode(data).values(data)
            assert values.get(needed.get(answers.release, ""), 0) == 0, name


def test_few_regions_hang_on_the_heap_of_the_jvm(answers: Answers) -> None:
    assert len(answers.in_state("heap")) < len(answers.results) / 100
