"""Forked processes: each has a region of its own, and nothing of its parent's is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests import programs, sandbox
from tests.conftest import StartPython
from tests.sandbox import answers
from tests.support import User

pytestmark = pytest.mark.usefixtures("implementation")

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"

FORK = programs.source("fork/fork")


def fork(code: str, *, options: tuple[str, ...] = (), cwd: Path | str = ".") -> list[dict[str, object]]:
    return answers(FORK + dedent(code), options=options, cwd=cwd)


def alone(code: str) -> list[dict[str, object]]:
    """The same, with a /tmp of its own."""
    return [json.loads(line) for line in sandbox.run(FORK + dedent(code), mounts=TMP).splitlines()]


ENDINGS = ["pass", "sys.exit(3)", "os._exit(4)", "os.kill(os.getpid(), 9)", "vmscope.stop()", "raise ValueError"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_child(ending: str) -> None:
    code = f"""
        vmscope.start("-XX:PerfDataSamplingInterval=5", "-Da=1")
        counter, gauge = vmscope.counter("test.counter"), vmscope.gauge("test.gauge")
        text, constant = vmscope.text("test.text"), vmscope.constant("test.constant", 5)
        parent = vmscope.status().path
        counter.add(100)
        gauge.set(-3)
        text.set("kept")
        def work():
            early = counter.value, gauge.value, text.value, constant.value
            first = vmscope.status()
            counter.add(2)
            vmscope.counter("test.own").inc()
            path = published()
            wait_for(lambda: region(path).get("test.counter") == 2)
            values = region(path)
            answer(early=early, path=first.path, running=first.running, own=path == path_of(os.getpid()),
                   locked=locked(path), text=values["test.text"], constant=values["test.constant"],
                   new=values["test.own"], arguments=values["java.rt.vmArgs"],
                   fresh=values["sun.os.hrt.ticks"] < (time.monotonic_ns() - before) and
                         values["vmscope.process.startTicks"] > 0,
                   parents=(region(parent).get("test.counter"), locked(parent)))
            os.close(2)
            {ending}
        wait_for(lambda: region(parent).get("test.counter") == 100)
        before = time.monotonic_ns()
        pid = fork(work)
        wait(pid)
        if os.path.exists(path_of(pid)):
            vmscope.stop()
            vmscope.start("-XX:PerfDataSamplingInterval=5")
        counter.inc()
        wait_for(lambda: region(parent).get("test.counter") == 101)
        answer(there=os.path.exists(parent), locked=locked(parent), left=os.path.exists(path_of(pid)),
               own="test.own" in region(parent))
        vmscope.stop()
        answer(there=os.path.exists(parent))
    """
    child, parent, end = fork(code)
    assert child == {
        "early": [0, 0, "kept", 5],
        "path": None,
        "running": True,
        "own": True,
        "locked": True,
        "text": "kept",
        "constant": 5,
        "new": 1,
        "arguments": "-XX:PerfDataSamplingInterval=5 -Da=1",
        "fresh": True,
        "parents": [100, True],
    }
    assert parent == {"there": True, "locked": True, "left": False, "own": False}
    assert end == {"there": False}


@pytest.mark.parametrize("ending", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_parent_that_ends_first(ending: str) -> None:
    """Its file goes, or can go: the child holds no lock on it. The child's stays and is kept current."""
    code = f"""
        read, write = os.pipe()
        def child():
            published()
            os.write(write, b"%d\\n" % os.getpid())
            wait_for(lambda: os.getppid() == grandparent)
            counter = vmscope.counter("test.count")
            counter.add(7)
            path = published()
            wait_for(lambda: region(path).get("test.count") == 7)
            answer(parent=os.path.exists(path_of(parent)) and locked(path_of(parent)), locked=locked(path),
                   value=region(path).get("test.count"))
        def work():
            global parent
            vmscope.start("-XX:PerfDataSamplingInterval=5")
            parent = os.getpid()
            fork(child)
            os.write(write, os.read(read, 100))
            {ending}
        grandparent = os.getpid()
        import ctypes
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        pid = fork(work)
        wait(pid)
        orphan, _ = os.waitpid(-1, 0)
        answer(orphan=os.read(read, 100) == b"%d\\n" % orphan)
        vmscope.start()
        vmscope.stop()
        answer(tree=tree())
    """
    child, orphan, left = alone(code)
    assert child == {"parent": False, "locked": True, "value": 7}
    assert orphan == {"orphan": True}
    assert left == {"tree": ["/tmp/hsperfdata_root"]}


