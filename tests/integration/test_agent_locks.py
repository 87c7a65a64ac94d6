"""The agent `locks`, on programs that wait for each other's locks."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import programs
from tests.environment import Environment
from tests.support import PATIENCE, SETTLED

BEGIN = SETTLED + programs.source("agent_locks/program")
OPPOSITE = """
first = threading.Lock()
second = threading.RLock()
both = threading.Barrier(2)

def one():
    with first:
        both.wait()
        with second:
            raise AssertionError

def other():
    with second:
        both.wait()
        grab()

def grab():
    with first:
        raise AssertionError

def third():
    second.acquire()

start(one, "one", daemon=True)
start(other, "other", daemon=True)
wait_for(lambda: seen(first) and seen(second))
start(third, "third", daemon=True)
wait_for(lambda: counters()["locks.deadlocks"])
time.sleep(0.3)  # a second report of it would come by now
"""


def execute(options: str, code: str, *, begin: str = BEGIN) -> subprocess.CompletedProcess[str]:
    """A program with the agent, to its end."""
    agent = f"-pyagent:vmscope.agents.locks={options}"
    return subprocess.run(
        [sys.executable, "-m", "vmscope", "run", agent, "-c", begin + textwrap.dedent(code)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


def run(options: str, code: str) -> dict[str, int]:
    """What is counted in the end, as the region has it; nothing may be said on standard error."""
    done = execute(options, f"{textwrap.dedent(code)}\nsettled()\nprint(json.dumps(counters()))")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, int] = json.loads(done.stdout)
    return found


def times(found: dict[str, int], histogram: str, made: str) -> int:
    """How many were observed of what was made there."""
    begin, end = f"{histogram}.bucket{{", f',made="{made}"}}'
    return sum(value for name, value in found.items() if name.startswith(begin) and name.endswith(end))


def line_of(code: str, text: str) -> int:
    lines = (BEGIN + code).splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_two_threads_that_take_two_locks_in_opposite_order() -> None:
    done = execute("after=100ms", OPPOSITE + "print(json.dumps(counters()))")
    assert done.returncode == 0, done.stderr
    first, second = (f"__main__.<module>:{line_of(OPPOSITE, f'{name} = ')}" for name in ("first", "second"))
    told = done.stderr
    assert told.count("deadlock: 2 threads wait for each other") == 1
    assert f'waits for the Lock of {first}, which "one" has:' in told
    assert f'waits for the RLock of {second}, which "other" has:' in told
    assert 'Behind them: "third"' in told
    of_one, of_other = (told.partition(f'Thread "{name}", native id ')[2].split("\n\n")[0] for name in ("one", "other"))
    assert f"line {line_of(OPPOSITE, 'with second:')}, in one\n    - has the Lock of {first}\n" in of_one
    assert f"line {line_of(OPPOSITE, 'grab()')}, in other\n    - has the RLock of {second}\n" in of_other
    assert of_other.index("in grab") < of_other.index("in other")
    found = json.loads(done.stdout)
    assert found["locks.deadlocks"] == 1
    assert f'"one" waits for the RLock of {second}, which "other" has' in found["locks.deadlock"]
    assert found[f'locks.contended{{made="{first}"}}'] == 1
    assert found[f'locks.contended{{made="{second}"}}'] == 2


def test_a_deadlock_goes_to_a_file_and_is_told_of_once(tmp_path: Path) -> None:
    file = tmp_path / "deadlocks"
    done = execute(f"after=100ms,dump={file}", OPPOSITE)
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text().count("deadlock: 2 threads") == 1


def test_where_no_file_can_be_it_goes_to_standard_error(tmp_path: Path) -> None:
    done = execute(f"after=100ms,dump={tmp_path}/none/here", OPPOSITE)
    assert done.returncode == 0
    assert "deadlock: 2 threads" in done.stderr
    assert f"(not in {tmp_path}/none/here: No such file or directory)" in done.stderr


def test_without_owners_the_deadlock_is_found_as_well() -> None:
    done = execute("after=100ms,owners=off", OPPOSITE + "print(json.dumps(counters()))")
    assert "deadlock: 2 threads" in done.stderr
    assert "- has" not in done.stderr
    assert not [name for name in json.loads(done.stdout) if name.startswith("locks.owners{")]


def test_a_thread_that_waits_for_itself_goes_on_when_another_releases_the_lock() -> None:
    done = execute(
        "after=100ms",
        """
        lock = threading.Lock()

        def release():
            wait_for(lambda: counters()["locks.deadlocks"])
            lock.release()

        lock.acquire()
        thread = start(release)
        lock.acquire()
        thread.join()
        print("went on")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert "deadlock: a thread waits for itself" in done.stderr
    assert 'Thread "MainThread"' in done.stderr
    assert "which it has itself" in done.stderr


