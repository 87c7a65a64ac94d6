"""Beside our agents each of the tools that people use gives the result that it gives alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import programs
from tests.debugger import Debugger, free_port
from tests.environment import Environment
from tests.support import PATIENCE
from vmscope import native

pytestmark = [
    pytest.mark.skipif(sys.version_info < (3, 12), reason="events of running code need CPython 3.12"),
    pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the extension is not built"),
]

AGENT = programs.source("coexistence/agent")
AGENTS = "-pyagent:counts -pyagent:vmscope.agents.exceptions"

# In a string: debuggers and profilers name its lines.
CART = """\
class Cart:
    def __init__(self):
        self.items = []
    def add(self, number):
        if number % 3 == 0:
            raise ValueError(number)
        self.items.append(number)
        return number
    def total(self):
        found = 0
        for item in self.items:
            found += item
        return found
def numbers(count):
    try:
        for number in range(count):
            yield number
    finally:
        done = True
def fill(cart):
    for number in numbers(10):
        try:
            cart.add(number)
        except ValueError:
            pass
    if cart is None:
        print("never")
    return cart
"""
ALONE = f"{CART}print(sum(fill(Cart()).total() for _ in range(3)))\n"
THREADS = f"""{CART}
import threading
carts = [Cart() for _ in range(3)]
threads = [threading.Thread(target=fill, args=(cart,)) for cart in carts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(cart.total() for cart in carts))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the tools, autostart, and the agent."""
    made = Environment(tmp_path_factory.mktemp("environment") / "venv", guests=True)
    (made.site / "counts.py").write_text(AGENT)
    made.switch("on")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cart.py").write_text(CART)
    (tmp_path / "alone.py").write_text(ALONE)
    (tmp_path / "threads.py").write_text(THREADS)
    (tmp_path / "counts").mkdir()
    return tmp_path


def surroundings(folder: Path, agents: bool) -> dict[str, str]:
    return {"COUNTS": str(folder / "counts"), **({"VMSCOPE_TOOL_OPTIONS": AGENTS} if agents else {"VMSCOPE": "0"})}


def counted(folder: Path) -> int:
    """How many processes had the agent, each of which was sent every kind of event."""
    files = list((folder / "counts").iterdir())
    for file in files:
        assert all(int(count) > 0 for count in file.read_text().split()), file.read_text()
    return len(files)


def both(
    environment: Environment, folder: Path, *arguments: str, env: dict[str, str] | None = None
) -> list[tuple[int, str, str]]:
    """What a run comes to alone, and with the agents."""
    return [
        environment.run(*arguments, env={**surroundings(folder, agents), **(env or {})}, cwd=folder)
        for agents in (False, True)
    ]


# -- coverage.py ----------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", [(), ("--branch",)], ids=["lines", "branches"])
@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_coverage(environment: Environment, folder: Path, core: str, branch: tuple[str, ...]) -> None:
    pytest.importorskip("coverage", reason="coverage is in the dev group")
    if core == "sysmon" and branch and sys.version_info < (3, 14):
        pytest.skip("coverage.py measures branches by sys.monitoring from CPython 3.14 on")
    found = []
    for agents in (False, True):
        env = {**surroundings(folder, agents), "COVERAGE_CORE": core}
        run = ("-m", "coverage", "run", *branch, f"--source={folder}", "threads.py")
        assert environment.run(*run, env=env, cwd=folder) == (0, "81\n", "")
        report = environment.run("-m", "coverage", "json", "--quiet", "-o", "-", env={"VMSCOPE": "0"}, cwd=folder)
        found.append(json.loads(report[1])["files"])
    alone, beside = found
    assert beside == alone
    assert alone["threads.py"]["summary"]["missing_lines"] == 1
    assert counted(folder) == 1


COME_AND_GO = programs.source("coexistence/come_and_go")


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_agents_that_come_and_go_while_coverage_measures(environment: Environment, folder: Path, core: str) -> None:
    pytest.importorskip("coverage", reason="coverage is in the dev group")
    (folder / "program.py").write_text(COME_AND_GO)
    found = []
    for agents in ((), ("one", "two")):
        run = ("-m", "coverage", "run", f"--source={folder}", "program.py", *agents)
        assert environment.run(*run, env={"COVERAGE_CORE": core}, cwd=folder) == (0, f"28 {len(agents)}\n", "")
        report = environment.run("-m", "coverage", "json", "--quiet", "-o", "-", env={"VMSCOPE": "0"}, cwd=folder)
        found.append(json.loads(report[1])["files"]["cart.py"])
    alone, beside = found
    assert beside == alone
    assert alone["summary"]["missing_lines"] == 1


TESTS = programs.source("coexistence/tests")


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_pytest_cov_with_xdist(environment: Environment, folder: Path, core: str) -> None:
    """The agents are in the controller and in both workers."""
    for name in ("pytest_cov", "xdist"):
        pytest.importorskip(name, reason=f"{name} is in the dev group")
    (folder / "test_cart.py").write_text(TESTS)
    found = []
    for agents in (False, True):
        env = {**surroundings(folder, agents), "COVERAGE_CORE": core}
        words = ("-q", "-n", "2", "-p", "no:randomly", "-p", "no:cacheprovider", "--cov=cart", "--cov-report=json")
        status, output, _ = environment.run("-m", "pytest", *words, "test_cart.py", env=env, cwd=folder)
        assert status == 0, output
        assert "7 passed" in output
        found.append(json.loads((folder / "coverage.json").read_text())["files"])
    alone, beside = found
    assert beside == alone
    assert alone["cart.py"]["summary"]["missing_lines"] == 1
    assert counted(folder) == 3


# -- cProfile -------------------------------------------------------------------------------------

PROFILED = """
import cProfile, pstats
from cart import Cart, fill
profile = cProfile.Profile()
profile.enable()
fill(Cart()).total()
profile.disable()
for (file, line, name), (calls, all_calls, _, _, callers) in sorted(pstats.Stats(profile).stats.items()):
    print(line, name, calls, all_calls, sorted((caller[2], row[0]) for caller, row in callers.items()))