def test_grandchildren() -> None:
    """Forked at once, while their parents wait to publish, and later."""
    code = """
        vmscope.start("-XX:PerfDataSamplingInterval=5")
        counter = vmscope.counter("test.depth")
        def work(depth=1):
            counter.add(depth)
            if depth % 2:
                published()
            pid = fork(lambda: work(depth + 1)) if depth < 5 else None
            path = published()
            wait_for(lambda: region(path).get("test.depth") == depth)
            answer(depth=depth, own=path == path_of(os.getpid()), locked=locked(path))
            if pid:
                wait(pid)
            vmscope.stop()
            answer(left=os.path.exists(path))
        wait(fork(work))
        answer(there=locked(vmscope.status().path))
    """
    lines = fork(code)
    assert lines.pop() == {"there": True}
    seen = sorted((line for line in lines if "depth" in line), key=str)
    assert seen == [{"depth": depth, "own": True, "locked": True} for depth in range(1, 6)]
    assert [line for line in lines if "left" in line] == [{"left": False}] * 5


def test_a_child_that_forks_all_the_time_before_it_is_published() -> None:
    code = """
        vmscope.start("-XX:PerfDataSamplingInterval=5")
        def work():
            for i in range(20):
                wait(fork(lambda: os._exit(0)))
            answer(own=published() == path_of(os.getpid()))
        wait(fork(work))
    """
    assert fork(code) == [{"own": True}]


def test_a_child_of_direct_mode(implementation: str) -> None:
    """The file is the parent's memory. A child has its own, and leaves the parent's alone before it does."""
    code = programs.source("fork/direct_mode")
    assert answers(code) == [
        {"count": 100, "child": 1, "parents": False},
        {"count": 6, "child": False, "direct": True},
        {"left": False, "mapped": False},
    ]


def test_a_fork_on_a_thread() -> None:
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # the program has threads of its own
        vmscope.start("-XX:PerfDataSamplingInterval=5")
        counter = vmscope.counter("test.count")
        def work():
            counter.add(3)
            path = published()
            wait_for(lambda: region(path).get("test.count") == 3)
            answer(own=path == path_of(os.getpid()))
            vmscope.stop()
            answer(left=os.path.exists(path))
            os._exit(0)
        def thread():
            global pid
            pid = fork(work)
        worker = threading.Thread(target=thread)
        worker.start()
        worker.join()
        wait(pid)
        counter.add(1)
        wait_for(lambda: region(vmscope.status().path).get("test.count") == 1)
        answer(locked=locked(vmscope.status().path))
    """
    assert fork(code) == [{"own": True}, {"left": False}, {"locked": True}]


def test_many_forks_while_threads_count() -> None:
    """And add counters: a child never has half an entry, the parent loses nothing."""
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # the program has threads of its own
        vmscope.start("-XX:PerfDataSamplingInterval=1", "-XX:PerfDataMemorySize=4m")
        counter = vmscope.counter("test.count")
        totals = []
        def update(number):
            total = 0
            while going:
                for i in range(50):
                    counter.inc()
                total += 50
                if total % 5000 == 0:
                    vmscope.counter(f"test.{number}.{total}").inc()
                time.sleep(0)
            totals.append(total)
        going = True
        threads = [threading.Thread(target=update, args=[i]) for i in range(3)]
        for thread in threads:
            thread.start()
        wrong, paths = 0, []
        for i in range(200):
            def work():
                if counter.value:
                    os._exit(1)
                if i % 20 == 0:
                    counter.inc()
                    path = published()
                    wait_for(lambda: region(path).get("test.count") == 1)
                    values = region(path)
                    status = vmscope.status()
                    made = [name for name in values if name.startswith("test.")]
                    known = [each.name for each in vmscope.counters.registry.REGISTRY if each.name.startswith("test.")]
                    if set(made) != set(known):
                        os._exit(2)
                    vmscope.stop()
                os._exit(0)
            wrong += wait(fork(work)) != 0
        going = False
        for thread in threads:
            thread.join()
        wait_for(lambda: region(vmscope.status().path).get("test.count") == sum(totals))
        answer(wrong=wrong, right=counter.value == sum(totals), locked=locked(vmscope.status().path))
    """
    assert fork(code) == [{"wrong": 0, "right": True, "locked": True}]


