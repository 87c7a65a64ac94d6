"""The agent `trace`, on programs and in a live process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import programs
from tests.support import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="breakpoints need CPython 3.12")

SHOP = programs.source("agent_trace/shop")

READ = """
import vmscope
def seen(name):
    events = vmscope.Units.EVENTS
    calls = vmscope.counter("trace.calls", units=events).labels(function=name)
    raised = vmscope.counter("trace.raised", units=events).labels(function=name)
    bounds = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0)
    time = vmscope.histogram("trace.time", bounds=bounds).labels(function=name)
    return calls.value, time.count, raised.value
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def traced(folder: Path, options: str, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(READ + textwrap.dedent(code))
    return run(folder, "-m", "vmscope", "run", f"-pyagent:vmscope.agents.trace={options}", "app.py")


def test_functions_of_modules_that_are_imported_later(folder: Path) -> None:
    code = """
        import shop
        shop.total([1, 2, 3])
        list(shop.steps(4))
        shop.aside()
        shop.Cart().count()
        for name in ("total", "each", "steps", "aside", "Cart.count", "Cart.count.<locals>.inner", "Cart"):
            print(name, *seen(f"shop.{name}"))
    """
    done = traced(folder, "match=shop.*", code)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "total 1 1 0",
        "each 3 3 0",
        "steps 1 1 0",
        "aside 1 1 0",
        "Cart.count 1 1 0",
        "Cart.count.<locals>.inner 2 2 0",
        "Cart 0 0 0",
    ]


def test_only_what_matches(folder: Path) -> None:
    code = """
        import shop
        def mine():
            return shop.total([1])
        mine()
        mine()
        print(seen("shop.total"), seen("shop.each"), seen("__main__.mine"), seen("__main__.seen"))
    """
    done = traced(folder, "match=shop.tot*,match=__main__.mine", code)
    assert (done.stdout, done.stderr) == ("(2, 2, 0) (0, 0, 0) (2, 2, 0) (0, 0, 0)\n", "")


@pytest.mark.parametrize(("options", "expected"), [("", "(4, 3, 1)"), (",raises=on", "(4, 4, 1)")])
def test_calls_that_are_left_by_an_exception(folder: Path, options: str, expected: str) -> None:
    code = """
        import shop
        def call(price):
            try:
                return shop.each(price)
            except ValueError:
                return None
        for price in (1, -1, 2, 3):
            call(price)
        print(seen("shop.each"))
    """
    done = traced(folder, f"match=shop.each{options}", code)
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def test_recursion_threads_and_coroutines(folder: Path) -> None:
    code = """
        import asyncio, threading

        def down(number):
            return number and down(number - 1)

        async def sleeps():
            await asyncio.sleep(0.001)  # a coroutine that gives way

        async def main():
            await asyncio.gather(*(sleeps() for _ in range(10)))

        threads = [threading.Thread(target=down, args=(50,)) for _ in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        asyncio.run(main())
        print(seen("__main__.down"), seen("__main__.sleeps"))
    """
    done = traced(folder, "match=__main__.down,match=__main__.sleeps", code)
    assert (done.stdout, done.stderr) == ("(204, 204, 0) (10, 10, 0)\n", "")


def test_the_report(folder: Path) -> None:
    code = """
        import time
        def slow():
            time.sleep(0.05)  # the duration that is measured
        def quick():
            pass
        for _ in range(3):
            quick()
        slow()
    """
    done = traced(folder, "match=__main__.*,report=on", code)
    head, first, second = done.stderr.splitlines()[:3]
    assert head.split() == ["calls", "seconds", "mean", "ms", "longest", "function"]
    assert (first.split()[0], first.split()[-1]) == ("1", "__main__.slow")
    assert float(first.split()[1]) >= 0.05
    assert (second.split()[0], second.split()[-1]) == ("3", "__main__.quick")


def test_loaded_and_unloaded_in_a_live_process(folder: Path) -> None:
    code = READ + textwrap.dedent(
        """
        import sys, shop
        from vmscope import tool
        shop.total([1])
        agent = tool.load_agent("vmscope.agents.trace", "match=shop.*")
        shop.total([1, 2])
        tool.unload_agent(agent)
        shop.total([1])
        print(seen("shop.total"), seen("shop.each"))
        print([number for number in range(6) if sys.monitoring.get_tool(number)], tool.vm().environments)
        """
    )
    done = run(folder, "-c", code)
    assert (done.stdout, done.stderr) == ("(1, 1, 0) (2, 2, 0)\n[] []\n", "")


def test_other_code_has_no_events(folder: Path) -> None:
    code = """
        import sys, shop
        from vmscope import tool
        tools = [number for number in range(6) if sys.monitoring.get_tool(number)]
        print([sys.monitoring.get_events(number) for number in tools])
        ours = shop.total.__code__, shop.aside.__code__
        print([bool(sys.monitoring.get_local_events(tools[0], code)) for code in ours])
    """
    done = traced(folder, "match=shop.total", code)
    assert (done.stdout, done.stderr) == ("[0]\n[True, False]\n", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [("", "no functions: give at least one match="), ("match=a,raises=yes", "option raises=yes: it is on or off")],
)
def test_bad_options_start_nothing(folder: Path, options: str, message: str) -> None:
    done = traced(folder, options, "print('not reached')")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
