"""The arithmetic of the benchmarks, and what they make of it; the figures themselves are `make bench`'s."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.measure import Figure, Outcome, Series, in_turns

MACHINE = {
    "cores": 2,
    "kernel": "6.1",
    "architecture": "x86_64",
    "python": "3.12.1",
    "jdk": "17.0.15",
    "implementation": "c",
    "load": 0.5,
}


def figure(*, limit: float | None = 2.0) -> Figure:
    subject = Series("subject", values=[0.3, 0.1, 0.2], cpu=[0.03, 0.03, 0.03])
    base = Series("base", values=[0.05, 0.4, 0.1], cpu=[0.01, 0.02, 0.03])
    return Figure("a thing", subject, base, limit)


def test_a_figure_is_the_ratio_of_the_medians() -> None:
    assert figure().value == pytest.approx(2.0)
    assert figure().cpu_ratio == pytest.approx(1.5)
    assert [figure(limit=limit).passed for limit in (2.1, 1.9, None)] == [True, False, None]


def test_memory_has_no_base_and_shows_the_most() -> None:
    memory = Figure("memory", Series("ps", "B", [30e6, 41e6]), None, 40e6)
    assert (memory.value, memory.passed) == (41e6, False)
    assert report.row(memory) == ("memory", "41.0 MB", "40.0 MB", "NO", "", "35.5 MB (30.0 MB to 41.0 MB)", "")


def test_without_a_base_a_quantile_counts() -> None:
    values = [3e-6 * n for n in range(101)]
    figures = [Figure("visit", Series("visit", values=values), None, 1e-4, quantile) for quantile in (0.5, 0.99, 1)]
    assert [figure.value for figure in figures] == pytest.approx([150e-6, 297e-6, 300e-6])
    assert report.row(figures[0])[1:4] == ("150 us", "100 us", "NO")
    ratios = Figure("ratios", Series("ratios", "x", [0.99, 1.002, 1.1]), None, 1.01, 0.5)
    assert report.row(ratios)[1:6] == ("1.002", "1.01", "yes", "", "1.002 (0.99 to 1.1)")
    idle = Figure("idle", Series("idle", "%", [0.0125]), None, 0.2)
    assert report.row(idle)[1:4] == ("0.013 %", "0.2 %", "yes")


def test_cases_take_turns_and_the_first_rounds_do_not_count() -> None:
    calls: list[str] = []

    def case(name: str, seconds: float) -> tuple[float, float]:
        calls.append(name)
        return seconds * len(calls), 0.0

    found = in_turns({"a": lambda: case("a", 1.0), "b": lambda: case("b", 1.0)}, rounds=2, warm_up=1)
    assert calls == ["a", "b"] * 3
    assert (found["a"].values, found["b"].values) == ([3.0, 5.0], [4.0, 6.0])


def test_results_are_kept_and_become_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# By hand\n\n{report.BEGIN}old\n{report.END}and after\n")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "PAGE", page)
    attempts = [
        Outcome("1 signal", {"vmscope": "exact", "other": "hangs"}, True),
        Outcome("2", {"vmscope": "lost"}, False),
    ]
    report.save(MACHINE, [figure(), *attempts])
    found_on, (kept, *rest) = report.load("3.12")
    assert found_on == MACHINE
    assert isinstance(kept, Figure)
    assert vars(kept.subject) == vars(figure().subject)
    assert [vars(row) for row in rest] == [vars(attempt) for attempt in attempts]
    report.write_page(["3.12"])
    text = page.read_text()
    assert text.startswith("# By hand\n\n")
    assert text.endswith("and after\n")
    assert "old" not in text
    assert "| a thing | 2 | 2 | yes | 1.5 | 200 ms (100 ms to 300 ms) | 100 ms (50 ms to 400 ms) |\n" in text
    assert "| what | vmscope | other |\n| --- | --- | --- |\n| 1 signal | exact | hangs |\n| 2 | lost |  |\n" in text
    assert "CPython 3.12.1, JDK 17.0.15, Linux 6.1 on x86_64, 2 cores" in text


def test_the_page_names_no_machine() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    assert report.BEGIN in text
    assert report.END in text
    assert str(report.RESULTS.parent) not in text