"""


def test_cprofile(environment: Environment, folder: Path) -> None:
    (folder / "profiled.py").write_text(PROFILED)
    alone, beside = both(environment, folder, "profiled.py")
    assert beside == alone
    assert "4 add 10 10 [('fill', 10)]" in alone[1]
    assert counted(folder) == 1


# -- debugpy --------------------------------------------------------------------------------------


def debugged(environment: Environment, folder: Path, agents: bool) -> tuple[list[object], int, str, str]:
    port = str(free_port())
    words = ("-Xfrozen_modules=off", "-m", "debugpy", "--listen", port, "--wait-for-client", "alone.py")
    env = {**surroundings(folder, agents), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with environment.start(*words, env=env, cwd=folder) as process:
        try:
            debugger = Debugger(int(port))
            try:
                stops = debugger.stops(folder / "alone.py", [{"line": 6}, {"line": 12, "condition": "item == 4"}])
            finally:
                debugger.close()
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (folder / "counts" / str(process.pid)).exists() == agents  # the adapter, a process of its own, may have one
    return stops, process.returncode, output.decode(), errors.decode()


def test_debugpy(environment: Environment, folder: Path) -> None:
    """Breakpoints, a condition, steps, stacks and variables."""
    pytest.importorskip("debugpy", reason="debugpy is in the dev group")
    alone = debugged(environment, folder, agents=False)
    beside = debugged(environment, folder, agents=True)
    assert beside == alone
    stops, *rest = alone
    assert (len(stops), *rest) == (18, 0, "81\n", "")
    stack = [("add", 6), ("fill", 23), ("<genexpr>", 29), ("<module>", 29)]
    assert stops[0] == ("breakpoint", stack, [("number", "0")])
    assert counted(folder)


# -- gevent ---------------------------------------------------------------------------------------

GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent, queue, threading, time

log, done, lock = [], queue.Queue(), threading.Lock()

def work(number):
    for turn in range(3):
        with lock:
            log.append((number, turn))
        try:
            time.sleep(0.001 * number)  # turns overlap
            if turn == 1:
                raise ValueError(number)
        except ValueError as error:
            log.append((number, "caught", error.args))
    done.put(number)
    return number * number

greenlets = [gevent.spawn(work, number) for number in range(1, 5)]
gevent.joinall(greenlets)
threads = [threading.Thread(target=work, args=(number,)) for number in (5, 6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
try:
    with gevent.Timeout(0.05):
        gevent.sleep(50)
except gevent.Timeout:
    log.append("timeout")
killed = gevent.spawn(gevent.sleep, 50)
gevent.sleep(0)
killed.kill()
print([greenlet.value for greenlet in greenlets], sorted(done.get() for _ in range(6)))
print(sorted(map(str, log)), type(killed.value).__name__)
"""
LATE = """
from vmscope import tool
tool.load_agent("vmscope.agents.exceptions")
"""


