"""Lists of agents beside HotSpot's: how options are split, in which order what is called, and how a VM ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs
from tests.oracle.agents import build
from tests.support import JDK, PATIENCE, Child

LIST_AGENT = programs.source("agent_list/list_agent")


class Pair:
    """The agent in both VMs: a run of each gives its exit status and the agents' lines."""

    def __init__(self, jdk: JDK, library: Path, folder: Path) -> None:
        self.jdk = jdk
        self.folder = folder
        self.java_agent = f"-agentpath:{library}"
        (folder / "list_agent.py").write_text(LIST_AGENT)

    def java(self, agents: list[str], inherited: list[str]) -> tuple[list[str], dict[str, str]]:
        """The command and the variables; what it runs is for the caller to add."""
        text = " ".join(self.java_agent + agent for agent in inherited)
        command = [self.jdk.tool("java"), "-XX:+UseSerialGC", *(self.java_agent + agent for agent in agents)]
        return command, {"JAVA_TOOL_OPTIONS": text} if text else {}

    def python(self, agents: list[str], inherited: list[str]) -> tuple[list[str], dict[str, str]]:
        text = " ".join(f"-pyagent:list_agent{agent}" for agent in inherited)
        command = [sys.executable, "-m", "vmscope", "run", *(f"-pyagent:list_agent{agent}" for agent in agents)]
        variables = {"PYTHONPATH": str(self.folder), **({"VMSCOPE_TOOL_OPTIONS": text} if text else {})}
        return command, variables

    def run(self, command: list[str], variables: dict[str, str]) -> tuple[int, list[str]]:
        run = subprocess.run(
            command,
            env={**os.environ, **variables},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return run.returncode, run.stdout.splitlines()


@pytest.fixture(scope="module", params=[17, 25], ids="JDK {}".format)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("list")
    agent = build("list_agent.c", request.param, folder)
    return Pair(agent.jdk, folder / "liblist_agent.so", folder)


@pytest.mark.parametrize(
    ("inherited", "agents"),
    [
        ([], [""]),
        ([], ["=1", "=a=b,c=d", "", "="]),
        (["=1", "=2"], ["=3", "=1"]),
    ],
    ids=["one", "several", "the environment's come first"],
)
@pytest.mark.parametrize(
    ("java", "python", "status"),
    [(["-version"], ["-c", "pass"], 0), (["NoClassOfThisName"], ["-c", "1 / 0"], 1)],
    ids=["end", "exception"],
)
def test_the_order_of_all_that_is_called(
    pair: Pair, inherited: list[str], agents: list[str], java: list[str], python: list[str], status: int
) -> None:
    command, variables = pair.java(agents, inherited)
    expected = pair.run([*command, *java], variables)
    assert len(expected[1]) == 5 * (len(agents) + len(inherited))
    command, variables = pair.python(agents, inherited)
    assert pair.run([*command, *python], variables) == expected
    assert expected[0] == status


def test_an_agent_that_refuses_ends_the_start(pair: Pair) -> None:
    """The specification wants those before it unloaded, which HotSpot does not do."""
    agents = ["=1", "=2", "=three", "=4"]
    command, variables = pair.java(agents, [])
    status, lines = pair.run([*command, "-version"], variables)
    lines = [line for line in lines if line.startswith(("load", "unload"))]
    assert (status, lines) == (1, ["load 1 1", "load 2 1", "load three 1"])
    command, variables = pair.python(agents, [])
    assert pair.run([*command, "-c", "pass"], variables) == (status, [*lines, "unload", "unload"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("left_alone", [False, True], ids=["", "-Xrs"])
def test_a_signal_ends_the_vm_in_order(pair: Pair, number: int, left_alone: bool) -> None:
    keytool = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/nonexistent/none.p12"]
    program = ["-c", "print('password:', flush=True); import time; time.sleep(600)"]
    options = ["-Xrs"] if left_alone else []
    found = []
    for (command, variables), what in (
        (pair.java(["=1", "=2"], []), keytool),
        (pair.python(["=1", "=2"], []), program),
    ):
        with Child([*command, *options, *what], env=variables, merge_stderr=True) as child:
            child.read_until(b"password:")
            os.kill(child.pid, number)
            status = child.process.wait(PATIENCE)
            # keytool may still be at its prompt
            found.append((re.findall(r"death \S+ \d|unload", child.rest().decode()), status))
    (java, java_status), (python, python_status) = found
    assert python == java
    assert len(python) == (0 if left_alone else 4)
    assert bool(java_status == 128 + number) == (not left_alone)
    assert python_status == -number
