"""What a process says it is. What needs processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time

PROGRAM = "from vmscope.counters import identity; print(identity.command_line())"


def run(*command: str, cwd: object = None, **variables: str) -> str:
    process = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=str(cwd) if cwd else None,
        env={**os.environ, **variables},
        check=True,
    )
    return process.stdout.rstrip("\n")


def test_a_script(tmp_path: object) -> None:
    script = os.path.join(str(tmp_path), "my.app.py")
    with open(script, "w") as file:
        file.write(PROGRAM)
    assert run(script, "a", "b c") == f"{tmp_path}/my.app a b c"
    assert run("my.app.py", cwd=tmp_path) == "my.app"
    assert run("./my.app.py", cwd=tmp_path) == "./my.app"


def test_modules_packages_and_applications(tmp_path: object) -> None:
    package = os.path.join(str(tmp_path), "pkg")
    os.mkdir(package)
    for name in ("__init__.py", "__main__.py", "mod.py"):
        with open(os.path.join(package, name), "w") as file:
            file.write("" if name == "__init__.py" else PROGRAM)
    assert run("-m", "pkg.mod", "x", cwd=tmp_path) == "pkg.mod x"
    assert run("-m", "pkg", "x", cwd=tmp_path) == "pkg x"
    assert run("pkg", "x", cwd=tmp_path) == "pkg x"


def test_code_and_standard_input() -> None:
    assert run("-c", PROGRAM, "x", "") == "-c x "
    process = subprocess.run(
        [sys.executable, "-", "x"], input=PROGRAM, capture_output=True, text=True, timeout=60, check=True
    )
    assert process.stdout == "- x\n"


def test_a_package_that_starts_vmscope_while_it_is_imported(tmp_path: object) -> None:
    """sys.argv[0] is "-m" then."""
    package = os.path.join(str(tmp_path), "pkg")
    os.mkdir(package)
    for name in ("__init__.py", "__main__.py"):
        with open(os.path.join(package, name), "w") as file:
            file.write(PROGRAM if name == "__init__.py" else "")
    assert run("-m", "pkg", "x", cwd=tmp_path) == "pkg x"


def test_start_ticks_whatever_the_process_is_called() -> None:
    code = """
import time
from vmscope.counters import identity
plain = identity.start_ticks()
with open("/proc/self/comm", "w") as file:
    file.write(") R 1 2 (")
print(plain == identity.start_ticks(), plain, identity.start_time(plain) / 1000)
"""
    before = time.time()
    same, ticks, started = run("-c", code).split()
    assert same == "True"
    assert int(ticks) > 0
    assert before - 1 < float(started) < time.time() + 1
