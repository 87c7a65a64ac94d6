"""Limits that a program reaches, or sets itself, as sandboxes do: it pays for none, and what was lost comes back."""

from __future__ import annotations

from tests import programs
from tests.attack import requests
from tests.conftest import StartVMScope
from tests.integration.test_listener import path_of
from tests.support import Child, User, python_command
from tests.wait import wait_for
from vmscope import reader

LIMITED = programs.source("attack_limits/limited")
PRELOAD = ("gc", "resource", "vmscope.runtime", "vmscope.process_status")


def test_where_a_fork_fails_the_threads_come_back(implementation: str, private_user: User) -> None:
    """Nobody asks for the status, and nothing forks again: a collection is enough."""
    with Child(python_command(LIMITED, user=private_user, preload=PRELOAD)) as child:
        assert child.readline() == "1"
        child.send("")
        with reader.vm(child.pid) as vm:

            def shown() -> bool:
                child.send("")
                return vm.values().get("test.count") == 7  # not there before the threads are back

            wait_for(shown)
        wait_for(lambda: requests.ask(str(path_of(child.pid))).startswith(b"0\nCPython"))


def test_without_a_descriptor_nobody_is_busy(implementation: str, start_vmscope: StartVMScope) -> None:
    """A limit of none makes poll fail: whoever polls waits all the same, and says nothing."""
    child = start_vmscope(code="import os, resource, sys, time")
    child.ask("resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))")
    before = float(child.ask("time.process_time()"))
    child.ask("time.sleep(1)")  # what it uses in a second
    assert float(child.ask("time.process_time()")) - before < 0.05
    child.ask("resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))")
    assert requests.ask(str(path_of(child.pid))).startswith(b"0\nCPython")