def test_forks_at_once_on_two_threads() -> None:
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        vmscope.start("-XX:PerfDataSamplingInterval=1")
        counter = vmscope.counter("test.count")
        def forks():
            for i in range(40):
                wait(fork(lambda: os._exit(0)))
                counter.inc()
        threads = [threading.Thread(target=forks) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for(lambda: region(vmscope.status().path).get("test.count") == 80)
        answer(locked=locked(vmscope.status().path))
    """
    assert fork(code) == [{"locked": True}]


def test_a_host_that_turns_warnings_into_errors() -> None:
    """From 3.12 on os.fork warns where a second thread runs, whoever made it.

    Hooks written in Python, of the program's and of modules like logging, run before it counts them.
    """
    code = """
        def hook():
            for i in range(10):
                sorted([i], key=lambda number: number)
        vmscope.start("-XX:PerfDataSamplingInterval=1")
        counter = vmscope.counter("test.count")
        for i in range(150):
            if i == 75:
                import concurrent.futures.thread, logging
                for when in ("before", "after_in_parent", "after_in_child"):
                    os.register_at_fork(**{when: hook})
            wait(fork(lambda: os._exit(0)))
            counter.inc()
            if i % 10 == 0:
                time.sleep(0.003)  # the mirror comes in between
        wait_for(lambda: region(vmscope.status().path).get("test.count") == 150)
        def work():
            published()
            for i in range(20):
                wait(fork(lambda: os._exit(0)))
            answer(child=True)
        wait(fork(work))
        answer(locked=locked(vmscope.status().path))
    """
    assert fork(code, options=("-W", "error")) == [{"child": True}, {"locked": True}]


def test_no_memory_is_writable_and_executable() -> None:
    """Not even where what follows a fork is Python's to call."""
    code = """
        def both():
            with open("/proc/self/maps") as file:
                return sum("wx" in line.split()[1] for line in file)
        import ctypes
        before = both()
        vmscope.start()
        for i in range(3):
            wait(fork(lambda: os._exit(0)))
        answer(more=both() - before)
    """
    assert fork(code) == [{"more": 0}]


def test_the_threads_come_back_while_what_forked_calls_another(implementation: str) -> None:
    """From 3.12 on they wait until os.fork has counted threads; what is called after it is no hook of it."""
    (found,) = fork("""
        vmscope.start()
        counter, path = vmscope.counter("test.count"), published()
        os.fork() or os._exit(0)
        counter.add(3)
        wait_for(lambda: region(path).get("test.count") == 3, seconds=10)
        answer(status=os.wait()[1])
    """)
    assert found == {"status": 0}


def test_a_fork_that_fails(private_user: User, start_python: StartPython) -> None:
    """The parent's region is kept current as before."""
    child = start_python(
        programs.source("fork/fails"),
        user=private_user,
        preload=[
            "ctypes",
            "functools",
            "resource",
            "tests.wait",
            "vmscope.runtime",
            "vmscope.reader.machine",
            "vmscope.reader.attachment",
        ],
    )
    assert child.readline() == "BlockingIOError"
    assert child.ask("") == "5"
    assert child.stop() == 0


@pytest.mark.parametrize(
    ("options", "saved"),
    [
        (["-XX:PerfDataSaveFile=here"], {"here": 0}),
        (["-XX:PerfDataSaveFile=at.%p"], {"at.{parent}": 0, "at.{child}": 1}),
        (["-XX:+PerfDataSaveToFile"], {"hsperfdata_{parent}": 0, "hsperfdata_{child}": 1}),
        (["-XX:+PerfDataSaveToFile", "-XX:+PerfDisableSharedMem"], {"hsperfdata_{parent}": 0, "hsperfdata_{child}": 1}),
    ],
)
def test_what_a_child_saves(options: list[str], saved: dict[str, int], tmp_path: Path) -> None:
    """Never the file that its parent will save; and not what it did not live to fill."""
    code = f"""
        vmscope.start(*{options!r})
        counter = vmscope.counter("test.child")
        def work():
            counter.inc()
            wait_for(lambda: vmscope.status().used)
            answer(child=os.getpid())
        wait(fork(work))
        answer(parent=os.getpid())
        vmscope.stop()
        answer(saved={{name: (region(name)["test.child"], region(name)["sun.rt.createVmBeginTime"] > 0)
                      for name in os.listdir()}})
    """
    child, parent, found = fork(code, cwd=tmp_path)
    names = {name.format(**child, **parent): [value, True] for name, value in saved.items()}
    assert found == {"saved": names}


def test_children_that_end_while_they_publish() -> None:
    """Some 20 ms after the fork: whatever comes first, nothing is left behind and nothing is printed."""
    code = """
        vmscope.start()
        random.seed(7)
        pids = []
        for i in range(80):
            def work(delay=random.uniform(0.015, 0.03)):
                time.sleep(delay)  # it ends as its thread publishes
            pids.append(fork(work))
            if i >= 3:
                wait(pids[i - 3])
        for pid in pids[-3:]:
            wait(pid)
        answer(left=[pid for pid in pids if os.path.exists(path_of(pid))])
    """
    assert fork(code) == [{"left": []}]


def test_no_thread_of_ours_shows_in_the_child() -> None:
    """Not even where logging, which the mirror's thread then uses, has looked at it."""
    code = """
        import logging
        logging.basicConfig(level=logging.DEBUG, handlers=[logging.NullHandler()])
        vmscope.start()
        def work():
            published()
            time.sleep(0.05)  # a thread of threading's would be there by now
            answer(threads=[thread.name for thread in threading.enumerate()])
        wait(fork(work))
        answer(threads=[thread.name for thread in threading.enumerate()])
    """
    assert fork(code) == [{"threads": ["MainThread"]}] * 2


def test_a_daemon() -> None:
    """Forked twice, its descriptors closed: it has a region, and the processes before it left none."""
    code = """
        read, write = os.pipe()
        os.set_inheritable(write, True)
        def start():
            vmscope.start()
            if os.fork():
                os._exit(0)
            os.setsid()
            if os.fork():
                os._exit(0)
            os.dup2(write, 60)
            os.closerange(3, 60)
            os.closerange(61, 1024)
            path = published()
            seen = {"own": path == path_of(os.getpid()), "locked": locked(path), "files": len(tree()) - 1}
            os.write(60, json.dumps(seen).encode())
            sys.exit(0)
        wait(fork(start))
        os.close(write)
        answer(**json.loads(os.read(read, 1000)))
        os.read(read, 1)
        vmscope.start()
        vmscope.stop()
        answer(tree=tree())
    """
    daemon, left = alone(code)
    assert daemon == {"own": True, "locked": True, "files": 2}, "the region and the socket: those before it left none"
    assert left == {"tree": ["/tmp/hsperfdata_root"]}


# -- multiprocessing ------------------------------------------------------------------------------

PROGRAM = programs.source("fork/program")


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method: str, tmp_path: Path) -> None:
    """Its children end with os._exit; their files go all the same."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script), method], capture_output=True, text=True, timeout=100
    )
    if method != "fork" or sys.version_info < (3, 12):  # there the queue's own thread makes os.fork warn
        assert run.stderr == ""
    assert run.stdout == "9 [] [] True\n"


def test_a_pool_that_is_terminated(tmp_path: Path) -> None:
    """SIGTERM: the files of its workers stay until the next VM starts."""
    code = """
        import multiprocessing
        def report():
            return published()
        context = multiprocessing.get_context("fork")
        vmscope.start()
        with context.Pool(2) as pool:
            paths = [pool.apply(report) for i in range(4)]
        vmscope.stop()
        vmscope.start()
        vmscope.stop()
        answer(tree=tree(), own=all(path.startswith("/tmp/hsperfdata_root/") for path in paths))
    """
    assert alone(code) == [{"tree": ["/tmp/hsperfdata_root"], "own": True}]


def test_the_parents_pid_file_is_its_own() -> None:
    """os.register_at_fork of the program's, in any order, sees what it should."""
    code = """
        seen = []
        os.register_at_fork(before=lambda: seen.append("before"), after_in_child=lambda: seen.append(counter.value))
        vmscope.start()
        os.register_at_fork(before=lambda: seen.append("again"), after_in_child=lambda: seen.append(counter.value))
        counter = vmscope.counter("test.count")
        counter.add(5)
        def work():
            answer(seen=seen)
        wait(fork(work))
        answer(seen=seen, count=counter.value)
    """
    child, parent = fork(code)
    assert child == {"seen": ["again", "before", 0, 0]}
    assert parent == {"seen": ["again", "before"], "count": 5}
