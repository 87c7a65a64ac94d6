"""The agents of examples/native, unmodified, on HotSpot 17 and on this Python: they say the same, line by line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.native import EXAMPLES, Market, build, full_jdk, output
from tests.support import PATIENCE, Child

MONITORED = (  # what needs sys.monitoring
    "generate_breakpoint_events+generate_exception_events+generate_frame_pop_events+generate_method_entry_events"
    "+generate_method_exit_events+generate_single_step_events+suspend"
)
ASKED = (
    "tag_objects+get_bytecodes+get_line_numbers+get_source_file_name+access_local_variables"
    "+generate_field_access_events+generate_garbage_collection_events"
    "+generate_object_free_events+generate_monitor_events+get_owned_monitor_info+redefine_classes"
    "+retransform_classes+signal_thread+get_thread_cpu_time+generate_all_class_hook_events+get_constant_pool"
)
if sys.version_info >= (3, 12):
    ASKED += f"+{MONITORED}"

CASES = {
    "phases": f"ask={ASKED}",
    "entries": "class=Lmarket/Basket;,methods=add+total+ask+fill+look",
    "tags": "class=Lmarket/Basket;,at=look",
    "pingpong": "rounds=300",
    "exceptions": "kind=Lmarket/",
    "gcshare": "limit=0,window=1000000",
    "breakpoint": "class=Lmarket/Basket;,method=add,line=24,variables=article+other+price",
}

WITH_MONITORING = ("entries", "tags", "exceptions", "breakpoint")

# What may differ, and nothing else: numbers that are each program's own.
OWN = {
    "gcshare": re.compile(r"^\d+(?= collections)"),  # this Python's collector, and a JVM's, come when they want to
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native")


@pytest.fixture(scope="module")
def market(folder: Path) -> Market:
    return Market(full_jdk(), folder)


def common(agent: str, lines: list[str]) -> list[str]:
    own = OWN.get(agent)
    return lines if own is None else [own.sub("N", line) for line in lines]


@pytest.mark.parametrize("agent", CASES)
def test_an_example_says_the_same_on_both(agent: str, market: Market, folder: Path) -> None:
    if sys.version_info < (3, 12) and agent in WITH_MONITORING:
        pytest.skip("it asks for events that need sys.monitoring, of Python 3.12")
    library = build(EXAMPLES / f"{agent}.c", folder, market.jdk)
    option = f"-agentpath:{library}={CASES[agent]}"
    java = output(market.java("-Xcheck:jni", option))
    assert java
    assert common(agent, output(market.python("-Xcheck:jni", option))) == common(agent, java)


def test_a_dump_on_request_says_the_same_on_both(market: Market, folder: Path) -> None:
    library = build(EXAMPLES / "dump.c", folder, market.jdk)
    options = ["-Xcheck:jni", f"-agentpath:{library}=threads=clerk+porter,within=Lmarket/Basket;"]
    ask = [sys.executable, "-m", "vmscope", "cmd"]
    java = dump(market.java(*options, words=["open"]), [market.jdk.tool("jcmd")])
    assert len(java) == 10
    assert "  porter of group main, a daemon: alive waiting with a limit sleeping" in java
    assert dump(market.python(*options, words=["open"]), ask) == java


def test_they_are_built_as_their_makefile_builds_them(market: Market, tmp_path: Path) -> None:
    for source in EXAMPLES.iterdir():
        if source.suffix != ".so":
            shutil.copy(source, tmp_path)

    def make(home: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "-C", str(tmp_path), f"JDK={home}", "CFLAGS=-O2 -Wall -Wextra -Wno-unused-parameter -Werror"]
        return subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)

    wrong = make("/nowhere")
    assert wrong.returncode == 2
    assert "there is no /nowhere/include/jvmti.h: name a JDK" in wrong.stderr
    right = make(str(market.jdk.home))
    assert right.returncode == 0, right.stderr
    assert {path.name for path in tmp_path.glob("*.so")} == {f"lib{name}.so" for name in (*CASES, "dump")}


def dump(command: list[str], ask: list[str]) -> list[str]:
    """What the agent says to a request, once the threads have come to rest, and at the end of the program."""
    deadline = time.monotonic() + PATIENCE
    with Child(command) as child:
        assert child.readline() == "open"
        while True:
            run = subprocess.run(
                [*ask, str(child.pid), "JVMTI.data_dump"], capture_output=True, check=False, timeout=30
            )
            assert run.returncode == 0, run
            lines = [child.readline() for _ in range(5)]
            if any("sleeping" in line for line in lines):
                break
            assert time.monotonic() < deadline, lines
        child.send("close")
        return lines + child.rest().decode().splitlines()
