"""What is switched on by name: the counts agree with the program's own, and the program does not notice."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests import programs
from tests.conftest import StartVMScope
from tests.support import JDK, SETTLED
from vmscope import native
from vmscope.instruments import INSTRUMENTS

ROOT = Path(__file__).parents[2]

NAMES = [row[0] for row in INSTRUMENTS]
needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")

PRELUDE = programs.source("instruments/prelude")


def run(code: str, *options: str, status: int = 0, stderr: str = "") -> list[dict[str, Any]]:
    """What the program answers; it must be as silent as without instruments."""
    command = [sys.executable, *options, "-c", PRELUDE + dedent(code)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (process.stderr, process.returncode) == (stderr, status)
    return [json.loads(line) for line in process.stdout.splitlines()]


# -- by name --------------------------------------------------------------------------------------


def test_an_unknown_name_lists_the_names_and_switches_nothing_on() -> None:
    code = """
        try:
            vmscope.instrument("warnings", "coffee")
        except vmscope.VMScopeError as error:
            answer(message=str(error), value=isinstance(error, ValueError), kind=type(error).__name__)
        answer(**values("python.warnings.shown"))
    """
    message = f"no instrument is called 'coffee'; there are {', '.join(NAMES)}"
    assert run(code) == [{"message": message, "value": True, "kind": "InstrumentError"}, {}]


def test_an_option_that_names_none_is_one_line() -> None:
    command = [sys.executable, "-m", "vmscope", "run", "-XX:Instrument=asyncio,coffee", "-c", "print('ran')"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("vmscope: no instrument is called 'coffee'; there are asyncio,")
    assert process.stderr.count("\n") == 1


def test_twice_does_nothing() -> None:
    code = """
        import warnings
        vmscope.instrument("warnings", "warnings")
        show = warnings._showwarnmsg
        vmscope.instrument("warnings")
        answer(same=show is warnings._showwarnmsg)
    """
    assert run(code) == [{"same": True}]


def test_what_is_not_switched_on_costs_nothing() -> None:
    """Nothing of an instrument is imported, hooked or wrapped; the program's modules are as they come."""
    code = """
        import asyncio, concurrent.futures.process, concurrent.futures.thread, warnings
        functions = (
            warnings._showwarnmsg, asyncio.BaseEventLoop.create_task, concurrent.futures.ThreadPoolExecutor.submit,
            concurrent.futures.ProcessPoolExecutor.submit,
        )
        answer(modules=[name for name in sys.modules if name.startswith("vmscope.instruments")],
               finders=[str(finder) for finder in sys.meta_path if type(finder).__module__.startswith("vmscope")],
               own=all(each.__code__.co_filename == sys.modules[each.__module__].__file__ for each in functions),
               running=type(asyncio._set_running_loop).__name__,
               tools=[tool for tool in range(6) if sys.version_info >= (3, 12) and sys.monitoring.get_tool(tool)])
    """
    nothing: list[object] = []
    wanted = {"modules": nothing, "finders": nothing, "own": True, "running": "builtin_function_or_method"}
    assert run(code) == [{**wanted, "tools": nothing}]


def test_what_is_named_and_not_used_imports_only_what_waits() -> None:
    code = """
        before = set(sys.modules)
        vmscope.instrument("asyncio", "executors", "gunicorn", "uvicorn")
        answer(modules=sorted(set(sys.modules) - before), counters=len(values("python.asyncio")))
    """
    assert run(code) == [
        {"modules": ["vmscope.errors._agents", "vmscope.instruments", "vmscope.instruments._imports"], "counters": 0}
    ]


def test_every_row_is_there_with_its_kind_and_units() -> None:
    """An outside reader finds each once there was something to count; the Python that it needs is the row's too."""
    names = [name for name in NAMES if name != "exceptions" or sys.version_info >= (3, 12)]
    code = f"""
        import asyncio, concurrent.futures.process, concurrent.futures.thread, statsd.client, warnings
        from vmscope.instruments.wsgi import Middleware
        vmscope.instrument(*{names!r})
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_: None
        warnings.warn("x")
        try: int("x")
        except ValueError: pass
        def app(environ, start_response):
            start_response("200 OK", [])
            return []
        Middleware(app)({{"REQUEST_METHOD": "GET"}}, lambda *_: None)
        asyncio.run(asyncio.sleep(0))
        exec({SETTLED!r})
        settled()
        with vmscope.vm("self") as vm:
            answer(**{{name: [counter.units, counter.variability] for name, counter in vm.counters.items()}})
    """
    (shown,) = run(code)
    variability = {"counter": 2, "gauge": 3, "histogram": 2}
    missing = []
    for module in names:
        rows = importlib.import_module(f"vmscope.instruments.{module}").ROWS
        assert len({row[0] for row in rows}) == len(rows)
        for name, kind, units, feed, since, source, meaning in rows:
            assert feed in ("event", "timer")
            assert since == ("3.12" if module == "exceptions" else "")
            assert source
            assert meaning.endswith(".")
            entry = re.escape(f"{name}.sum" if kind == "histogram" else name).replace(re.escape("..."), '[^"]+')
            found = [value for known, value in shown.items() if re.fullmatch(entry, known)]
            if not found or [units, variability[kind]] not in found:
                missing.append((name, found))
    assert missing == []


