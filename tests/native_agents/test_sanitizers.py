"""What native agents reach, under the address, undefined-behaviour and thread sanitizers: handles, references,
environments, callbacks, raw monitors, walks of the heap, and all that agents do wrong. Each runs to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import variants

from tests import jni_misuse
from tests.c_agents import WITH_MONITORING, build
from tests.native_agents import test_dispose as dispose
from tests.native_agents import test_ends as ends
from tests.native_agents import test_faults as faults
from tests.native_agents import test_heap as heap
from tests.native_agents import test_jni as jni
from tests.native_agents import test_raw_monitors as raw_monitors
from tests.native_agents import test_threads as threads

WALKS = """
for how in range(3):
    here(how, 0 if how == 0 else 3, of=1005 if how == 2 else 0)
    here(how, 4 if how == 0 else 1, of=1005, limit=3)
here(fields=1)
here(add=1)
env.iterate_through_heap(0, None, tool.HeapCallbacks(heap_iteration=lambda *given: 0))
gc.collect()
print("walked", flush=True)
"""
CALLED = """
    def step(n):
        return n and step(n - 1)
    class Thing:
        pass
    for _ in range(300):
        step(3)
        things = [Thing() for _ in range(10)]
"""
FORKING = """
    import os, warnings
    warnings.simplefilter("ignore")
    child = os.fork()
    os.environ["SIDE"] = "child"
    if child:
        print("status", os.waitpid(child, 0)[1], flush=True)
        os._exit(0)
"""
REFUSED = "garbage from OnLoad"
# The agent, the program, the agent's options, and Python's
CASES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "garbage from heap callbacks": (faults.GARBAGE, "", "walk", ()),
    REFUSED: (faults.GARBAGE, "", "return=-1", ()),
    "references": (faults.REFERENCES.replace("MANY 1000000", "MANY 20000").replace("i < 100;", "i < 10;"), "", "", ()),
    "stale references": (faults.STALE, "def method(): pass\nmethod()\nmethod()", "", ()),
    **{f"pending, {where}": (faults.PENDING, "", where, ()) for where in ("init", "attach", "unload")},
    "dispose": (dispose.DISPOSE, "", "", ()),
    "dispose under others": (dispose.DISPOSE_UNDER_OTHERS, dispose.DISPOSING, "", ()),
    "unattached and dead": (ends.UNKNOWN, "", "full", ()),
    "unload under threads": (ends.UNLOAD, "", "", ()),
    "unload under callbacks": (ends.UNLOAD_UNDER_CALLBACKS, ends.IN_CALLBACKS, "", ()),
    "forks": (raw_monitors.FORK, FORKING, "", ()),
    "raw monitors": (raw_monitors.RULES, "", "", ()),
    "raw monitors, wrong": (raw_monitors.OWN, "", "", ()),
    "threads": (threads.ATTACHED, "", "", ()),
    "heap walks": (heap.AGENT, heap.PROGRAM + WALKS, "", ()),
    "JNI": (jni_misuse.c_source(), CALLED, "", ()),
    "JNI, checked": (jni_misuse.c_source(), CALLED, "", ("-Xcheck:jni",)),
}


LIMIT = 240  # seconds, on a busy machine; some 30 on an idle one
# CPython's own lock of its thread states is not instrumented: what stands behind it looks like a race.
SUPPRESSED = "race:describe_state\nrace:vmscope_copy_snapshot\n"
RACES = ("raw monitors", "raw monitors, wrong", "threads", "unload under threads", "dispose under others")


def sanitized(folder: Path, sanitizers: str, library: str) -> dict[str, str]:
    """The variables of an environment with the extension so built."""
    runtime = variants.runtime_library(library)
    if runtime is None:
        pytest.skip(f"no compiler with {library}")
    package = variants.build(folder, sanitizers=sanitizers)
    return {"PYTHONPATH": os.pathsep.join((package, str(jni.SOURCES))), "LD_PRELOAD": runtime}


def run_all(cases: Iterable[str], folder: Path, env: dict[str, str], *more: str) -> None:
    for number, case in enumerate(cases):
        source, program, options, before = CASES[case]
        agent = build(source, folder, f"agent{number}")
        program = program.replace("{library!r}", repr(str(agent.library))).replace("{{", "{").replace("}}", "}")
        run = agent.python(program, options=options, env=env, before=(*more, *before))
        reports = run.stderr + "".join(path.read_text() for path in folder.glob("report.*"))
        assert "Sanitizer" not in reports, f"{case}: {reports}"
        assert "runtime error" not in run.stderr, (case, run.stderr)
        assert run.returncode == int(case == REFUSED), (case, run.stdout[-3000:], run.stderr[-3000:])
        assert run.stdout or case == REFUSED, case


@WITH_MONITORING
@pytest.mark.timeout(LIMIT)
def test_no_sanitizer_finds_anything(tmp_path: Path) -> None:
    """One test, so that the extension is built once."""
    env = {
        **sanitized(tmp_path / "package", "address,undefined", "libasan.so"),
        "PYTHONMALLOC": "malloc",  # so that each object is a block that the sanitizer watches
        # Leaks are CPython's own to tell; faults belong to the handlers under test.
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    run_all(CASES, tmp_path, env)


@WITH_MONITORING
@pytest.mark.timeout(LIMIT)
def test_no_race_is_found(tmp_path: Path) -> None:
    """Without region and socket: the sanitizer takes equal descriptors of two tables for the same."""
    env = sanitized(tmp_path / "package", "thread", "libtsan.so")
    (tmp_path / "suppressed").write_text(SUPPRESSED)
    # Into a file: some threads of ours have no standard error.
    env["TSAN_OPTIONS"] = f"suppressions={tmp_path / 'suppressed'}:exitcode=66:log_path={tmp_path / 'report'}"
    probe = subprocess.run([sys.executable, "-c", ""], env={**os.environ, **env}, capture_output=True, text=True)
    if "ThreadSanitizer" in probe.stderr:
        pytest.skip(f"the thread sanitizer does not start here: {probe.stderr[:200]}")
    run_all(RACES, tmp_path, env, "-XX:-UsePerfData", "-XX:+DisableAttachMechanism")
