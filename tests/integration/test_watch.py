"""What a process has, seen from outside through its whole life, is what docs/security.md lists, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import c_agents
from tests.oracle.isolated import ROOT, UNSHARE
from tests.support import JDK
from tests.watched import CANNOT
from vmscope import native

AGENT = """
static int begin(char *options UNUSED) {
    jrawMonitorID monitor;
    return (*ti)->CreateRawMonitor(ti, "watched", &monitor);
}
"""


def watched(*arguments: str) -> list[str]:
    if os.geteuid() != 0 or ROOT.is_relative_to("/tmp"):
        pytest.skip("needs root, and a project outside of /tmp, which is hidden")
    run = subprocess.run(
        [*UNSHARE, "--net", sys.executable, "-m", "tests.watched", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if run.returncode == CANNOT:
        pytest.skip(f"this machine cannot be watched: {run.stdout}")
    assert run.returncode == 0
    found: list[str] = json.loads(run.stdout)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", ["C", "twin"])
def test_nothing_is_there_that_is_not_listed(form: str, tmp_path: Path) -> None:
    """Start, 400 forks, commands, agents, attach by SIGQUIT, crashes, an ordinary end."""
    if form == "C" and native.IMPLEMENTATION != "c":
        pytest.skip("the extension is not built, or VMSCOPE_NATIVE=0")
    if form == "twin" and sys.version_info < (3, 13):
        pytest.skip("before CPython 3.13 mappings of Python's keep a descriptor")
    jdk = JDK.find()
    try:
        library = str(c_agents.build(AGENT, tmp_path).library) if form == "C" else ""
    except pytest.skip.Exception:
        library = ""
    found = watched(form, jdk.tool("jcmd") if jdk else "", library)
    assert found == [], "\n".join(found)


def test_whatever_else_is_there_is_seen() -> None:
    found = watched("strange")
    for each in (
        "thread program",
        "signal SIGUSR1",
        "socket name @strange",
        "socket name tcp port 4711",
        "memory rwxs /dev/zero",
        "memory <cwd>/renamed rw-",
        "descriptor program: unix stream socket @strange",
        "descriptor program: tcp socket",
        "descriptor program: <system> read inheritable",
        "descriptor program: <cwd>/renamed both",
        "made <cwd>/made",
        "written <cwd>/made",
        "removed <cwd>/made",
        "made <cwd>/renamed",
        "made <cwd>/folder",
        "removed <cwd>/folder",
    ):
        assert each in found, (each, found)
