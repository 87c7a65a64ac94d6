"""Stacks are read while hostile programs change them: none ends the process, and what is told of them is right.

VMSCOPE_STACKS sets how often all threads of each program are looked at (20,000).
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import variants

from tests import programs
from tests.native import compiler
from tests.support import PATIENCE
from vmscope import native

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src" / "vmscope" / "native"
READER = "signals/guard", "stacks/stack_reader", "stacks/frame_names", "stacks/racy_snapshot"
SOURCES = [HERE / "hammer.c", *(NATIVE / f"{name}.c" for name in READER)]
ROUNDS = int(os.environ.get("VMSCOPE_STACKS", "20000"))
LIMIT = PATIENCE + ROUNDS / 1000  # seconds
PROGRAMS = [  # of hostile.py
    *("recursion", "calls", "generators", "finalizers", "initializers", "exceptions", "threads"),
    *("new_code", "replaced_code", "coroutines", "collections", "greenlets", "interpreters"),
]
WATCHED = ["threads", "new_code", "collections", "interpreters"]  # whose memory comes and goes

pytestmark = pytest.mark.skipif(
    native.IMPLEMENTATION != "c" or not hasattr(native, "lock_address"), reason="the twin does not read memory"
)


def build(folder: Path, *flags: str) -> Path:
    command = [compiler(), *"-std=c11 -O2 -g -fPIC -shared -pthread -Wall -Wextra -Werror".split(), *flags]
    command += [f"-I{sysconfig.get_paths()['include']}", f"-I{NATIVE}", *map(str, SOURCES)]
    subprocess.run([*command, "-o", str(folder / "hammer.so")], check=True, timeout=2 * PATIENCE)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hammer"))


@pytest.fixture(scope="module")
def hammer(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("hammer", folder / "hammer.so")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder: Path, *arguments: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def counts(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_stacks_of_a_hostile_program(folder: Path, program: str) -> None:
    if program == "greenlets":
        pytest.importorskip("greenlet")
    found = counts(run(folder, str(HERE / "hostile.py"), program, str(ROUNDS)))
    assert found["reads"] >= ROUNDS
    wrong = sum(count for *_, count in found["wrong"])
    assert wrong <= 2 + found["edges"] // 500, found["wrong"]
    assert found["lost"] <= 2 + found["stacks"] // 5


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Where it is, and the variables that it runs with."""
    runtime = variants.runtime_library("libasan.so")
    if runtime is None:
        pytest.skip("no compiler with libasan")
    folder = build(tmp_path_factory.mktemp("sanitized"), "-fsanitize=address,undefined", "-fno-omit-frame-pointer")
    options = "detect_leaks=0:handle_segv=0:handle_sigbus=0"
    return folder, {"LD_PRELOAD": runtime, "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": options}


@pytest.mark.timeout(2 * LIMIT + 60)
@pytest.mark.parametrize("program", WATCHED)
def test_no_sanitizer_finds_anything(sanitized: tuple[Path, dict[str, str]], program: str) -> None:
    folder, variables = sanitized
    arguments = [str(HERE / "hostile.py"), program, str(ROUNDS // 10)]
    assert counts(run(folder, *arguments, variables=variables))["reads"] >= ROUNDS // 10


def test_the_end_of_python_comes_meanwhile(folder: Path) -> None:
    for _ in range(5):
        assert counts(run(folder, str(HERE / "hostile.py"), "finalization")) == {}


# -- names


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_of(each)


def lines_of(code: CodeType) -> dict[int, int]:
    """Of each instruction, as a frame tells it; the first where there is none."""
    found = {}
    for begin, end, line in code.co_lines():
        found.update(dict.fromkeys(range(begin, end, 2), code.co_firstlineno if line is None else line))
    return found


@pytest.mark.parametrize("module", [ast, subprocess, json.decoder, pytest], ids=lambda module: str(module.__name__))
def test_names_and_lines_are_those_of_the_interpreter(hammer: ModuleType, module: ModuleType) -> None:
    path = Path(str(module.__file__))
    for code in codes_of(compile(path.read_text(encoding="utf-8"), str(path), "exec")):
        lines = lines_of(code)
        wanted = [(code.co_qualname, code.co_filename, line) for line in lines.values()]
        assert hammer.name(code, tuple(lines)) == wanted


@pytest.mark.parametrize("name", ["", "é", "変数", "\U0001f40d" * 300, "\udc80a", "a" * 999])
def test_names_of_all_kinds_of_text(hammer: ModuleType, name: str) -> None:
    code = compile("pass\n" * 3, f"/{name}", "exec").replace(co_qualname=name)
    [[*found, _]] = hammer.name(code, (0,))
    assert found == [name, f"/{name}"]


def test_text_that_is_too_long_or_no_plain_text(hammer: ModuleType) -> None:
    class Text(str):
        __slots__ = ()

    code = compile("pass", "a" * 5000, "exec").replace(co_qualname="b" * 1001)
    [[*found, _]] = hammer.name(code, (0,))
    assert found == ["b" * 1000, "a" * 4096]
    assert hammer.name(code.replace(co_filename=Text("c")), (0,))[0][1] == "?"


# -- faults that belong to others

CRASH = programs.source("soundness/crash")


@pytest.mark.parametrize("before", ["default", "faulthandler"])
@pytest.mark.parametrize("after", ["default", "faulthandler"])
def test_a_crash_meanwhile_goes_to_whom_it_belongs(folder: Path, before: str, after: str) -> None:
    done = run(folder, "-c", CRASH, before, after)
    assert done.returncode == -signal.SIGSEGV, done
    assert done.stdout == "crashing\n"
    told = done.stderr.count("Fatal Python error: Segmentation fault")
    assert (told >= 1) if "faulthandler" in (before, after) else told == 0  # it calls itself once more, at times


REPAIR = programs.source("soundness/repair")


def test_a_program_that_puts_its_own_faults_right(folder: Path) -> None:
    done = run(folder, "-c", REPAIR)
    assert (done.returncode, done.stdout) == (0, "done\n"), done


HANDLERS = programs.source("soundness/handlers")


def test_handlers_are_as_they_were(folder: Path) -> None:
    done = run(folder, "-W", "ignore", "-c", HANDLERS)
    assert (done.returncode, done.stdout) == (0, "done\n"), done


MEANWHILE = (
    """
import faulthandler, hammer, threading
"""
    + HANDLERS[HANDLERS.index("def caught") : HANDLERS.index("before =")]
    + """
faulthandler.enable()
enabled = caught()
faulthandler.disable()
before = caught()
assert enabled != before
for _ in range(100):
    thread = threading.Thread(target=hammer.run, args=(100, 64))
    thread.start()
    faulthandler.enable()
    thread.join()
    assert caught() == enabled
    faulthandler.disable()
    hammer.run(1, 64)
    assert caught() == before
print("done")
"""
)


def test_a_handler_that_comes_as_a_read_ends_stays(folder: Path) -> None:
    done = run(folder, "-c", MEANWHILE)
    assert (done.returncode, done.stdout) == (0, "done\n"), done
