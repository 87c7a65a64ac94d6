"""Targets of coverage-guided fuzzing: building them with clang's libFuzzer, and running them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NATIVE = ROOT / "src" / "vmscope" / "native"
BUILD = ROOT / "build" / "fuzz"
CORPUS = HERE / "corpus"

KEPT = 400  # bytes of a file of the corpus at most

FLAGS = "-std=c11 -O1 -g -fno-omit-frame-pointer -Wall -Werror".split()
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all".split()
ENVIRONMENT = {
    # Leaks are CPython's own to tell; a fault in a mapping belongs to the handler under test.
    "ASAN_OPTIONS": "detect_leaks=0:handle_sigbus=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


class NoFuzzer(Exception):
    """What is missing here, and how to get it."""


@dataclass(frozen=True)
class Target:
    """`sources` beside the target's own file; with `python` it runs in an interpreter."""

    name: str
    sources: tuple[Path, ...]
    longest: int
    python: bool = True


TARGETS = {
    target.name: target
    for target in (
        Target("walk", (HERE / "check_walk.c", NATIVE / "region/walk.c"), 4096, python=False),
        Target("scan", (NATIVE / "attributes.c", NATIVE / "region/scan.c", NATIVE / "region/walk.c"), 2048),
        Target("frames", (NATIVE / "attach/protocol.c",), 600),
        Target("mapping", (NATIVE / "region/mapping.c", NATIVE / "signals/guard.c"), 64),
        Target("strings", (NATIVE / "attach/protocol.c",), 300),
        Target("operations", (), 120),
        Target("replies", (), 300),
        Target("arguments", (), 120),
    )
}


@dataclass
class Run:
    """What a run of a target did."""

    executions: int
    covered: int
    seconds: float
    failed: bool
    log: str = field(repr=False)

    def __str__(self) -> str:
        verdict = f"FAILED\n{self.log[-6000:]}" if self.failed else "no defect"
        return f"{self.executions:,} executions in {self.seconds:.0f} s, {self.covered} edges covered, {verdict}"


def clang() -> str:
    """The compiler. NoFuzzer where there is none."""
    named = os.environ.get("CLANG")
    for name in (named,) if named else ("clang", *(f"clang-{version}" for version in range(21, 10, -1))):
        if found := shutil.which(name):
            return found
    raise NoFuzzer("no clang: on Debian, apt-get install clang libclang-rt-dev (bookworm: clang-14 libclang-rt-14-dev)")


def build(target: Target, folder: Path = BUILD) -> Path:
    """The target's program. NoFuzzer where this machine cannot build any."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / target.name
    command = [clang(), *FLAGS, *SANITIZERS, f"-I{HERE}", f"-I{NATIVE}", f"-I{HERE / 'targets'}"]
    sources = [HERE / "targets" / f"{target.name}.c", *target.sources]
    libraries: list[str] = []
    if target.python:
        sources.append(HERE / "targets" / "python.c")
        libraries = _interpreter()
        command += [f"-isystem{sysconfig.get_path('include')}", f'-DPYTHON="{sys.executable}"', f'-DROOT="{ROOT}"']
    check = subprocess.run(
        [*command, "-fsanitize=fuzzer", "-x", "c", "-", "-o", os.devnull],
        input="#include <stddef.h>\n#include <stdint.h>\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);\n"
        "int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { (void)d; (void)n; return 0; }\n",
        capture_output=True,
        text=True,
    )
    if check.returncode:
        raise NoFuzzer(f"{command[0]} has no libFuzzer (Debian: libclang-rt-dev): {check.stderr.strip()[-300:]}")
    run = subprocess.run(
        [*command, "-fsanitize=fuzzer", "-o", str(program), *map(str, sources), *libraries],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise RuntimeError(f"{target.name} cannot be built:\n{run.stderr}")
    return program


def _interpreter() -> list[str]:
    """What links this interpreter's library."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY")
    for place in (folder, sysconfig.get_config_var("LIBPL")):
        if place and name and (library := Path(place) / name).exists():
            return [str(library), f"-Wl,-rpath,{library.parent}", "-lm", "-ldl", "-lutil", "-lpthread"]
    raise NoFuzzer(f"no library of CPython {sysconfig.get_python_version()} to link with ({name})")


def run(target: Target, program: Path, *, seconds: int = 0, executions: int = -1) -> Run:
    """Runs it for so long, or for so many executions; 0 seconds is without an end."""
    found = program.parent / f"{target.name}-found"
    found.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-runs={executions}",
        f"-max_len={target.longest}",
        "-print_final_stats=1",
    ]
    options += ["-timeout=20", "-rss_limit_mb=4096", "-handle_bus=0", "-use_value_profile=1"]
    options.append(f"-artifact_prefix={program.parent}/{target.name}-")
    return _run(program, options, [found, CORPUS / target.name])


def corpus(target: Target, program: Path) -> Run:
    """Runs each file of the corpus once."""
    return _run(program, ["-runs=0", "-print_final_stats=1", "-handle_bus=0"], [CORPUS / target.name])


def merge(target: Target, program: Path) -> None:
    """Makes the corpus the least of it, and of what was found, that covers as much."""
    old, new = CORPUS / target.name, program.parent / f"{target.name}-merged"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    found = program.parent / f"{target.name}-found"
    options = ["-merge=1", "-use_counters=0", f"-max_len={KEPT}", "-handle_bus=0"]
    run = _run(program, options, [new, old, *([found] if found.exists() else [])])
    if run.failed:
        raise RuntimeError(run.log)
    shutil.rmtree(old)
    shutil.move(new, old)


def _run(program: Path, options: list[str], folders: list[Path]) -> Run:
    process = subprocess.run(
        [str(program), *options, *map(str, folders)],
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    log = process.stdout + process.stderr
    executions = re.search(r"stat::number_of_executed_units:\s+(\d+)", log)
    seconds = re.search(r"Done \d+ runs in (\d+) second", log)
    return Run(
        executions=int(executions[1]) if executions else 0,
        covered=max(map(int, re.findall(r"\bcov: (\d+)", log)), default=0),
        seconds=float(seconds[1]) if seconds else 0.0,
        failed=process.returncode != 0,
        log=log,
    )
