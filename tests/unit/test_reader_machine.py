"""The public face: VMs, their counters, and many VMs sampled into one buffer."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

import vmscope
from tests import corpus
from tests.conftest import StartPython, StartVMScope
from tests.published import cpython, publish, region
from tests.wait import wait_for
from vmscope import native
from vmscope.errors import FormatError, NoRegion, NoSuchProcess, StaleRegion
from vmscope.reader import VM, Candidate, attachment, vms
from vmscope.reader.machine import kind_of, short_name
from vmscope.reader.own import gather_all
from vmscope.reader.sampler import Sampler
from vmscope.wire import decode

HOTSPOT_REGIONS = [name for name in corpus.names() if not name.startswith("made-")]


@pytest.mark.parametrize("name", HOTSPOT_REGIONS)
def test_a_saved_region(tmp_path: Path, name: str) -> None:
    paths = corpus.write(tmp_path)
    wanted = decode.values(corpus.load(name))
    with vmscope.vm(f"file:{paths[name]}") as vm:
        assert vm.values() == wanted
        assert (vm.kind, vm.state, vm.alive, vm.pid, vm.nspid, vm.path_given) == (
            "HotSpot",
            "stale",
            False,
            None,
            None,
            True,
        )
        # a region that is too small for all counters lacks some of these
        assert vm.version == wanted.get("java.property.java.vm.version", "")
        assert vm.command_line == wanted.get("sun.rt.javaCommand", "")
        assert vm.vm_arguments == wanted.get("java.rt.vmArgs", "")
        assert vm.vm_flags == wanted.get("java.rt.vmFlags", "")
        assert vm.main == ("Work" if vm.command_line else "")
        assert str(paths[name]) in repr(vm)
    assert (vm.kind, vm.version) == ("HotSpot", wanted.get("java.property.java.vm.version", ""))
    with pytest.raises(ValueError, match="closed"):
        vm.values()


def test_counters(tmp_path: Path) -> None:
    name = "17.0.15-debian-g1"
    region_of = decode.decode(corpus.load(name))
    wanted = region_of.values(corpus.load(name))
    with vmscope.vm(f"file:{corpus.write(tmp_path)[name]}") as vm:
        assert list(vm.counters) == vm.counters.keys() == [entry.name for entry in region_of.entries]
        assert len(vm.counters) == len(wanted)
        for entry, (key, counter) in zip(region_of.entries, vm.counters.items(), strict=True):
            assert key == counter.name == entry.name
            assert (counter.units, counter.variability, counter.supported) == (
                entry.units,
                entry.variability,
                entry.supported,
            )
            assert counter.value == wanted[key]
        assert "sun.gc.cause" in vm.counters
        assert "sun.gc.nothing" not in vm.counters
        assert vm.counters.get("sun.gc.nothing") is None
        with pytest.raises(KeyError):
            vm.counters["sun.gc.nothing"]
        assert [counter.name for counter in vm.counters.values()] == list(vm.counters)


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
        assert all(vm.values()["sun.rt.javaCommand"] == "-c" for vm in mine)
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


def test_what_is_no_region(tmp_path: Path) -> None:
    path = tmp_path / "nothing"
    path.write_bytes(b"nothing of the kind")
    vm = vmscope.vm(f"file:{path}")
    for look in (vm.values, vm.snapshot, lambda: vm.kind, lambda: len(vm.counters)):
        with pytest.raises(FormatError):
            look()
    vm.close()


# -- kinds and names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CPython", "CPython"),
        ("OpenJDK 64-Bit Server VM", "HotSpot"),
        ("Java HotSpot(TM) 64-Bit Server VM", "HotSpot"),
        ("Substrate VM", "other"),
        ("PyPy", "other"),
        (7, "other"),
    ],
)
def test_kinds(name: str | int, kind: str) -> None:
    assert kind_of({"java.property.java.vm.name": name}) == kind
    assert kind_of({}) == "other"
    assert kind_of({"sun.rt.jvmVersion": 1, "java.cls.loadedClasses": 5}) == "HotSpot"


@pytest.mark.parametrize(
    ("command", "kind", "name"),
    [
        ("org.example.Main serve --x=y", "HotSpot", "Main"),
        ("jdk.jcmd/sun.tools.jps.Jps -l", "HotSpot", "Jps"),
        ("/opt/app/server.jar --port 1", "HotSpot", "server.jar"),
        ("", "HotSpot", ""),
        ("shop.server --port 80", "CPython", "shop.server"),
        ("/srv/shop/app --port 80", "CPython", "app"),
        ("-c", "CPython", "-c"),
        ("bin/", "CPython", "bin"),
        ("/", "other", "/"),
    ],
)
def test_short_names(command: str, kind: str, name: str) -> None:
    assert short_name(command, kind) == name


# -- many at once ---------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[list[VM]]:
    """VMs of this process's pid, each in a file of its own."""
    made = []
    for number in range(5):
        values: dict[str, int | str] = {f"n.{i}": number * 1000 + i for i in range(3 + number)}
        path = publish(tmp_path, 100 + number, region({"text": "t", **values}))
        made.append(VM(attachment.open_candidate(Candidate(os.getpid(), os.getpid(), "someone", str(path), False))))
    yield made
    for vm in made:
        vm.close()


