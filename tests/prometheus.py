"""A real Prometheus that scrapes one exporter each second, and its API."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.debugger import free_port
from tests.wait import wait_for

CONFIG = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [{rules}]
scrape_configs:
  - job_name: vmscope
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class Prometheus:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=30) as answer:
                return bool(answer.status == 200)
        except OSError:  # nobody listens yet, or 503
            return False

    def get(self, path: str, **parameters: str) -> Any:
        """What the API answers to a request."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        found = self.get("query", query=expression)
        return [(row["metric"], float(row["value"][1])) for row in found["result"]]

    def one(self, expression: str) -> float:
        ((_, value),) = self.query(expression)
        return value


def start_prometheus(stack: ExitStack, folder: Path, port: int, *options: str, rules: str = "") -> Prometheus:
    """It ends with the stack; its data and its log are in the folder. `rules` is a file."""
    (folder / "prometheus.yml").write_text(CONFIG.format(port=port, rules=rules))
    own = free_port()
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{own}", *options,
    ]  # fmt: skip
    log = stack.enter_context((folder / "prometheus.log").open("w"))
    process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
    stack.callback(process.terminate)
    server = Prometheus(own)
    wait_for(server.is_ready, "Prometheus is ready", 60)
    return server


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
