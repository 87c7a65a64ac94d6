"""Each query of the dashboard and each alerting rule, asked of a real Prometheus that scrapes Python and Java services.

Grafana itself is in no package of Debian's, PyPI's or npm's.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartJVM, StartVMScope
from tests.integration.modules.test_monitoring import FOLDER, dashboard
from tests.integration.test_export_server import Start, start
from tests.prometheus import Prometheus, start_prometheus
from tests.wait import wait_for

__all__ = ["start"]

numbers = count()
PYTHON, JAVA = "python", "java"
ROWS = {"Services": {PYTHON, JAVA}, "Python": {PYTHON}, "Java": {JAVA}, "The exporter": set[str]()}
VARIABLES = {"$instance": ".*", "$user": ".*", "$__rate_interval": "5m"}
SHOP = """
import gc, os, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
gc.collect()
reads, writes = os.pipe()
if os.fork() == 0:
    os.close(writes)
    os.read(reads, 1)
    os._exit(0)
"""


def queries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The row, the panel, and the query."""
    row = ""
    for panel in dashboard()["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        for target in panel.get("targets", ()):
            yield row, panel["title"], target


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus: apt-get install prometheus")
def test_each_query_has_an_answer(
    tmp_path: Path, start: Start, start_vmscope: StartVMScope, start_jvm: StartJVM
) -> None:
    base = f"dashboard{os.getpid()}-{next(numbers)}"
    start_vmscope(f"-Dvmscope.service={base}-{PYTHON}", code=SHOP)
    start_jvm(f"-Dvmscope.service={base}-{JAVA}", "-XX:+UseG1GC", "-XX:+PerfDataSaveToFile")
    exporter = start(f"--vms={base}*")
    with ExitStack() as stack:
        server = start_prometheus(stack, tmp_path, exporter.port, rules=str(FOLDER / "alerts.yml"))
        for row, title, target in queries():
            wanted = {f"{base}-{kind}" for kind in ROWS[row]} or {"-"}
            wait_for(partial(is_answered, server, target, base, wanted), f"{row}, {title}: {target['expr']}")
        for variable in dashboard()["templating"]["list"]:
            if variable["type"] == "query":
                expression, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
                found = server.query(filled(expression, base))
                assert found, expression
                assert [labels for labels, _ in found if not labels[label]] == []
        rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) > 10
        wait_for(lambda: {each["health"] for each in server.get("rules")["groups"][0]["rules"]} == {"ok"}, "evaluated")
        assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []
    for totals in Path("/tmp").glob(f"hsperfdata_*/services/{base}-*"):
        totals.unlink()


def filled(expression: str, base: str) -> str:
    for name, text in {**VARIABLES, "$service": f"{base}-.*"}.items():
        expression = expression.replace(name, text)
    assert "$" not in expression
    return expression


def is_answered(server: Prometheus, target: dict[str, Any], base: str, wanted: set[str]) -> bool:
    return wanted <= set(answer(server, target, base))


def answer(server: Prometheus, target: dict[str, Any], base: str) -> dict[str, float]:
    """The values by the services, or `-`: each has the labels that the legend names."""
    found = server.query(filled(target["expr"], base))
    named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert all(named <= set(labels) for labels, _ in found), target["legendFormat"]
    assert all(math.isfinite(value) and value >= 0 for _, value in found), found
    return {labels.get("service", "-"): value for labels, value in found}
