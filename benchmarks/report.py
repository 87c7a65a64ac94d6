"""The results as a file, as a table for people, and as a page of the documentation."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Figure, Outcome, Row, Series
from benchmarks.world import ROOT, jdk
from vmscope import native

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
BEGIN = "<!-- begin generated -->\n"
END = "<!-- end generated -->\n"

HEADING = ("what", "measured", "at most", "", "CPU time", "median (least to greatest)", "of the other")


def machine() -> dict[str, Any]:
    """What the figures were taken on, without any name or path of it."""
    release = dict(
        line.rstrip().split("=", 1) for line in (jdk().home / "release").read_text("utf-8").splitlines() if "=" in line
    )
    return {
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release().split("-")[0],
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "jdk": release.get("JAVA_VERSION", "").strip('"'),
        "implementation": native.IMPLEMENTATION,
        "load": round(os.getloadavg()[0], 2),
    }


def results_file(version: str) -> Path:
    return RESULTS / f"cpython-{version}.json"


def save(found_on: dict[str, Any], rows: list[Row]) -> Path:
    path = results_file(".".join(found_on["python"].split(".")[:2]))
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": found_on, "rows": [_plain(row) for row in rows]}, indent=1))
    return path


def _plain(figure: Row) -> dict[str, Any]:
    if isinstance(figure, Outcome):
        return vars(figure)
    series = {"subject": figure.subject, "base": figure.base}
    return {
        "name": figure.name,
        "limit": figure.limit,
        "quantile": figure.quantile,
        "value": figure.value,
        "passed": figure.passed,
        **{role: None if found is None else vars(found) for role, found in series.items()},
    }


def load(version: str) -> tuple[dict[str, Any], list[Row]]:
    data = json.loads(results_file(version).read_text())
    return data["machine"], [_row(row) for row in data["rows"]]


def _row(plain: dict[str, Any]) -> Row:
    if "results" in plain:
        return Outcome(**plain)
    base = plain["base"] and Series(**plain["base"])
    return Figure(plain["name"], Series(**plain["subject"]), base, plain["limit"], plain["quantile"])


# -- tables ---------------------------------------------------------------------------------------


def row(figure: Figure) -> tuple[str, ...]:
    base = figure.base
    form = FORMS[figure.subject.unit]
    shown = form(figure.value) if base is None else f"{figure.value:.3g}"
    limit = "" if figure.limit is None else form(figure.limit) if base is None else f"{figure.limit:g}"
    verdict = {None: "", True: "yes", False: "NO"}[figure.passed]
    cpu = "" if figure.cpu_ratio is None else f"{figure.cpu_ratio:.3g}"
    return figure.name, shown, limit, verdict, cpu, spread(figure.subject), "" if base is None else spread(base)


def spread(series: Series) -> str:
    form = FORMS[series.unit]
    return f"{form(median(series.values))} ({form(min(series.values))} to {form(max(series.values))})"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _share(percent: float) -> str:
    return f"{percent:.2g} %"


def _ratio(ratio: float) -> str:
    return f"{ratio:.4g}"


FORMS = {"s": _time, "B": _size, "%": _share, "x": _ratio}


def describe(found_on: dict[str, Any]) -> str:
    return (
        f"CPython {found_on['python']}, JDK {found_on['jdk']}, Linux {found_on['kernel']} on "
        f"{found_on['architecture']}, {found_on['cores']} cores, load average {found_on['load']} at the start"
    )


def tables(rows: list[Row]) -> list[list[tuple[str, ...]]]:
    """The figures, and what became of attempts; a heading and the lines below it, of each that there is."""
    figures = [row(found) for found in rows if isinstance(found, Figure)]
    outcomes = [found for found in rows if isinstance(found, Outcome)]
    whose = list(dict.fromkeys(name for found in outcomes for name in found.results))
    attempts = [(found.name, *(found.results.get(name, "") for name in whose)) for found in outcomes]
    return [[heading, *lines] for heading, lines in ((HEADING, figures), (("what", *whose), attempts)) if lines]


def text(found_on: dict[str, Any], rows: list[Row]) -> str:
    shown = [describe(found_on), ""]
    for table in tables(rows):
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        shown += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        shown.append("")
    return "\n".join(shown)


def markdown(found_on: dict[str, Any], rows: list[Row]) -> str:
    shown = [f"## CPython {'.'.join(found_on['python'].split('.')[:2])}\n\n{describe(found_on)}.\n"]
    for heading, *lines in tables(rows):
        table = [heading, ("---",) * len(heading), *lines]
        shown.append("".join(f"| {' | '.join(line)} |\n" for line in table))
    return "\n".join(shown)


def write_page(versions: list[str]) -> None:
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    tables = "\n".join(markdown(*load(version)) for version in versions)
    PAGE.write_text(f"{head}{BEGIN}\n{tables}\n{END}{tail}", encoding="utf-8")