def test_stop_takes_them_out_of_the_program_and_start_puts_them_back() -> None:
    code = """
        import asyncio, concurrent.futures.process, concurrent.futures.thread, warnings
        def state():
            executors = [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor]
            return [*((kind.submit, kind.shutdown) for kind in executors), warnings._showwarnmsg,
                    asyncio._set_running_loop, asyncio.events._set_running_loop, asyncio.BaseEventLoop.create_task,
                    sys.monitoring and [sys.monitoring.get_tool(tool) for tool in range(6)]]
        async def work():
            asyncio.create_task(asyncio.sleep(0))
            await asyncio.get_running_loop().run_in_executor(None, os.listdir, "/")
            sys.audit("family.event")
            warnings.warn("x")
            try: raise Own
            except Own: pass
        class Own(Exception): pass
        def counted():
            asyncio.run(work())
            answer(tasks=values("python.asyncio.tasks.")["created"], warnings=values("python.warnings.shown")[""],
                   calls=values("python.executors.threads.")["completed"],
                   audit=values("python.audit.events{family=")['"family"}'],
                   errors=values("python.exceptions{type=").get('"Own"}', 1))
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_: None
        if sys.version_info < (3, 12): sys.monitoring = None
        before = state()
        names = "asyncio audit executors warnings uvicorn".split() + ["exceptions"] * bool(sys.monitoring)
        vmscope.instrument(*names)
        after = state()
        counted()
        vmscope.stop()
        answer(back=state() == before, changed=sum(one != other for one, other in zip(before, after)))
        counted()
        vmscope.start()
        answer(on=sum(one != other for one, other in zip(before, state())))
        vmscope.instrument(*names)
        sys.audit("family.event")
        counted()
    """
    first, back, off, on, again = run(code)
    assert {**first, "tasks": 0} == {"tasks": 0, "warnings": 1, "calls": 1, "audit": 1, "errors": 1}
    assert first["tasks"] >= 2
    assert back == {"back": True, "changed": 7 if sys.version_info >= (3, 12) else 6}
    assert off == first
    assert on == {"on": back["changed"]}
    errors = 2 if sys.version_info >= (3, 12) else 1
    assert again == {"tasks": 2 * first["tasks"], "warnings": 2, "calls": 2, "audit": 3, "errors": errors}


def test_what_the_program_has_built_upon_stays() -> None:
    code = """
        import warnings
        vmscope.instrument("warnings")
        ours = warnings._showwarnmsg
        warnings._showwarnmsg = lambda message: ours(message)
        for _ in range(3):
            vmscope.stop()
            vmscope.start()
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_: None
        warnings.warn("x")
        answer(counted=values("python.warnings.shown")[""])
    """
    assert run(code) == [{"counted": 1}]