def test_who_waits_with_a_time_limit_is_in_no_deadlock() -> None:
    found = run(
        "after=50ms",
        """
        first, second = threading.Lock(), threading.Lock()
        both = threading.Barrier(2)
        got = []

        def take(one, other, limit):
            with one:
                both.wait()
                got.append(other.acquire(timeout=limit))
                if got[-1]:
                    other.release()

        threads = [start(lambda: take(first, second, 1)), start(lambda: take(second, first, -1))]
        for thread in threads:
            thread.join()
        assert sorted(got) == [False, True]
        """,
    )
    assert found["locks.deadlocks"] == 0


KEEPER = """
lock = threading.Lock()
waited = []


def want():
    if not lock.acquire(blocking=False):
        begun = time.perf_counter_ns()
        lock.acquire()
        waited.append(time.perf_counter_ns() - begun)
    lock.release()


def keep():
    with lock:
        thread = start(want)
        wait_for(lambda: seen(lock))
        time.sleep(0.01)  # the length of the wait that is counted
    thread.join()


for _ in range(20):
    keep()
for _ in range(50):
    want()
assert len(waited) == 20
vmscope.counter("own.waited", units=vmscope.Units.TICKS).add(sum(waited))
own = settled()["own.waited"]
print(json.dumps({**counters(), "own": own}))
"""


def test_a_contended_lock_is_counted_as_the_program_counts_it() -> None:
    done = execute("", KEEPER)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    made = f"__main__.<module>:{line_of(KEEPER, 'threading.Lock()')}"
    assert found[f'locks.contended{{made="{made}"}}'] == 20
    assert times(found, "locks.wait", made) == 20
    assert 100_000_000 < found[f'locks.wait.sum{{made="{made}"}}'] <= found["own"]
    owners = [value for name, value in found.items() if name.startswith('locks.owners{by="__main__.keep:')]
    assert sum(owners) == 20


def test_what_nobody_waits_for_is_not_counted() -> None:
    found = run(
        "",
        """
        lock, again = threading.Lock(), threading.RLock()
        for _ in range(10):
            with lock, again, again:
                assert again.acquire(blocking=False)
                again.release()
        """,
    )
    assert not [name for name in found if "__main__.<module>" in name]


def test_conditions_queues_and_semaphores_are_known_by_who_makes_them() -> None:
    code = """
        import queue

        def make():
            global jobs, tickets, gate
            jobs = queue.Queue()  # the queue
            tickets = threading.Semaphore(0)  # the semaphore
            gate = threading.Condition()  # the condition

        def pass_gate():
            with gate:
                gate.wait()

        make()
        for body, thing, let in (
            (lambda: jobs.get(), lambda: jobs.not_empty, lambda: jobs.put(1)),
            (lambda: tickets.acquire(), lambda: tickets._cond, lambda: tickets.release()),
        ):
            thread = start(body)
            wait_for(lambda: env.get_object_monitor_usage(thing()).notify_waiters)
            time.sleep(0.02)  # the length of the wait that is counted
            let()
            thread.join()
        thread = start(pass_gate)
        wait_for(lambda: env.get_object_monitor_usage(gate).notify_waiters)
        with gate:
            gate.notify()
        thread.join()
        """
    found = run("", code)
    for name, least in (("queue", 10_000_000), ("semaphore", 10_000_000), ("condition", 0)):
        made = f"__main__.make:{line_of(textwrap.dedent(code), f'# the {name}')}"
        assert times(found, "locks.notified", made) == 1
        assert found[f'locks.notified.sum{{made="{made}"}}'] > least


def test_places_are_bounded() -> None:
    code = "\n".join(f"def make_{at}(): return threading.Lock()" for at in range(5))
    code += textwrap.dedent("""
        for at in range(5):
            lock = globals()[f"make_{at}"]()

            def want():
                with lock:
                    pass

            with lock:
                thread = start(want)
                wait_for(lambda: seen(lock))
            thread.join()
        """)
    found = run("most=3", code)
    contended = {name: value for name, value in found.items() if name.startswith("locks.contended{")}
    assert len(contended) == 4
    assert contended['locks.contended{made="other"}'] >= 2
    assert sum(contended.values()) >= 5


