"""The public face: VMs, their counters, and many VMs sampled into one buffer. What needs processes of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

import vmscope
from tests.conftest import StartPython, StartVMScope
from tests.published import publish
from tests.wait import wait_for
from vmscope.errors import NoRegion, NoSuchProcess
from vmscope.reader import vms


def test_a_live_vm_and_what_it_adds(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="made = vmscope.counter('machine.made')")
    with vmscope.vm(child.pid) as vm:
        assert (vm.pid, vm.nspid, vm.state, vm.kind, vm.main) == (child.pid, child.pid, "live", "CPython", "-c")
        assert vm.alive
        wait_for(lambda: "machine.made" in vm.counters)
        child.ask("made.add(41)")
        wait_for(lambda: vm.counters["machine.made"].value == 41)
        assert vm.values()["machine.made"] == 41
        child.ask("vmscope.text('machine.later', capacity=80).set('there')")
        wait_for(lambda: vm.values().get("machine.later") == "there")
        assert vm.counters["machine.later"].value == "there"
        first, second = vm.snapshot(), vm.snapshot()
        assert first.taken <= second.taken
        assert second.settled
        assert second.accessible
        assert child.stop() == 0
        assert [vm.alive, vm.state] == [False, "stale"]
    with pytest.raises(NoSuchProcess):
        vmscope.vm(child.pid)


def test_this_process_sees_itself(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="from vmscope import vm")
    for target in ("0", "'self'", "'0'", str(child.pid), f"'{child.pid}'"):
        assert child.ask(f"[vm({target}).pid, vm({target}).state, vm({target}).main]") == f"[{child.pid}, 'live', '-c']"
    path = child.ask("vmscope.status().path")
    assert child.ask("(kept := vm(0)).close() or kept.values()['vmscope.implementation']") in ("c", "python")
    assert os.path.exists(path)


def test_vms_lists_it(start_vmscope: StartVMScope) -> None:
    children = [start_vmscope() for _ in range(3)]
    found = vmscope.vms()
    try:
        mine = [vm for vm in found if vm.pid in {child.pid for child in children}]
        assert [vm.pid for vm in mine] == sorted(child.pid for child in children)
        assert {vm.kind for vm in mine} == {"CPython"}
        assert [vm for vm in mine if vm.values()["sun.rt.javaCommand"] != "-c"] == []
    finally:
        for vm in found:
            vm.close()


def test_a_process_without_a_region() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            with pytest.raises(NoRegion):
                vmscope.vm(process.pid)
        finally:
            process.kill()


def test_a_killed_vm(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    """Its file stays, until another VM starts; here a copy, so that none takes it away meanwhile."""
    child = start_vmscope()
    path = publish(tmp_path, child.pid, Path(child.ask("vmscope.status().path")).read_bytes())
    (vm,) = vms(tmp=str(tmp_path))
    assert (vm.pid, vm.path, vm.alive) == (child.pid, str(path), True)
    child.kill()
    assert [vm.alive, vm.state] == [False, "stale"]
    assert vm.values()["sun.rt.javaCommand"] == "-c"  # the last values are there to be read
    vm.close()
    with pytest.raises(NoSuchProcess):
        vmscope.vm(child.pid)
    assert vms(tmp=str(tmp_path)) == []
    (found,) = vms(tmp=str(tmp_path), stale=True)
    assert (found.pid, found.state) == (child.pid, "stale")
    found.close()


@pytest.mark.parametrize("option", ["-XX:+PerfDisableSharedMem", "removed"])
def test_this_process_without_a_file_is_read_in_its_memory(option: str, start_python: StartPython) -> None:
    code = f"""
        import os, vmscope, vmscope.runtime
        from vmscope.reader.sampler import Sampler
        counter = vmscope.counter("test.count")
        try:
            vmscope.vm(0)
        except vmscope.VMScopeError as error:
            print(error)
        if {option!r} == "removed":
            vmscope.start("-XX:PerfDataSamplingInterval=60000")
            vmscope.runtime.VM._unlink(vmscope.runtime.VM.region)
        else:
            vmscope.start({option!r})
        for target in (0, "self", os.getpid(), str(os.getpid())):
            counter.inc()
            with vmscope.vm(target) as vm:
                counter.inc()
                sampler = Sampler([vm])
                sampled = sampler.sample()[list(sampler.names(0)).index("test.count")]
                print(vm.values()["test.count"], vm.counters["test.count"].value, sampled, vm.state, vm.kind,
                      vm.pid == os.getpid(), vm.path == "", vm.alive)
    """
    child = start_python(dedent(code), ready=False)
    assert "publishes no region" in child.readline()
    for count in (2, 4, 6, 8):
        assert child.readline() == f"{count} {count} {count} live CPython True True True"