def test_a_loop_that_runs_through_a_stop_and_a_start() -> None:
    code = """
        vmscope.instrument("asyncio")
        import asyncio
        async def main():
            loop = asyncio.get_running_loop()
            await asyncio.sleep(0.25)  # several periods of the timer
            vmscope.stop()
            await asyncio.sleep(0.25)  # a timer would come by now
            answer(timers=len(loop._scheduled), loops=values("python.asyncio.")["loops"])
            vmscope.start()
            await asyncio.sleep(0.25)  # several periods of the timer
            answer(timers=len(loop._scheduled), loops=values("python.asyncio.")["loops"])
        asyncio.run(main())
        answer(loops=values("python.asyncio.")["loops"])
    """
    assert run(code) == [{"timers": 0, "loops": 0}, {"timers": 1, "loops": 1}, {"loops": 0}]


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="a hook of the Python twin needs frames of its own")
def test_near_the_recursion_limit_the_program_notices_nothing() -> None:
    code = """
        import traceback
        def deep(levels):
            if levels:
                return deep(levels - 1)
            try: os.listdir("/"); int("x")
            except (ValueError, RecursionError) as error:
                return type(error).__name__
        def scan():
            found = []
            for levels in range(sys.getrecursionlimit() - 60, sys.getrecursionlimit() + 1):
                try: found.append(deep(levels))
                except RecursionError: found.append("none")
            return found
        before = scan()
        vmscope.instrument("audit", *["exceptions"] * (sys.version_info >= (3, 12)))
        answer(same=scan() == before, kinds=sorted(set(before)))
        def endless(): endless()
        try: endless()
        except RecursionError as error:
            answer(last=traceback.extract_tb(error.__traceback__)[-1].name)
    """
    same, last = run(code)
    assert same["same"]
    assert {"ValueError", "none"} <= set(same["kinds"])
    assert last == {"last": "endless"}


def test_a_request_that_ends_in_a_forked_child_is_its_parents() -> None:
    code = """
        from vmscope.instruments.wsgi import Middleware
        pid = 0
        def app(environ, start_response):
            global pid
            start_response("200 OK", [])
            pid = os.fork()
            return []
        Middleware(app)({"REQUEST_METHOD": "GET"}, lambda *_: None)
        if pid:
            os.waitpid(pid, 0)
        answer(**{name: count for name, count in values("http.server.").items() if "{" not in name})
    """
    child, parent = run(code, "-W", "ignore")
    assert child == {"requests": 0, "errors": 0, "active": 0, "busy": 0}
    assert parent == {"requests": 1, "errors": 0, "active": 0, "busy": 0}


def test_what_is_not_imported_is_waited_for_and_not_imported() -> None:
    code = """
        vmscope.instrument(*(name for name in "asyncio executors gunicorn uvicorn warnings audit".split()))
        modules = ["asyncio", "concurrent.futures", "gunicorn", "uvicorn"]
        answer(loaded=[name for name in modules if name in sys.modules], counters=values("python.asyncio"))
        import importlib.util
        importlib.util.find_spec("asyncio")
        import asyncio, inspect
        answer(source=inspect.getsource(asyncio)[:3], loader=type(asyncio.__loader__).__name__)
        asyncio.run(asyncio.sleep(0))
        answer(created=values("python.asyncio.tasks.")["created"])
        try:
            import uvicorn.nothing
        except ImportError as error:
            answer(error=str(error))
    """
    found = run(code)
    assert found[0] == {"loaded": [], "counters": {}}
    assert found[1] == {"source": '"""', "loader": "SourceFileLoader"}
    assert found[2]["created"] >= 1
    assert found[3] == {"error": "No module named 'uvicorn.nothing'"}


def test_a_counter_of_the_program_with_the_name_of_an_instruments_own() -> None:
    """It is an error where somebody asked; where it comes by an import, the instrument stays off and nobody notices."""
    code = """
        vmscope.counter("python.asyncio.loops")
        vmscope.counter("python.warnings.shown", units=vmscope.Units.BYTES)
        vmscope.instrument("asyncio")
        import asyncio, warnings
        asyncio.run(asyncio.sleep(0))
        for _ in "ab":
            try:
                vmscope.instrument("warnings")
            except vmscope.VMScopeError as error:
                answer(error=str(error))
    """
    message = {"error": "python.warnings.shown exists as a counter and cannot be this counter"}
    assert run(code) == [message, message]


