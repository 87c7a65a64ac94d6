"""A region that is full grows: who has it mapped reads on, and the JDK's tools read all of it."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from tests.conftest import StartVMScope
from tests.support import JDK
from tests.wait import wait_for
from vmscope import reader
from vmscope.reader.sampler import Sampler
from vmscope.wire.decode import decode

COUNT = 4000
GROW = f"[vmscope.counter(f'big.{{number}}').add(number) for number in range({COUNT})] and 1"
WANTED = {f"big.{number}": number for number in range(COUNT)}


def big(values: dict[str, int | str]) -> dict[str, int | str]:
    return {name: value for name, value in values.items() if name.startswith("big.")}


def test_readers_from_before_find_what_comes(start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    path = child.ask("vmscope.status().path")
    with reader.vm(child.pid) as vm, reader.vm(child.pid) as other:
        assert big(vm.values()) == {}
        assert os.stat(path).st_size == int(child.ask("vmscope.status().capacity")) == 65536
        sampler = Sampler([other])
        assert [name for name in sampler.names(0) if name.startswith("big.")] == []
        child.ask(GROW)
        wait_for(lambda: big(vm.values()) == WANTED)
        assert os.stat(path).st_size == int(child.ask("vmscope.status().capacity")) > 65536
        assert child.ask("vmscope.status().overflow") == "0"
        numbers = sampler.sample()
        assert dict(zip(sampler.names(0), numbers, strict=True)).items() >= WANTED.items()
        assert sampler.lost == []


def test_a_saved_region_has_all(start_vmscope: StartVMScope, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    child = start_vmscope(f"-XX:PerfDataSaveFile={saved}")
    child.ask(GROW)
    child.process.communicate()
    data = saved.read_bytes()
    assert big(decode(data).values(data)) == WANTED


def test_tools_of_the_jdk(start_vmscope: StartVMScope, jdk17: JDK) -> None:
    """One that watches goes on with what it knew; one that comes later reads all."""
    child = start_vmscope()
    command = [str(jdk17.bin / "jstat"), "-gcutil", str(child.pid), "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        header, first = watching.stdout.readline(), watching.stdout.readline()
        child.ask(GROW)
        with reader.vm(child.pid) as vm:
            wait_for(lambda: big(vm.values()) == WANTED)
        later = [watching.stdout.readline() for _ in range(20)]
        watching.kill()
        assert {len(line.split()) for line in (first, *later)} == {len(header.split())}
    printed = jdk17.run("jcmd", str(child.pid), "PerfCounter.print").stdout
    assert {line for line in printed.splitlines() if line.startswith("big.")} == {f"big.{n}={n}" for n in range(COUNT)}


def test_a_limit(start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:PerfDataMemoryLimit=128k")
    child.ask(GROW)
    assert child.ask("vmscope.status().capacity") == "131072"
    assert int(child.ask("vmscope.status().overflow")) > 0
    assert child.ask("vmscope.counter('big.3999').value") == "3999"


def test_a_forked_child_begins_small(start_vmscope: StartVMScope) -> None:
    child = start_vmscope(code="import os")
    child.ask(GROW)
    pid = int(child.ask("(pid := os.fork()) or (__import__('time').sleep(60), os._exit(0))"))
    try:
        wait_for(lambda: any(vm.pid == pid for vm in reader.vms()))
        with reader.vm(pid) as vm:
            wait_for(lambda: big(vm.values()) == dict.fromkeys(WANTED, 0))
    finally:
        os.kill(pid, 9)


def test_no_lie_makes_a_reader_look_beyond_the_file(tmp_path: Path, start_vmscope: StartVMScope) -> None:
    child = start_vmscope()
    data = bytearray(Path(child.ask("vmscope.status().path")).read_bytes())
    path = tmp_path / "region"
    for used in (len(data) + 1, len(data) + 4096, 16 << 20, 2**31 - 1):
        struct.pack_into("=i", data, 8, used)
        path.write_bytes(data)
        with reader.vm(f"file:{path}") as vm:
            assert vm.values()["java.property.java.vm.name"] == "CPython"
            assert vm.reader.mapping.size == len(data)
