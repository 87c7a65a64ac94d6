"""A real HotSpot for Windows: its tools on our regions, our reader and drop-ins on its."""

from __future__ import annotations

import sys

from tests.wait import wait_for

assert sys.platform == "win32"

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE
from tests.windows.conftest import StartProgram
from tests.windows.programs import java, rights_of_mapping
from tests.windows.test_commands_windows import said
from vmscope import win32
from vmscope.reader import vm
from vmscope.reader.discovery import by_pid


@pytest.fixture(scope="module")
def jvm(jre: JDK, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The pid of an idle JVM: keytool, which asks for a password that nobody types."""
    store = tmp_path_factory.mktemp("keys") / "none.p12"
    before = set(by_pid())
    process = subprocess.Popen(
        [jre.tool("keytool"), "-genkeypair", "-alias", "a", "-keystore", str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: process.pid in by_pid(), f"it has no region; {before} had")
        with vm(process.pid) as found:
            assert found.reader.wait_accessible(PATIENCE)
        yield process.pid
    finally:
        process.kill()
        process.wait(PATIENCE)
        assert process.stdin is not None
        process.stdin.close()


def test_the_jdks_jps_lists_us(jre: JDK, start_program: StartProgram) -> None:
    program = start_program("vmscope.start('-Da=b')")
    assert f"{program.pid} -c -Da=b" in java(jre, "jps", "-lmv").splitlines()


def test_the_jdks_jstat_reads_us(jre: JDK, start_program: StartProgram) -> None:
    program = start_program("vmscope.start()\nimport gc\ngc.disable()\nfor _ in range(5): gc.collect()")
    heads, values = (line.split() for line in java(jre, "jstat", "-gcutil", str(program.pid)).splitlines())
    assert dict(zip(heads, values, strict=True))["FGC"] == program.ask(
        "vmscope.vm('self').values()['sun.gc.collector.1.invocations']"
    )


def test_the_jdks_counters_are_ours(jre: JDK, start_program: StartProgram) -> None:
    program = start_program(
        "vmscope.start('-XX:PerfDataSamplingInterval=0')\nvmscope.counter('shop.sales').add(7)\n"
        "vmscope.text('shop.state').set('open')"
    )
    with vm(program.pid) as found:
        wait_for(lambda: found.values().get("shop.state") == "open", "the mirror does not come")
        ours = found.values()
    printed = java(jre, "jcmd", str(program.pid), "PerfCounter.print").splitlines()
    theirs = dict(line.split("=", 1) for line in printed[1:] if "=" in line)
    assert theirs["shop.sales"] == "7"
    assert theirs["shop.state"] == '"open"'
    moving = {"sun.os.hrt.ticks"}
    same = [name for name, value in ours.items() if name not in moving and isinstance(value, int)]
    assert len(same) > 20
    assert {name: theirs[name] for name in same} == {name: str(ours[name]) for name in same}


def test_we_read_hotspots_region(jvm: int) -> None:
    with vm(jvm) as found:
        assert found.kind == "HotSpot"
        assert found.version.startswith("25")
        assert found.state == "live"
        assert "keytool" in found.command_line
        assert int(found.values()["java.threads.live"]) > 1
    assert "HotSpot" in said("ps", str(jvm))
    lines = said("jps", "-l").splitlines()
    assert any(line.startswith(f"{jvm} ") and "keytool" in line for line in lines), lines


def test_hotspots_mapping_has_the_rights_that_ours_has(jvm: int, start_program: StartProgram) -> None:
    program = start_program()
    theirs, ours = (rights_of_mapping(f"hsperfdata_{win32.user_name()}_{pid}") for pid in (jvm, program.pid))
    assert ours == theirs


@pytest.mark.parametrize("option", ["-gcutil", "-gc", "-class", "-gccapacity"])
def test_our_jstat_prints_what_theirs_does(option: str, jre: JDK, jvm: int, start_program: StartProgram) -> None:
    assert said("jstat", option, str(jvm)) == java(jre, "jstat", option, str(jvm))


def test_our_jps_prints_what_theirs_does(jre: JDK, jvm: int, start_program: StartProgram) -> None:
    program = start_program("vmscope.start('-Da=b')")

    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.split()[0] in (str(jvm), str(program.pid))]

    assert lines(said("jps", "-lmv")) == lines(java(jre, "jps", "-lmv"))


def test_hotspots_region_is_gone_with_it(jre: JDK, tmp_path: Path) -> None:
    run = java(jre, "jps", "-l")
    pid = next(int(line.split()[0]) for line in run.splitlines() if "Jps" in line)
    assert pid not in by_pid() or not os.path.exists(by_pid()[pid].path)