def test_the_sampler(fleet: list[VM]) -> None:
    sampler = Sampler(fleet)
    buffer = sampler.sample()
    assert sampler.index == [0, 3, 7, 12, 18]
    assert buffer.tolist() == [number * 1000 + i for number in range(5) for i in range(3 + number)]
    assert buffer.readonly
    assert sampler.names(1) == ["n.0", "n.1", "n.2", "n.3"]
    row = fleet[2].reader.structure().rows[2]
    with open(fleet[2].path, "r+b") as file:
        os.pwrite(file.fileno(), struct.pack("=q", -9), row[7])
    assert sampler.sample()[7 + 1] == -9
    assert sampler.layouts == 1


def test_a_vm_that_grows_or_goes_while_it_is_sampled(fleet: list[VM], tmp_path: Path) -> None:
    sampler = Sampler(fleet)
    sampler.sample()
    with open(fleet[0].path, "r+b") as file:
        file.write(region({"text": "t", "n.0": 5, "n.1": 6, "n.2": 7, "n.3": 8}, stamp=77))
    os.truncate(fleet[3].path, 0)
    buffer = sampler.sample()
    assert sampler.lost == [fleet[3]]
    assert sampler.vms == [fleet[0], fleet[1], fleet[2], fleet[4]]
    assert sampler.index == [0, 4, 8, 13]
    assert buffer.tolist()[:5] == [5, 6, 7, 8, 1000]
    assert sampler.layouts > 1


def test_a_vm_that_changes_without_pause_is_lost(fleet: list[VM], monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are sampled."""
    stamps = itertools.count(1000)

    def restless(mappings: Iterable[native.Mapping]) -> Callable[..., list[int]]:
        gather = gather_all(mappings)

        def gather_after_a_change(jobs: Sequence[tuple[native.Mapping, memoryview]], out: memoryview) -> list[int]:
            with open(fleet[1].path, "r+b") as file:
                os.pwrite(file.fileno(), struct.pack("=q", next(stamps)), 16)
            return gather(jobs, out)

        return gather_after_a_change

    monkeypatch.setattr("vmscope.reader.sampler.gather_all", restless)
    sampler = Sampler(fleet)
    assert sampler.sample().tolist()[:4] == [0, 1, 2, 2000]
    assert sampler.lost == [fleet[1]]


def test_other_byte_orders_and_odd_layouts(tmp_path: Path) -> None:
    paths = corpus.write(tmp_path)
    opened = [vmscope.vm(f"file:{paths[name]}") for name in ("made-big-endian", "made-numbers", "made-repeated-names")]
    sampler = Sampler(opened)
    buffer = sampler.sample()
    assert sampler.lost == [opened[2]]  # of two values with one name neither could be told
    for position, vm in enumerate(sampler.vms):
        values, start = vm.values(), sampler.index[position]
        for offset, name in enumerate(sampler.names(position)):
            assert buffer[start + offset] == values[name]
    for vm in opened:
        vm.close()


def test_sampling_nothing(tmp_path: Path) -> None:
    assert Sampler([]).sample().tolist() == []
    path = publish(tmp_path, os.getpid(), cpython(os.getpid()))
    path.write_bytes(bytes(4096))
    assert vms(tmp=str(tmp_path)) == []


def test_reading_a_region_that_is_gone(fleet: list[VM]) -> None:
    os.truncate(fleet[0].path, 0)
    with pytest.raises(StaleRegion):
        fleet[0].values()


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    """No descriptor and no mapping, neither of what was read nor of what was refused."""
    publish(tmp_path, os.getpid(), cpython(os.getpid()))
    publish(tmp_path, os.getppid(), b"\xca\xfe\xc0\xc0" + bytes(4092))
    publish(tmp_path, 1, b"too short")
    publish(tmp_path, os.getpid(), cpython(os.getpid(), ticks=1), user="other")

    def held() -> tuple[int, int]:
        with open("/proc/self/maps") as maps:
            return len(os.listdir("/proc/self/fd")), sum("hsperfdata_" in line for line in maps)

    before = held()
    for stale in (False, True) * 20:
        for found in vms(tmp=str(tmp_path), stale=stale):
            found.values()
            found.close()
            del found  # closing one's own does nothing: it goes with its last reference
    assert held() == before


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
