"""A disk that does not answer: an ext4 of the test's own, on a loop device, frozen while a process counts and forks.

Only that file system is ever frozen. It is thawed by whoever froze it, and by a watchdog that outlives him.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests import programs, sandbox
from vmscope import native

pytestmark = pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin's thread holds the GIL")

MS = 1_000_000

# One update at a time, timed where the GIL is held: waiting for it is not the update's. `slept`: how many gave up
# the processor by themselves, as one does that waits for a disk. `worst`: ns, of those that were not interrupted.
TIMER = """
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct _object PyObject;
PyObject *PyObject_CallNoArgs(PyObject *);
void Py_DecRef(PyObject *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void count(PyObject *update, long long nanoseconds, long long out[4]) {
    struct rusage before, after;
    for (long long end = now() + nanoseconds; now() < end;) {
        for (int i = 0; i < 100; i++) {
            getrusage(RUSAGE_THREAD, &before);
            long long start = now();
            Py_DecRef(PyObject_CallNoArgs(update));
            long long took = now() - start;
            getrusage(RUSAGE_THREAD, &after);
            out[0]++;
            out[1] += after.ru_nvcsw != before.ru_nvcsw;
            if (after.ru_nivcsw == before.ru_nivcsw && took > out[2]) out[2] = took;
            if (took > out[3]) out[3] = took;
        }
        void *state = PyEval_SaveThread();
        usleep(500);
        PyEval_RestoreThread(state);
    }
}
"""

FREEZER = programs.source("frozen/freezer")


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A folder that a file system mounted at /tmp does not hide."""
    folder = Path(
        tempfile.mkdtemp(prefix="vmscope-frozen-", dir="/dev/shm" if os.path.isdir("/dev/shm") else "/var/tmp")
    )
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def mounts(shared: Path) -> str:
    """The shell lines that mount a new ext4 at /tmp; skips where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount and to freeze a file system")
    if not shutil.which("mkfs.ext4"):
        pytest.skip("needs mkfs.ext4")
    image = shared / "disk"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, stdin=subprocess.DEVNULL)
    lines = f"mount -o loop,noatime {image} /tmp\nchmod 1777 /tmp\n"
    trial = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", lines], capture_output=True, text=True
    )
    if trial.returncode != 0:
        pytest.skip(f"no loop mounts here: {trial.stderr.strip()}")
    return lines


@pytest.fixture(scope="module")
def library(shared: Path) -> str:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    (shared / "timer.c").write_text(TIMER)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", "timer.so", "timer.c"], cwd=shared, check=True)
    return str(shared / "timer.so")


def run(library: str, mounts: str, code: str) -> Any:
    program = f"LIBRARY = {library!r}\n" + FREEZER + dedent(code)
    return json.loads(sandbox.run(program, mounts=mounts))


COUNT_AND_FORK = """
subject = Subject()
before = subject.phase(1.5)
with Frozen():
    frozen = subject.phase(2)
    behind = subject.in_file()
for _ in range(15):
    time.sleep(1.1)  # the mirror may be idle: then it comes twice a second
    after = subject.in_file()
    if after == frozen["values"]:
        break
subject.end()
answer(before=before, frozen=frozen, behind=behind, after=after)
"""


def test_nobody_waits_for_a_frozen_disk(library: str, mounts: str) -> None:
    """No update over 5 ms, no fork over 20 ms longer than before, no count lost.

    On a busy machine something else may take that long: three tries. What waits for the disk does so in each.
    """
    for _ in range(3):
        found = run(library, mounts, COUNT_AND_FORK)
        before, frozen = found["before"], found["frozen"]
        assert frozen["updates"] > 10_000
        assert frozen["slept"] == 0, "no update gives up the processor"
        assert len(frozen["forks"]) >= 10
        assert found["behind"] != frozen["values"], "the disk was frozen"
        assert found["after"] == frozen["values"], "every count is in the file"
        worst, longer = frozen["worst"], max(frozen["forks"]) - max(before["forks"])
        if worst < 5 * MS and longer < 20 * MS:
            return
    raise AssertionError(f"an update took {worst} ns, a fork {longer} ns longer than before")


def test_samples_are_taken_while_the_disk_is_frozen(library: str, mounts: str) -> None:
    """The mirror's thread is stuck; the sampler's is another, and shows what it finds where it can be seen."""
    code = """
    subject = Subject()
    with Frozen():
        subject.phase(0.5)
        stuck = []
        for thread in os.listdir(f"/proc/{subject.pid}/task"):
            stuck.append(open(f"/proc/{subject.pid}/task/{thread}/stat").read().rpartition(")")[2].split()[0])
        frozen = subject.phase(2)["sampled"]
    subject.end()
    answer(stuck=stuck, frozen=frozen)
    """
    found = run(library, mounts, code)
    assert found["stuck"].count("D") == 1, "the mirror's"
    (visits, cpu), (visits_later, cpu_later) = found["frozen"]
    assert visits_later - visits >= 10, "in 2 s, one each 50 ms"
    assert cpu_later > cpu


def test_direct_mode_stalls_for_as_long_as_the_freeze(library: str, mounts: str) -> None:
    """The counterpart, for which `-XX:-PerfDataMirror` has to be asked: as with HotSpot, the disk stops the program.

    Its thread waits in a store to the mapped file, a fork for that thread, and the rest of the program for the GIL.
    """
    code = """
    subject = Subject("-XX:-PerfDataMirror")
    before = subject.phase(1.5)
    subject.input.write("1\\n")
    time.sleep(0.05)  # it has begun
    with Frozen():
        time.sleep(3)  # how long the disk is frozen
    thawed = time.monotonic()
    frozen = json.loads(subject.output.readline())
    late = time.monotonic() - thawed
    for _ in range(15):
        time.sleep(1.1)  # the mirror may be idle: then it comes twice a second
        after = subject.in_file()
        if after == frozen["values"]:
            break
    subject.end()
    answer(before=before, frozen=frozen, after=after, late=late)
    """
    found = run(library, mounts, code)
    assert max(found["before"]["forks"]) < 1000 * MS
    assert max(found["frozen"]["forks"]) > 2500 * MS
    assert found["late"] < 2
    assert found["after"] == found["frozen"]["values"], "every count is in the file"


def test_save_during_a_freeze(library: str, mounts: str, shared: Path) -> None:
    """The last copy that a program asked for goes to another disk: it waits for the frozen one a second at most."""
    saved = shared / "saved"
    code = f"""
    subject = Subject("-XX:PerfDataSaveFile={saved}")
    with Frozen():
        counted = subject.phase(0.5)["values"]
        start = time.monotonic()
        subject.input.close()
        subject.output.readline()
        took = time.monotonic() - start
        subject.path = "{saved}"
        values = subject.in_file()
    os.waitpid(subject.pid, 0)
    answer(counted=counted, values=values, took=took)
    """
    found = run(library, mounts, code)
    assert found["values"] == found["counted"]
    assert found["took"] < 2


def test_exit_during_a_freeze(library: str, mounts: str) -> None:
    """The program's exit takes a second at most longer; the process itself is gone at the thaw.

    What is left of it until then is one thread that the kernel cannot interrupt, in its pwrite. Its file stays.
    """
    code = """
    subject = Subject()
    with Frozen():
        subject.phase(0.5)
        start = time.monotonic()
        subject.input.close()
        end = subject.output.readline()
        took = time.monotonic() - start
        threads, deadline = [], time.monotonic() + 5
        while sorted(threads) != ["D", "Z"] and time.monotonic() < deadline:
            time.sleep(0.05)  # /proc has no event for a thread's state
            threads = [
                open(f"/proc/{subject.pid}/task/{thread}/stat").read().rpartition(")")[2].split()[0]
                for thread in os.listdir(f"/proc/{subject.pid}/task")
            ]
        gone = os.waitpid(subject.pid, os.WNOHANG)[0]
    thawed = time.monotonic()
    status = os.waitpid(subject.pid, 0)[1]
    answer(end=end, took=took, threads=sorted(threads), gone=gone, status=status, thawed=time.monotonic() - thawed)
    """
    found = run(library, mounts, code)
    assert found["end"] == "the end\n"
    assert found["took"] < 2
    assert found["threads"] == ["D", "Z"]
    assert found["gone"] == 0
    assert found["status"] == 0
    assert found["thawed"] < 2
