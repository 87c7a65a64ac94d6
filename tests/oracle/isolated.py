"""Runs Python code on a machine of its own: new mount and pid namespaces, an empty /tmp, nobody else's VMs."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]

PRELUDE = """
import json, os, subprocess, sys, time
from tests import corpus
subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)

def process(pid):
    \"\"\"A process that has this pid.\"\"\"
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    made = subprocess.Popen(["sleep", "600"])
    assert made.pid == pid
    return made

def publish(pid, region, user="root", mode=0o600):
    directory = f"/tmp/hsperfdata_{user}"
    os.makedirs(directory, mode=0o755, exist_ok=True)
    with open(f"{directory}/{pid}", "wb") as file:
        file.write(region)
    os.chmod(file.name, mode)

def run(*command, **options):
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, **options)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]

def ours(*arguments, **options):
    return run(sys.executable, "-m", "vmscope", *arguments, **options)
"""


@functools.cache
def _possible() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=30, check=False).returncode == 0
    except OSError:
        return False


def isolated(code: str, **facts: object) -> Any:
    """What `code` puts into `result`. It has PRELUDE's functions, and `facts` as a dict of what JSON can carry."""
    if not _possible():
        pytest.skip("needs root and unshare (new mount and pid namespaces)")
    if ROOT.is_relative_to("/tmp") or Path(sys.prefix).is_relative_to("/tmp"):
        pytest.skip("the project itself lies in /tmp, which the test hides")
    program = f"{PRELUDE}\nfacts = json.loads(sys.argv[1])\n{textwrap.dedent(code)}\nprint(json.dumps(result))"
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", program, json.dumps(facts)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