def test_an_autostarted_program_whose_environment_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come by a thread of vmscope's own, which imports nothing that would take it for the program's."""
    code = """
        import sys, time, vmscope.boot
        vmscope.boot.autostart()
        import vmscope
        end = time.monotonic() + 20
        while not vmscope.status().path and time.monotonic() < end: time.sleep(0.01)  # tests.wait is an import too
        print("threading" in sys.modules, flush=True)
        import asyncio, warnings
        warnings.simplefilter("always"); warnings.showwarning = lambda *_: None
        warnings.warn("x")
        asyncio.run(asyncio.sleep(0.15))  # a period of the timer
        from vmscope.counters import REGISTRY
        print(REGISTRY.get("python.warnings.shown").value, REGISTRY.get("python.asyncio.tasks.created").value > 0)
    """
    monkeypatch.setenv("VMSCOPE_TOOL_OPTIONS", "-XX:Instrument=asyncio,audit,executors,gunicorn,uvicorn,warnings")
    command = [sys.executable, "-c", dedent(code)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (process.stdout, process.stderr) == ("False\n1 True\n", "")


@needs_monitoring
def test_the_jdk_reads_them(jdk: JDK, start_vmscope: StartVMScope) -> None:
    child = start_vmscope("-XX:Instrument=exceptions,warnings", code="try: int('x')\nexcept ValueError: pass")
    printed = jdk.run("jcmd", str(child.pid), "PerfCounter.print").stdout
    assert 'python.exceptions{type="ValueError"}=1' in printed.splitlines()
    assert "python.warnings.shown=0" in printed.splitlines()


# -- asyncio --------------------------------------------------------------------------------------


def test_a_loops_tasks_and_lag() -> None:
    code = """
        vmscope.instrument("asyncio")
        import asyncio
        async def main():
            asyncio.get_running_loop().slow_callback_duration = 60
            before = values("python.asyncio.")["tasks.created"]
            tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(9)]
            await asyncio.sleep(0.35)  # several periods of the timer
            calm = values("python.asyncio.")
            time.sleep(0.4)  # holds up the loop
            await asyncio.sleep(0.15)  # a period of the timer
            late = values("python.asyncio.")
            answer(created=calm["tasks.created"] - before, tasks=calm["tasks"], own=len(asyncio.all_tasks()),
                   loops=calm["loops"], calm=calm["lag.last"], longest=late["lag.longest"])
        asyncio.run(main())
        lag = REGISTRY.get("python.asyncio.lag")
        answer(count=lag.count, sum=lag.sum, **values("python.asyncio."))
    """
    inside, after = run(code, "-X", "dev", "-W", "error")
    assert (inside["created"], inside["tasks"], inside["own"], inside["loops"]) == (9, 10, 10, 1)
    assert 0.2e9 < inside["longest"] < 5e9
    assert (after["loops"], after["tasks"]) == (0, 0)
    assert 3 <= after["count"] <= 20
    assert inside["longest"] <= after["sum"] * 1e9 + 1
    assert after["lag.longest"] == inside["longest"]


def test_loops_in_threads_started_before_and_after() -> None:
    code = """
        import asyncio
        from tests.wait import wait_for
        class Thread(threading.Thread):
            def __init__(self):
                super().__init__()
                self.end = threading.Event()
                self.start()
            def run(self):
                asyncio.run(self.wait())
            async def wait(self):
                while not self.end.is_set():
                    await asyncio.sleep(0.01)  # a loop that works
        def count(name):
            return values("python.asyncio.")[name]
        before = [Thread() for _ in range(3)]
        time.sleep(0.2)  # they run for a while without being counted
        vmscope.instrument("asyncio")
        wait_for(lambda: count("loops") == 3)
        after = [Thread() for _ in range(2)]
        wait_for(lambda: count("loops") == 5 and count("tasks") == 5)
        for thread in before:
            thread.end.set()
            thread.join()
        answer(loops=count("loops"))
        for thread in after:
            thread.end.set()
            thread.join()
        answer(loops=count("loops"), tasks=count("tasks"))
    """
    assert run(code, "-W", "error") == [{"loops": 2}, {"loops": 0, "tasks": 0}]


def test_a_loop_runs_and_stops_again_and_again() -> None:
    """Its own timers never come to run, and none is left behind when it is closed."""
    code = """
        vmscope.instrument("asyncio")
        import asyncio
        loop = asyncio.new_event_loop()
        for _ in range(1000):
            loop.run_until_complete(asyncio.sleep(0))
        held = [len(loop._scheduled), values("python.asyncio.")["loops"]]
        loop.close()
        answer(held=held[0] < 110, loops=held[1], closed=loop.is_closed(), **values("python.asyncio.tasks."))
    """
    assert run(code, "-X", "dev", "-W", "error") == [{"held": True, "loops": 0, "closed": True, "created": 1000}]


def test_tasks_factories_and_debug_traces_are_the_programs() -> None:
    code = """
        vmscope.instrument("asyncio")
        import asyncio, inspect
        async def main():
            loop = asyncio.get_running_loop()
            task = asyncio.create_task(asyncio.sleep(0), name="mine")
            answer(factory=loop.get_task_factory(), name=task.get_name(), line=task._source_traceback[-1].name,
                   callbacks=len(getattr(task, "_callbacks", None) or ()))
            await task
            try:
                loop.create_task(None)
            except TypeError as error:
                answer(error=True)
        asyncio.run(main(), debug=True)
        answer(signature=str(inspect.signature(asyncio.BaseEventLoop.create_task)))
    """
    first, second, third = run(code)
    assert first["factory"] is None
    assert first["name"] == "mine"
    assert first["line"] == "create_task"  # asyncio.create_task, which called the loop's
    assert first["callbacks"] == 0
    assert second == {"error": True}
    assert third["signature"] == str(inspect.signature(asyncio.BaseEventLoop.create_task))


def test_loops_of_a_forked_child_count_from_zero() -> None:
    code = """
        vmscope.instrument("asyncio", "executors")
        import asyncio, concurrent.futures
        async def main():
            tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(5)]
            await asyncio.sleep(0.15)  # a period of the timer
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0)
            pid = os.fork()
            if not pid:
                child()
                os._exit(0)
            os.waitpid(pid, 0)
        def child():
            answer(**values("python.asyncio.t"), **values("python.asyncio.loo"), **values("python.executors.threads."))
            asyncio.set_event_loop(None)
            asyncio._set_running_loop(None)
            asyncio.run(again())
            with concurrent.futures.ThreadPoolExecutor(1) as executor:
                executor.submit(int)
            answer(loops=values("python.asyncio.")["loops"], **values("python.executors.threads."))
        async def again():
            await asyncio.create_task(asyncio.sleep(0.15))  # a period of the timer
            own = values("python.asyncio.")
            answer(loops=own["loops"], tasks=own["tasks"])
        asyncio.run(main())
    """
    nothing = {"workers": 0, "queued": 0, "completed": 0}
    # Python 3.12 and later warn of the executor's own thread.
    first, second, third = run(code, "-W", "ignore")
    assert first == {"asks": 0, "asks.created": 0, "ps": 0, **nothing}
    assert second == {"loops": 1, "tasks": 2}
    assert third == {"loops": 0, **nothing, "completed": 1}


# -- executors ------------------------------------------------------------------------------------


def test_threads_of_executors() -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor, wait
        vmscope.instrument("executors")
        def show():
            answer(**values("python.executors.threads."))
        gate = threading.Event()
        first = ThreadPoolExecutor(2)
        held = [first.submit(gate.wait) for _ in range(6)]
        second = ThreadPoolExecutor(3)
        more = [second.submit(gate.wait)]
        show()
        held[-1].cancel()
        show()
        gate.set()
        wait(held[:-1] + more)
        failed = second.submit(int, "x")
        failed.exception()
        first.shutdown()
        second.shutdown()
        show()
        third = ThreadPoolExecutor(2)
        third.submit(int).result()
        workers = list(third._threads)
        del third
        gc.collect()
        [worker.join() for worker in workers]
        show()
        try:
            first.submit(int)
        except RuntimeError:
            show()
    """
    assert run(code, "-W", "error") == [
        {"workers": 3, "queued": 4, "completed": 0},
        {"workers": 3, "queued": 3, "completed": 0},
        {"workers": 0, "queued": 0, "completed": 7},
        {"workers": 0, "queued": 0, "completed": 8},
        {"workers": 0, "queued": 0, "completed": 8},
    ]


