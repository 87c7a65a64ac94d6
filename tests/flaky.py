"""`@pytest.mark.flaky(reason="...")`: a test that races for a known reason. When it fails it is run once more; with a
`condition`, only where that is true.

Each re-run is counted in pytest's last line ("1 rerun") and shown before it with the reason and the failure. Why not
pytest-rerunfailures: it knows no reason, opens a port under xdist, and can re-run what is not marked.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

RERUN = "rerun"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "flaky(reason, condition=True): races for this reason; when it fails it is run once more"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers("flaky"):
            if marker.args or set(marker.kwargs) - {"condition"} != {"reason"}:
                raise pytest.UsageError(f"{item.nodeid}: mark it as flaky(reason='...')")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    marker = item.get_closest_marker("flaky")
    if marker is None or not marker.kwargs.get("condition", True):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if failed := [report for report in reports if report.failed]:
        for report in failed:
            report.outcome = RERUN  # type: ignore[assignment]
            report.user_properties.append((RERUN, marker.kwargs["reason"]))
        reports = [*failed, *runtestprotocol(item, log=False, nextitem=nextitem)]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (RERUN, "R", "RERUN") if report.outcome == RERUN else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports(RERUN)
    if not reports:
        return
    terminalreporter.section("run once more")
    for report in reports:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = str(crash.message if crash else report.longrepr).partition("\n")[0]
        reason = dict(report.user_properties)[RERUN]
        terminalreporter.write_line(f"RERUN {report.nodeid}: {reason}; it failed with: {said}")
