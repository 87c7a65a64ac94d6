"""The dashboard and the rules of examples/monitoring name metrics that there are, and the rules do what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vmscope.export import own, standard
from vmscope.export.table import SUFFIXES

FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
_METRIC = re.compile(r"\b(?:process|python|jvm|vmscope)_\w+\b")


def known() -> set[str]:
    """Every name that a sample of the standard metrics can have."""
    families = [standard.PYTHON_INFO, standard.JVM_INFO, standard.VMS, *own.FAMILIES]
    families += [row.family for row in standard.ROWS] + [family for family, _ in standard.OTHERS.values()]
    return {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, ("",))}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return found


def expressions() -> list[str]:
    panels = dashboard()["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_the_dashboard_names_metrics_that_there_are() -> None:
    named = {name for expression in expressions() for name in _METRIC.findall(expression)}
    assert named - known() == set()
    assert len(named) > 30
    variables = [each["definition"] for each in dashboard()["templating"]["list"] if each["type"] == "query"]
    assert {name for text in variables for name in _METRIC.findall(text)} == {"vmscope_vms"}


def test_the_dashboard_is_laid_out_without_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + column, place["y"] + line) for column in range(place["w"]) for line in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_rules_name_metrics_that_there_are() -> None:
    text = (FOLDER / "alerts.yml").read_text()
    lines = [line.partition("expr:")[2] for line in text.splitlines() if "expr:" in line]
    assert {name for line in lines for name in _METRIC.findall(line)} - known() == set()
    tested = (FOLDER / "alerts_test.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)", text)
    assert [alert for alert in alerts if f"alertname: {alert}\n" not in tested] == [], "a test for each"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_the_rules_do_what_they_say() -> None:
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_the_expressions_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions())
    ]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", "rules.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