def test_processes_of_executors() -> None:
    code = """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        vmscope.instrument("executors")
        executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
        held = [executor.submit(time.sleep, 0.5) for _ in range(5)]
        answer(**values("python.executors.processes."))
        executor.shutdown()
        answer(**values("python.executors.processes."))
    """
    assert run(code) == [{"workers": 2, "queued": 3, "completed": 0}, {"workers": 0, "queued": 0, "completed": 5}]


def test_executors_used_by_many_threads_come_to_rest_at_zero() -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        vmscope.instrument("executors")
        sys.setswitchinterval(1e-5)
        def use():
            for _ in range(20):
                with ThreadPoolExecutor(3) as executor:
                    for future in [executor.submit(int) for _ in range(20)][::3]:
                        future.cancel() or done.append(1)
        done = []
        threads = [threading.Thread(target=use) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        own = values("python.executors.threads.")
        kept = 8 * 20 * 20 - 8 * 20 * 7 + len(done)
        answer(workers=own["workers"], queued=own["queued"], missing=kept - own["completed"])
    """
    assert run(code) == [{"workers": 0, "queued": 0, "missing": 0}]


# -- exceptions, warnings, audit events -----------------------------------------------------------


@needs_monitoring
def test_exceptions_are_counted_where_they_are_raised() -> None:
    code = """
        vmscope.instrument("exceptions")
        class Own(Exception): pass
        def deep(levels):
            if levels:
                try:
                    deep(levels - 1)
                finally:
                    levels = 0
            raise Own
        for _ in range(7):
            try: deep(0)
            except Own: pass
        try: deep(30)
        except Own: pass
        for value in "x1y":
            try: int(value)
            except ValueError: pass
        list(iter([1, 2])); [*(x for x in "ab")]; hasattr(1, "x")
        try:
            try: {}[1]
            except KeyError: raise
        except KeyError: pass
        found = values("python.exceptions")
        names = "Own ValueError KeyError AttributeError StopIteration".split()
        answer(**{name: found.get('{type="%s"}' % name, 0) for name in names},
               consistent=found.pop("") == sum(found.values()))
    """
    wanted = {"Own": 8, "ValueError": 2, "KeyError": 1, "AttributeError": 0, "StopIteration": 0, "consistent": True}
    assert run(code) == [wanted]


@needs_monitoring
def test_a_free_tool_is_found_and_none_is_an_error() -> None:
    code = """
        for tool in (0, 1, 2, 4, 5): sys.monitoring.use_tool_id(tool, "other")
        vmscope.instrument("exceptions")
        answer(tools=[sys.monitoring.get_tool(tool) for tool in range(6)])
    """
    assert run(code) == [{"tools": ["other", "other", "other", "vmscope", "other", "other"]}]
    code = """
        for tool in range(6): sys.monitoring.use_tool_id(tool, "other")
        for _ in "ab":
            try: vmscope.instrument("exceptions")
            except vmscope.VMScopeError as error: answer(error=str(error))
    """
    message = "the instrument exceptions needs a tool of sys.monitoring, and all of them are taken"
    assert run(code) == [{"error": message}] * 2


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="3.12 and later have sys.monitoring")
def test_exceptions_on_a_python_without_monitoring() -> None:
    code = """
        try: vmscope.instrument("exceptions")
        except vmscope.VMScopeError as error: answer(error=str(error))
    """
    assert run(code) == [{"error": "the instrument exceptions needs Python 3.12 or later, which has sys.monitoring"}]


def test_warnings_reach_the_program_as_ever() -> None:
    code = """
        import warnings
        vmscope.instrument("warnings")
        seen = []
        warnings.simplefilter("always")
        warnings.showwarning = lambda *args: seen.append(args[1].__name__)
        for _ in range(3): warnings.warn("x")
        warnings.warn("x", DeprecationWarning)
        with warnings.catch_warnings(record=True) as recorded:
            warnings.warn("x", FutureWarning)
        warnings.simplefilter("ignore")
        warnings.warn("x")
        warnings.simplefilter("error")
        try: warnings.warn("x")
        except UserWarning: pass
        answer(seen=seen, recorded=len(recorded))
        answer(**values("python.warnings.shown"))
    """
    seen, counted = run(code)
    assert seen == {"seen": ["UserWarning"] * 3 + ["DeprecationWarning"], "recorded": 1}
    assert counted == {
        "": 5,
        '{category="other"}': 0,
        '{category="UserWarning"}': 3,
        '{category="DeprecationWarning"}': 1,
        '{category="FutureWarning"}': 1,
    }


def test_a_resource_warning_says_where_the_object_came_from() -> None:
    code = """
        vmscope.instrument("warnings")
        open(os.devnull)
        gc.collect()
    """
    command = [sys.executable, "-X", "tracemalloc", "-W", "always", "-c", PRELUDE + dedent(code)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Object allocated at (most recent call last)" in process.stderr


def test_audit_events_and_a_bound_on_their_names() -> None:
    code = """
        vmscope.instrument("audit")
        before = values("python.audit.events")
        own = []
        sys.addaudithook(lambda event, args: own.append(event.partition(".")[0]))
        for _ in range(5): os.listdir("/")
        open(os.devnull).close()
        for i in range(200): sys.audit(f"family{i}.event")
        sys.audit("family3.another"); sys.audit("a b.\\u20ac")
        after = values("python.audit.events")
        after.pop(""), before.pop("")
        answer(os=after['{family="os"}'] - before.get('{family="os"}', 0), own_os=own.count("os"), names=len(after),
               other=after['{family="other"}'], known=after.get('{family="family3"}'),
               kept=sum(name.startswith('{family="family') for name in after))
    """
    (found,) = run(code)
    assert found["os"] == found["own_os"] == 5
    assert found["names"] == 65
    assert found["known"] == 2
    assert found["other"] >= 200 - found["kept"]
