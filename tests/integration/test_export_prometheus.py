"""A real Prometheus scrapes `vmscope export`, while gunicorn replaces its workers: no reset, and nothing is lost.

VMSCOPE_LOAD sets for how many seconds requests are sent.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.debugger import free_port
from tests.integration.test_export import APP, COMMAND
from tests.wait import wait_for as eventually

SECONDS = float(os.environ.get("VMSCOPE_LOAD", "8"))
CONFIG = """\
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: vmscope
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/query?"

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        url = self._url + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return [(row["metric"], float(row["value"][1])) for row in found["data"]["result"]]

    def one(self, expression: str) -> float:
        ((_, value),) = self.query(expression)
        return value


def send(port: int, seconds: float) -> int:
    """How many requests were answered. One that a worker does not take any more is sent again."""
    end, answered = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/buy")
        assert connection.getresponse().read() == b"hello"
        connection.close()
        answered += 1
    return answered


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus: apt-get install prometheus")
def test_no_request_is_lost_and_no_counter_falls(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is in the dev group")
    (tmp_path / "app.py").write_text(APP)
    service = f"prometheus{os.getpid()}"
    shop, exporter, prometheus = free_port(), free_port(), free_port()
    (tmp_path / "prometheus.yml").write_text(CONFIG.format(port=exporter))
    options = ["-w", "3", "--max-requests", "50", "-b", f"127.0.0.1:{shop}", "--no-control-socket", "app:app"]
    commands = (
        [*COMMAND, "run", f"-Dvmscope.service={service}", "-m", "gunicorn", *options],
        [*COMMAND, "export", f"--listen=127.0.0.1:{exporter}", f"--vms={service}"],
        [
            "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{prometheus}",
        ],
    )  # fmt: skip
    with ExitStack() as stack, (tmp_path / "log").open("w") as log:
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log))
            stack.callback(process.send_signal, signal.SIGTERM)
        server = Prometheus(prometheus)
        eventually(lambda: _listens(shop) and _listens(exporter) and _listens(prometheus), "all three listen", 60)
        eventually(lambda: len(server.query("vmscope_vms")) == 1, "the service is scraped", 60)
        sent = send(shop, SECONDS)
        counter = f'app_requests_total{{service="{service}",path="/buy"}}'
        eventually(lambda: server.query(counter)[-1:] != [] and server.one(counter) == sent, f"{sent} requests", 60)
        window = f"[{int(SECONDS) + 120}s]"
        for expression in (counter, f'app_delay_seconds_count{{service="{service}"}}'):
            assert server.one(expression) == sent
            assert server.one(f"resets({expression}{window})") == 0
        for name in ("process_cpu_seconds_total", "python_gc_collections_total"):
            assert {value for _, value in server.query(f"resets({name}{window})")} == {0.0}
        booted = (tmp_path / "log").read_text().count("Booting worker")
        assert booted > 3 + sent // 100, "workers were replaced"
        log.flush()
    Path(f"/tmp/hsperfdata_root/services/{service}").unlink(missing_ok=True)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