def test_the_report() -> None:
    code = """
        def work():
            with lock:
                thread = start(lock.acquire)
                wait_for(lambda: seen(lock))
                time.sleep(0.01)  # the length of the wait that is counted
            thread.join()

        lock = threading.Lock()
        work()
        """
    done = execute("report=on", code)
    assert (done.returncode, done.stdout) == (0, "")
    head, *rows = map(str.split, done.stderr.splitlines())
    assert head[:2] == ["waits", "seconds"]
    made = f"__main__.<module>:{line_of(textwrap.dedent(code), 'threading.Lock()')}"
    at = next(at for at, row in enumerate(rows) if row[-1] == made)
    assert rows[at][0] == "1"
    assert 0 < float(rows[at][1]) < 60
    assert rows[at + 1][0] == "1"
    assert rows[at + 1][1].startswith("__main__.work:")


def test_a_join_under_a_lock() -> None:
    done = execute(
        "after=100ms",
        """
        def needs():
            with lock:
                raise AssertionError

        def joins():
            with lock:
                other.start()
                other.join()

        lock = threading.Lock()
        other = threading.Thread(target=needs, name="bob", daemon=True)
        start(joins, "ada", daemon=True)
        wait_for(lambda: counters()["locks.deadlocks"])
        time.sleep(0.3)  # a second report of it would come by now
        print(counters()["locks.deadlocks"])
        """,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert 'waits for the end of "bob":' in done.stderr
    assert ', which "ada" has:' in done.stderr


def test_a_join_with_a_time_limit_is_none() -> None:
    found = run(
        "after=50ms",
        """
        lock = threading.Lock()

        def needs():
            with lock:
                pass

        with lock:
            thread = start(needs)
            thread.join(1)
            assert thread.is_alive()
        thread.join()
        """,
    )
    assert found["locks.deadlocks"] == 0


def test_threads_that_come_and_go_leave_nothing_and_say_nothing() -> None:
    found = run(
        "after=20ms",
        """
        lock = threading.Lock()

        def want():
            if lock.acquire(timeout=0.001):
                lock.release()

        end = time.monotonic() + 2
        while time.monotonic() < end:
            with lock:
                threads = [start(want) for _ in range(5)]
            for thread in threads:
                thread.join()
        """,
    )
    assert found["locks.deadlocks"] == 0


def test_a_forked_child_of_a_deadlock_counts_for_itself() -> None:
    done = execute(
        "after=100ms",
        OPPOSITE
        + """
import os
child = os.fork()
if not child:
    try:
        lock = threading.Lock()
        with lock:
            thread = start(lambda: lock.acquire(), daemon=True)
            wait_for(lambda: seen(lock))
        thread.join()
        wait_for(lambda: str(os.getpid()) in (vmscope.status().path or ""))
        time.sleep(0.3)  # a report of what is none would come by now
        os._exit(0 if counters()["locks.deadlocks"] == 0 else 3)
    except BaseException:
        os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert done.stderr.count("deadlock:") == 1


def test_standard_error_that_nobody_reads_harms_nobody() -> None:
    begin = "import os\nread, write = os.pipe()\nos.dup2(write, 2)\nos.close(read)\n"
    done = execute("after=100ms", begin + OPPOSITE + "print('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_greenlets_have_gevent_s_locks() -> None:
    pytest.importorskip("gevent", reason="gevent is in the dev group")
    done = execute(
        "",
        programs.source("agent_locks/greenlets"),
        begin="import threading\n",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_has_to_be_there_from_the_start() -> None:
    code = """
from vmscope import tool
from vmscope.errors import AgentError
try:
    tool.load_agent("vmscope.agents.locks")
except AgentError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "the program has made its locks already: load this agent when it starts" in done.stdout


@pytest.mark.parametrize("options", ["most=0", "after=soon", "where=x", "owners=maybe"])
def test_wrong_options_end_the_start(options: str) -> None:
    done = execute(options, "print('never')")
    assert (done.returncode, done.stdout) == (1, "")
    assert "vmscope: agent vmscope.agents.locks: agent_on_load raised ValueError: " in done.stderr


def test_by_the_environment_alone(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    assert environment.run("-m", "vmscope", "autostart", "on")[0] == 0
    file = tmp_path / "deadlocks"
    options = {"VMSCOPE_TOOL_OPTIONS": f"-pyagent:vmscope.agents.locks=after=100ms,dump={file}"}
    code = OPPOSITE.replace('wait_for(lambda: counters()["locks.deadlocks"])', "wait_for(lambda: os.path.exists(FILE))")
    status, output, errors = environment.run(
        "-c",
        f"import os, sys\nsys.path.append({str(Path(__file__).parents[2])!r})\nFILE = {str(file)!r}\n{BEGIN}{code}",
        env=options,
    )
    assert (status, output) == (0, ""), errors
    assert file.read_text().count("deadlock: 2 threads") == 1
