"""A program in a folder that others may write to: no request makes it import what they have put there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.attack import requests
from tests.integration.test_listener import path_of
from tests.support import Child
from vmscope.commands.registry import TABLE

# As the `-c` of a service, or a prompt: "" in sys.path is the folder that the program is in at each import.
PROGRAM = """
import os, sys, vmscope
vmscope.start("-XX:+EnableDynamicAgentLoading")
os.chdir(FOLDER)
print("ready", flush=True)
sys.stdin.read()
"""
AGENT = "def agent_on_attach(vm, options):\n    import beside\n"
OPERATIONS = [("threaddump",), ("properties",), ("agentProperties",), ("inspectheap",), ("printflag", "UsePerfData")]
OPERATIONS += [("setflag", "PerfDataSamplingInterval", "40"), ("load", "/nonexistent.so", "true")]
OPERATIONS += [("jcmd", name) for name in TABLE] + [("jcmd", "GC.heap_dump dump")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a module of each name of the standard library, and of some that it does not have in each version."""
    for name in {*sys.stdlib_module_names, "vmscope", "greenlet", "_xxsubinterpreters"}:
        text = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\nraise ImportError('{name}')\n"
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def ask(child: Child, *words: str) -> bytes:
    return requests.ask(str(path_of(child.pid)), requests.version_1(tuple(word.encode() for word in words)))


def test_no_request_imports_from_the_folder(folder: Path, implementation: str) -> None:
    with Child([sys.executable, "-c", PROGRAM.replace("FOLDER", repr(str(folder)))]) as child:
        child.read_until(b"ready\n")
        for words in OPERATIONS:
            ask(child, *words)
        assert ask(child, "threaddump").startswith(b"0\n")
        assert child.stop() == 0
    mark = folder / "imported"
    assert not mark.exists(), mark.read_text()


def test_an_agent_that_is_named_is_found_there(tmp_path: Path, implementation: str) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "beside.py").write_text("")
    with Child([sys.executable, "-c", PROGRAM.replace("FOLDER", repr(str(tmp_path)))]) as child:
        child.read_until(b"ready\n")
        assert ask(child, "load", "agent") == b"0\nreturn code: 0\n"
        assert ask(child, "jcmd", "JVMTI.agent_load agent") == b"0\nreturn code: 0\n"
