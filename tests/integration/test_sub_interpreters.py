"""Several interpreters in a process: each counts for itself, exactly, at once or in turn, and ends whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent

import pytest

from tests.sandbox import answers
from vmscope import native

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin has no state outside its interpreter")

# What each interpreter runs: all kinds of updates on two threads, a collection, and its sums into a pipe.
COUNT = """
import gc, json, os, threading
import vmscope
from vmscope import native
counter, gauge = vmscope.counter("t.counter"), vmscope.gauge("t.gauge")
text, histogram = vmscope.text("t.text"), vmscope.histogram("t.histogram", bounds=[1, 2])
assert not native.in_main_interpreter()
vmscope.start("-XX:PerfDataSamplingInterval=1")
def work():
    for i in range(ROUNDS):
        counter.inc()
        gauge.add(2)
        gauge.dec()
        text.set(str(i))
        with histogram.time():
            histogram.labels(way="a").observe(i % 3)
        counter.labels(way=str(i % 3)).add(2)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
status = vmscope.status()
os.write(FD, (json.dumps([counter.value, gauge.value, text.value, histogram.count, histogram.labels(way="a").cells[1:],
    [counter.labels(way=way).value for way in "012"], status.path, "sub-interpreter" in status.reason,
    native.IMPLEMENTATION]) + "\\n").encode())
vmscope.stop()
"""
ROUNDS = 600
SUMS = [2 * ROUNDS, 2 * ROUNDS, str(ROUNDS - 1), 2 * ROUNDS, [4 * ROUNDS // 3, 2 * ROUNDS // 3, 0]]
FOUND = [*SUMS, [4 * ROUNDS // 3] * 3, None, True, "c"]

INTERPRETERS = f"""
import threading
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    new = lambda: interpreters.create("isolated")
    run = interpreters.exec
else:
    import _xxsubinterpreters as interpreters
    new = lambda: interpreters.create(isolated=True)
    run = interpreters.run_string
COUNT = {COUNT!r}.replace("ROUNDS", "{ROUNDS}")
failures = []
def life(write, lives):
    for _ in range(lives):
        made = new()
        failures.append(run(made, COUNT.replace("FD", str(write))))
        interpreters.destroy(made)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 interpreters share the GIL")
def test_interpreters_with_a_gil_of_their_own() -> None:
    """Four threads make, run and end three each, while the main one counts, is seen, and its region comes and goes."""
    code = """
    read, write = os.pipe()
    counter = vmscope.counter("t.counter")
    vmscope.start("-XX:PerfDataSamplingInterval=1")
    threads = [threading.Thread(target=life, args=(write, 3)) for _ in range(4)]
    for thread in threads:
        thread.start()
    turns = 0
    while any(thread.is_alive() for thread in threads):
        for _ in range(100):
            counter.inc()
        turns += 1
        if turns % 50 == 0:
            vmscope.stop()
            vmscope.start("-XX:PerfDataSamplingInterval=1")
        time.sleep(0.001)  # the sampler comes in between
    for thread in threads:
        thread.join()
    os.close(write)
    with open(read) as pipe:
        answer(subs=[json.loads(line) for line in pipe], failures=failures)
    path = vmscope.status().path
    vmscope.stop()
    answer(exact=counter.value == 100 * turns, own=path is not None, left=os.path.exists(path))
    """
    first, second = answers(INTERPRETERS + dedent(code), options=("-Wignore",))
    assert first == {"subs": [FOUND] * 12, "failures": [None] * 12}
    assert second == {"exact": True, "own": True, "left": False}


# -- as a program does that embeds Python ---------------------------------------------------------

EMBEDDING = """
#include <Python.h>

__attribute__((visibility("default"))) int
in_new_interpreter(const char *code)
{
    PyThreadState *own = PyThreadState_Get(), *made = Py_NewInterpreter();
    if (made == NULL) {
        PyThreadState_Swap(own);
        return -2;
    }
    int status = PyRun_SimpleString(code);
    Py_EndInterpreter(made);
    PyThreadState_Swap(own);
    return status;
}
"""


def test_interpreters_that_share_the_gil(tmp_path: Path) -> None:
    """Py_NewInterpreter and Py_EndInterpreter, three times, with the main one started and a fork after each."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "embedding.c").write_text(EMBEDDING)
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(
        [compiler, "-shared", "-fPIC", include, "-o", "embedding.so", "embedding.c"], cwd=tmp_path, check=True
    )
    code = f"""
        import ctypes
        library = ctypes.PyDLL({str(tmp_path / "embedding.so")!r})
        code = {COUNT!r}.replace("ROUNDS", "{ROUNDS}")
        vmscope.start("-XX:PerfDataSamplingInterval=1")
        counter = vmscope.counter("t.counter")
        read, write = os.pipe()
        for _ in range(3):
            status = library.in_new_interpreter(code.replace("FD", str(write)).encode())
            counter.inc()
            pid = os.fork()
            if pid == 0:
                os._exit(counter.value)
            answer(status=status, child=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os.close(write)
        with open(read) as pipe:
            answer(subs=[json.loads(line) for line in pipe])
        path = vmscope.status().path
        vmscope.stop()
        answer(value=counter.value, own=path is not None, left=os.path.exists(path))
    """
    *lives, subs, main = answers(code)
    assert lives == [{"status": 0, "child": 0}] * 3
    assert subs == {"subs": [FOUND] * 3}
    assert main == {"value": 3, "own": True, "left": False}