def test_gevent(environment: Environment, folder: Path) -> None:
    pytest.importorskip("gevent", reason="gevent is in the dev group")
    (folder / "greenlets.py").write_text(GREENLETS)
    alone, beside = both(environment, folder, "greenlets.py")
    assert beside == alone
    assert alone[::2] == (0, "")
    assert alone[1].startswith("[1, 4, 9, 16] [1, 2, 3, 4, 5, 6]\n")
    assert counted(folder) == 1


def test_gevent_that_has_patched_what_vmscope_uses(environment: Environment, folder: Path) -> None:
    pytest.importorskip("gevent", reason="gevent is in the dev group")
    (folder / "greenlets.py").write_text(GREENLETS)
    (folder / "late.py").write_text(GREENLETS.replace("\nlog,", f"{LATE}\nlog,"))
    assert environment.run("late.py", cwd=folder) == environment.run("greenlets.py", cwd=folder)


# -- what is taken --------------------------------------------------------------------------------

TAKEN = programs.source("coexistence/taken")


@pytest.mark.skipif(sys.version_info < (3, 13), reason="PyRefTracer came with 3.13")
@pytest.mark.parametrize("kind", ["VM_OBJECT", "SAMPLED_OBJECT"])
def test_what_tracemalloc_uses(environment: Environment, kind: str) -> None:
    name = f"CAN_GENERATE_{kind}_ALLOC_EVENTS"
    code = f"{TAKEN}ask('allocations')\nprint(len(tracemalloc.take_snapshot().traces) > 0)"
    log = f"agent allocations: not available in this VM now: {name}; held by tracemalloc\n"
    assert environment.run("-Xtracemalloc", "-c", code, name) == (0, f"{log}98 False\nTrue\n", "")
    code = f"{TAKEN}tracemalloc.start(); tracemalloc.stop()\nask('allocations')"  # 3.13.0 leaves the slot as it was
    assert environment.run("-c", code, name) == (0, "held True\n", "")


@pytest.mark.parametrize("name", ["CAN_SUSPEND", "CAN_GENERATE_BREAKPOINT_EVENTS"])
def test_others_have_every_tool_id(environment: Environment, name: str) -> None:
    code = f"""{TAKEN}
for number in range(6):
    sys.monitoring.use_tool_id(number, f"tool-{{number}}")
ask("asks")
sys.monitoring.free_tool_id(5)
ask("asks").dispose_environment()
sys.monitoring.use_tool_id(5, "profiler")
ask("asks")
"""
    refused = "agent asks: not available in this VM now: {}; held by tool-0 (tool id 0), tool-1 (tool id 1), "
    refused = refused.format(name) + "tool-2 (tool id 2), tool-3 (tool id 3), tool-4 (tool id 4), {} (tool id 5)\n"
    said = f"{refused.format('tool-5')}98 False\nheld True\n{refused.format('profiler')}98 False\n"
    assert environment.run("-c", code, name) == (0, said, "")


def test_every_tool_id_but_ours(environment: Environment) -> None:
    code = f"""{TAKEN}
env = tool.vm().get_env(agent="first")
env.add_capabilities({{Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS}})
env.set_event_callbacks({{tool.Event.METHOD_ENTRY: lambda *event: None}})
env.set_event_notification_mode(True, tool.Event.METHOD_ENTRY)
for number in range(6):
    if sys.monitoring.get_tool(number) is None:
        sys.monitoring.use_tool_id(number, "other")
ask("second")
"""
    assert environment.run("-c", code, "CAN_SUSPEND") == (0, "held True\n", "")


def test_another_agent_suspends(environment: Environment) -> None:
    code = f"{TAKEN}first = ask('first')\nask('second')\nfirst.dispose_environment()\nask('third')"
    refused = "agent second: not available in this VM now: CAN_SUSPEND; held by first"
    assert environment.run("-c", code, "CAN_SUSPEND") == (0, f"held True\n{refused}\n98 False\nheld True\n", "")
