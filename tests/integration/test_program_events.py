"""Events of the program's own, in recordings that the JDK's jfr reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartVMScope
from tests.oracle.raw_attach import ask
from tests.support import JDK, Child

pytestmark = pytest.mark.usefixtures("no_chunks_left")

SHOP = """\
import sys
import time
import vmscope
order = vmscope.event("shop.Order", number=int, amount=float, rush=bool, customer=str)
def sell(number):
    with order.timing(number, 19.5, True, "Ann\\u00e9") as timing:
        timing.values = (number, 20.5, False, "Bo\\U0001F600b")
def refund(number):
    return vmscope.event("shop.Refund", number=int).commit(number)
print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


def jcmd(child: Child, text: str) -> str:
    status, body = ask(child.pid, "jcmd", text)
    assert status == "0"
    return body


def shown(path: Path, jdk: JDK, name: str) -> list[dict[str, Any]]:
    run = jdk.run("jfr", "print", "--json", "--events", name, str(path))
    assert run.returncode == 0, run.stderr
    found: list[dict[str, Any]] = [event["values"] for event in json.loads(run.stdout)["recording"]["events"]]
    return found


def test_an_event_has_its_values_thread_stack_and_duration(
    start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK
) -> None:
    child = start_vmscope(code=SHOP)
    assert child.ask("sell(6)") == "None"
    jcmd(child, "JFR.start name=shop")
    assert child.ask("sell(7)") == "None"
    assert child.ask("order.commit(-8, 1e300, False, '', start=time.monotonic_ns() - 5_000_000)") == "True"
    assert child.ask("refund(9)") == "True", "an event that is made while a recording runs"
    jcmd(child, f"JFR.stop name=shop filename={tmp_path}/shop.jfr")
    assert child.ask("refund(10)") == "False"
    first, second = shown(tmp_path / "shop.jfr", jdk, "shop.Order")
    assert (first["number"], first["amount"], first["rush"], first["customer"]) == (7, 20.5, False, "Bo\U0001f600b")
    assert first["eventThread"]["javaName"] == "MainThread"
    assert first["stackTrace"]["frames"][0]["method"]["name"] == "sell", first["stackTrace"]
    assert (second["number"], second["amount"], second["customer"]) == (-8, 1e300, "")
    assert re.fullmatch(r"PT0\.00[5-9]\d*S|PT.*[1-9].*S", second["duration"]), "at least 5 ms"
    assert [event["number"] for event in shown(tmp_path / "shop.jfr", jdk, "shop.Refund")] == [9]


def test_the_settings_of_a_recording_hold_for_it(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=SHOP)
    jcmd(child, "JFR.start name=shop +shop.Order#threshold=1h +shop.Refund#enabled=false")
    assert child.ask("order.commit(7, 1.0, False, '')") == "False"
    assert child.ask("order.commit(8, 1.0, False, '', start=time.monotonic_ns() - 3601 * 10**9)") == "True"
    assert child.ask("refund(9)") == "False"
    jcmd(child, f"JFR.stop name=shop filename={tmp_path}/shop.jfr")
    assert shown(tmp_path / "shop.jfr", jdk, "shop.Refund") == []


def test_a_child_of_a_fork_records_nothing(start_vmscope: StartVMScope, tmp_path: Path, jdk: JDK) -> None:
    child = start_vmscope(code=SHOP.replace("import sys\n", "import os\nimport sys\n"))
    jcmd(child, "JFR.start name=shop")
    commit = "order.commit(7, 1.0, False, '')"
    assert child.ask(f"[os.waitpid(pid, 0)[1] if pid else os._exit({commit}) for pid in [os.fork()]]") == "[0]"
    jcmd(child, f"JFR.stop name=shop filename={tmp_path}/shop.jfr")
    assert shown(tmp_path / "shop.jfr", jdk, "shop.Order") == []
