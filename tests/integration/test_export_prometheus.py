"""A real Prometheus scrapes `vmscope export`, while gunicorn replaces its workers: no reset, and nothing is lost.

VMSCOPE_LOAD sets for how many seconds requests are sent.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import programs
from tests.debugger import free_port
from tests.integration.test_export import COMMAND
from tests.prometheus import listens, start_prometheus
from tests.wait import wait_for as eventually
from vmscope.reader.process import user_name

ROOT = Path(__file__).parent.parent.parent
DOCUMENTED = "11689"  # requests, in docs/export.md
SECONDS = float(os.environ.get("VMSCOPE_LOAD", "8"))


def compare_with_page(url: str, words: dict[str, str]) -> None:
    """What promtool prints is what docs/export.md has, but for these words, the user's name and the times."""
    page = (ROOT / "docs" / "export.md").read_text()
    words = {**words, f'user="{user_name(os.geteuid())}"': 'user="www"'}
    shown = re.findall(r"^\$ promtool query instant \S+ '(.*)'\n(.*)$", page, re.MULTILINE)
    assert len(shown) == 2
    for expression, line in shown:
        command = ["promtool", "query", "instant", url, expression]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
        for word, instead in words.items():
            found = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", instead, found)
        assert re.sub(r"@\[[\d.]+\]", "@[...]", found) == line


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
@pytest.mark.parametrize("program", ["export/app", "export/client"], ids=["vmscope", "prometheus_client"])
def test_no_request_is_lost_and_no_counter_falls(tmp_path: Path, program: str) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is in the dev group")
    (tmp_path / "app.py").write_text(programs.source(program))
    (tmp_path / "metrics").mkdir()
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics")}
    service = f"{program.rpartition('/')[2]}{os.getpid()}"
    shop, exporter = free_port(), free_port()
    options = ["-w", "3", "--max-requests", "50", "-b", f"127.0.0.1:{shop}", "--no-control-socket", "app:app"]
    commands = (
        [*COMMAND, "run", f"-Dvmscope.service={service}", "-m", "gunicorn", *options],
        [*COMMAND, "export", f"--listen=127.0.0.1:{exporter}", f"--vms={service}"],
    )
    with ExitStack() as stack, (tmp_path / "log").open("w") as log:
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
            )
            stack.callback(process.send_signal, signal.SIGTERM)
        server = start_prometheus(stack, tmp_path, exporter)
        eventually(lambda: listens(shop) and listens(exporter), "both listen", 60)
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
        assert os.listdir(tmp_path / "metrics") == []
        if shutil.which("promtool") is not None and program == "export/app":
            compare_with_page(server.url, {service: "shop", str(exporter): "9464", str(sent): DOCUMENTED})
    Path(f"/tmp/hsperfdata_root/services/{service}").unlink(missing_ok=True)
