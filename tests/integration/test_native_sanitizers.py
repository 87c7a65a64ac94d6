"""What native agents reach, under the address and undefined-behaviour sanitizers: handles, references, environments,
callbacks, raw monitors, walks of the heap, and all that agents do wrong. Each runs to its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import variants

from tests import jni_misuse
from tests.c_agents import WITH_MONITORING, build
from tests.integration import test_native_dispose as dispose
from tests.integration import test_native_ends as ends
from tests.integration import test_native_faults as faults
from tests.integration import test_native_heap as heap
from tests.integration import test_native_jni as jni
from tests.integration import test_native_raw_monitors as raw_monitors
from tests.integration import test_native_threads as threads

WALKS = """
for how in range(3):
    for filter in (0, 4, 8, 16, 32) if how == 0 else (1, 2, 3):
        here(how, filter, of=1005 if how == 2 else 0)
        here(how, filter, of=1005, limit=3)
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
    "references": (faults.REFERENCES, "", "", ()),
    "stale references": (faults.STALE, "def method(): pass\nmethod()\nmethod()", "", ()),
    **{
        f"pending, {where}": (faults.PENDING, "", where, ())
        for where in ("init", "attach", "detach", "unload", "start")
    },
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


def sanitized(folder: Path) -> dict[str, str]:
    """The variables of an environment with the extension so built."""
    runtime = variants.runtime_library("libasan.so")
    if runtime is None:
        pytest.skip("no compiler with libasan")
    return {
        "PYTHONPATH": os.pathsep.join((variants.build(folder, sanitizers="address,undefined"), str(jni.SOURCES))),
        "PYTHONMALLOC": "malloc",  # so that each object is a block that the sanitizer watches
        "LD_PRELOAD": runtime,
        # Leaks are CPython's own to tell; faults belong to the handlers under test.
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


@WITH_MONITORING
@pytest.mark.timeout(LIMIT)
def test_no_sanitizer_finds_anything(tmp_path: Path) -> None:
    """One test, so that the extension is built once."""
    env = sanitized(tmp_path / "package")
    for number, (case, (source, program, options, before)) in enumerate(CASES.items()):
        agent = build(source, tmp_path, f"agent{number}")
        program = program.replace("{library!r}", repr(str(agent.library))).replace("{{", "{").replace("}}", "}")
        run = agent.python(program, options=options, env=env, before=before)
        assert "Sanitizer" not in run.stderr, (case, run.stderr)
        assert "runtime error" not in run.stderr, (case, run.stderr)
        assert run.returncode == int(case == REFUSED), (case, run.stdout[-3000:], run.stderr[-3000:])
        assert run.stdout or case == REFUSED, case
