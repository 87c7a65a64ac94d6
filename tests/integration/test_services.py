"""Services: what each process of a real program is there for, as ps, stat and counters show it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.support import Child
from tests.wait import wait_for
from vmscope.services import Member, members

COMMAND = [sys.executable, "-m", "vmscope"]
SERVICE = f"shop{os.getpid()}"  # nobody else's

SHOP = programs.source("services/shop")

# As Django's and Flask's reloaders do it.
RELOADED = """
import os, subprocess, sys, time
if os.environ.get("RELOADED") != "true":
    environment = {**os.environ, "RELOADED": "true"}
    sys.exit(subprocess.call([sys.executable, "-m", "vmscope", "run", *sys.argv], env=environment))
print(os.getpid(), flush=True)
time.sleep(100)
"""


def ps(*arguments: str) -> str:
    return subprocess.run([*COMMAND, "ps", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def rows(wanted: set[int]) -> dict[int, dict[str, Any]]:
    """The rows of these pids, once all of them are there."""

    def found() -> dict[int, dict[str, Any]] | None:
        rows = {row["pid"]: row for row in json.loads(ps("--json"))}
        return {pid: rows[pid] for pid in wanted} if wanted <= rows.keys() else None

    return wait_for(found)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[dict[str, int]]:
    """A service: the pids of its processes by what they are, `main` among them."""
    script = tmp_path / f"{SERVICE}.py"
    script.write_text(SHOP)
    with Child([*COMMAND, "run", str(script), "--port", "8000"]) as child:
        pids = {"main": child.pid}
        parents = {}
        while (line := child.readline()).strip() != "ready":
            way, pid, parent = line.split()
            pids[way], parents[way] = int(pid), int(parent)
        pids["server"] = parents["forkserver"]
        rows(set(pids.values()))
        yield pids
        for started in pids.values():
            with suppress(ProcessLookupError):
                os.kill(started, signal.SIGKILL)


def test_roles_in_a_service(shop: dict[str, int]) -> None:
    main = shop["main"]
    found = rows(set(shop.values()))
    assert {name: (found[pid]["service"], found[pid]["role"], found[pid]["master"]) for name, pid in shop.items()} == {
        "main": (SERVICE, "master", None),
        "fork": (SERVICE, "worker", main),
        "spawn": (SERVICE, "spawned worker", main),
        "forkserver": (SERVICE, "worker", main),
        "server": (SERVICE, "forkserver", main),
        "tracker": (SERVICE, "resource tracker", main),
        "other": ("-c", "", None),
    }
    parents = {name: found[pid]["ppid"] for name, pid in shop.items() if name != "main"}
    assert parents.pop("forkserver") == shop["server"]
    assert set(parents.values()) == {main}
    assert found[main]["arguments"] == "--port 8000"
    shown = {int(line.split()[0]): line for line in ps().splitlines()[1:]}
    assert shown[main].endswith(f"  {SERVICE}")
    assert shown[shop["fork"]].endswith(f"  {SERVICE}: worker")
    assert [row for row in found.values() if row["cpu_share"] != pytest.approx(row["cpu"] / row["uptime"])] == []


def test_the_tree(shop: dict[str, int]) -> None:
    main = shop["main"]
    lines = ps("--tree", *map(str, shop.values())).splitlines()
    assert lines[0].split() == ["PID", "PPID", "USER", "UPTIME", "THR", "RSS", "CPU%", "MAIN"]
    column = lines[0].index("MAIN")
    shown = {int(line.split()[0]): line[column:] for line in lines[1:]}
    assert shown == {
        main: f"{SERVICE} --port 8000",
        shop["fork"]: f"`- {SERVICE}: worker of {main}",
        shop["spawn"]: f"`- {SERVICE}: spawned worker of {main}",
        shop["tracker"]: f"`- {SERVICE}: resource tracker of {main}",
        shop["server"]: f"`- {SERVICE}: forkserver of {main}",
        shop["forkserver"]: f"   `- {SERVICE}: worker of {main}",
        shop["other"]: "`- -c other",
    }
    order = list(shown)
    assert order[0] == main
    assert order.index(shop["forkserver"]) == order.index(shop["server"]) + 1


def test_a_service_by_its_name(shop: dict[str, int]) -> None:
    """`stat` and `counters` take all that is of it."""
    of_it = {pid for name, pid in shop.items() if name != "other"}
    several = subprocess.run(
        [*COMMAND, "stat", SERVICE, "0.05", "2"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert several[0].split() == ["PID", "UPTIME", "GCS", "GC%", "THR", "RSS", "CPU%", "MAIN"]
    assert sorted(int(line.split()[0]) for line in several[1:]) == sorted([*of_it, *of_it])
    main, worker = shop["main"], shop["fork"]
    assert [line.split("  ")[-1] for line in several[1:] if int(line.split()[0]) == worker] == [
        f"{SERVICE}: worker of {main}"
    ] * 2
    command = [*COMMAND, "stat", "--json", f"{main},{worker}"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert [json.loads(line)["pid"] for line in lines] == [main, worker]
    assert "generation_2_collections" in json.loads(lines[0])
    command = [*COMMAND, "counters", SERVICE, "python.threads.live"]
    table = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert table[0].split() == ["COUNTER", "PID", "VALUE"]
    assert sorted(int(line.split()[1]) for line in table[1:]) == sorted(of_it)
    values = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert {int(pid): row["python.threads.live"] for pid, row in json.loads(values).items()} == dict.fromkeys(of_it, 1)


def test_one_of_several_ends(shop: dict[str, int]) -> None:
    main, worker = shop["main"], shop["fork"]
    with Child([*COMMAND, "stat", f"{main},{worker}", "0.05"]) as watching:
        watching.read_until(f" of {main}\n".encode())
        os.kill(worker, signal.SIGKILL)
        streak = 0
        while streak < 5:
            streak = streak + 1 if watching.readline().split()[0] == str(main) else 0
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(20) == 0


def test_a_reloader(tmp_path: Path) -> None:
    script = tmp_path / "site.py"
    script.write_text(RELOADED)
    with Child([*COMMAND, "run", str(script), "runserver"]) as child:
        worker = int(child.readline())
        found = rows({child.pid, worker})
        assert [(found[pid]["role"], found[pid]["master"]) for pid in (child.pid, worker)] == [
            ("reloader", None),
            ("worker", child.pid),
        ]
        assert ps("--tree", str(child.pid)).splitlines()[1].endswith("  site: reloader runserver")
        os.kill(worker, signal.SIGKILL)


class Known:
    """A VM that is not there: what /proc can say of it only by chance."""

    def __init__(self, pid: int, ppid: int | None, main: str = "a", stack_start: int = 1) -> None:
        self.pid, self.ppid, self.main, self.stack_start = pid, ppid, main, stack_start
        self.kind = "CPython"
        self.command_line = self.started_as = main


def test_pids_that_go_in_circles() -> None:
    """Between two looks a pid may be used again."""
    found = members([Known(1 << 22 | 1, 1 << 22 | 2), Known(1 << 22 | 2, 1 << 22 | 1), Known(1 << 22 | 3, 1 << 22 | 3)])
    assert len(found) == 3
    assert {type(each) for each in found.values()} == {Member}


def test_a_deep_family() -> None:
    first = 1 << 22
    family = [Known(first + number, first + number - 1 if number else None) for number in range(3000)]
    found = members(reversed(family))
    assert found[first].role == "master"
    assert (found[first + 2999].depth, found[first + 2999].label) == (2999, f"a: worker of {first + 2998}")
