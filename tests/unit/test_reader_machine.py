"""The public face: VMs, their counters, and many VMs sampled into one buffer."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import vmscope
from tests import corpus
from tests.published import cpython, publish, region
from vmscope import native
from vmscope.errors import FormatError, StaleRegion
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


def test_chosen_columns(fleet: list[VM]) -> None:
    """A VM that does not have all of its columns any more is lost."""
    columns = [[number, number + 2] for number in range(5)]
    sampler = Sampler(fleet, columns)
    assert sampler.sample().tolist() == [number * 1000 + i for number in range(5) for i in (number, number + 2)]
    assert sampler.index == [0, 2, 4, 6, 8]
    assert sampler.names(1) == ["n.1", "n.3"]
    columns[3].append(9)
    sampler = Sampler(fleet, columns)
    assert sampler.lost == [fleet[3]]
    assert sampler.sample().tolist() == [0, 2, 1001, 1003, 2002, 2004, 4004, 4006]


def test_a_vm_that_changes_without_pause_is_lost(fleet: list[VM], monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are sampled."""
    stamps = itertools.count(1000)

    def restless(mappings: Iterable[native.Mapping]) -> Callable[..., list[int]]:
        gather = gather_all(mappings)

        def gather_after_a_change(
            jobs: Sequence[tuple[native.Mapping, memoryview]], out: memoryview, *watched: memoryview
        ) -> list[int]:
            with open(fleet[1].path, "r+b") as file:
                os.pwrite(file.fileno(), struct.pack("=q", next(stamps)), 16)
            return gather(jobs, out, *watched)

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
