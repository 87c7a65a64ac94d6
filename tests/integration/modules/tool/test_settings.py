"""System properties, verbose flags, the sampling interval; processors under a control group.

What needs processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import JDK, PATIENCE

CPU_GROUP = Path("/sys/fs/cgroup/cpu")


def python(code: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    begin = """
import vmscope
from vmscope.tool import vm
env = vm().get_env()
"""
    command = [sys.executable, "-c", begin + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_properties_of_the_command_line() -> None:
    run = python("vmscope.start('-Dshop.mode=a=b', '-XX:-UsePerfData'); print(env.get_system_property('shop.mode'))")
    assert (run.stdout, run.stderr) == ("a=b\n", "")


def test_verbose_flags_tell_of_collections_imports_and_extension_modules() -> None:
    run = python("""
import _imp, gc, sys
from vmscope.tool.verbose import VerboseFlag
# one that is not linked into the interpreter
library = next(name for name in ("_elementtree", "_lsprof", "_queue") if not _imp.is_builtin(name))
print(library)
def do(name):
    sys.modules.pop("colorsys", None)
    sys.modules.pop(library, None)
    print(name, file=sys.stderr, flush=True)
    import colorsys
    __import__(library)
    gc.collect()
for flag in (VerboseFlag.GC, VerboseFlag.CLASS, VerboseFlag.JNI):
    env.set_verbose_flag(flag, True)
    env.set_verbose_flag(flag, True)
    do(f"+{flag.name}")
    env.set_verbose_flag(flag, False)
    do(f"-{flag.name}")
""")
    assert run.returncode == 0, run.stderr
    said: dict[str, str] = {}
    for line in run.stderr.splitlines():
        if line[0] in "+-":
            said[name := line] = ""
        else:
            said[name] += line + "\n"
    assert [said[f"-{name}"] for name in ("GC", "CLASS", "JNI")] == ["", "", ""]
    assert "gc: collecting generation 2" in said["+GC"]
    assert said["+CLASS"].count("# vmscope: import colorsys\n") == 1
    assert said["+JNI"].startswith(f"# vmscope: load {run.stdout.strip()} from /")
    assert said["+JNI"].count("\n") == 1


def test_a_limited_process_counts_as_a_jvm_does(tmp_path: Path) -> None:
    jdk = JDK.find()
    if jdk is None or not jdk.has("javac") or os.geteuid() or not (CPU_GROUP / "cpu.cfs_quota_us").exists():
        pytest.skip("needs root, a control group of version 1 for processors, and a whole JDK")
    group = CPU_GROUP / f"vmscope-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_quota_us").write_text("100000")
        begin = f"echo $$ > {group}/cgroup.procs; exec "
        source = tmp_path / "Processors.java"
        source.write_text(
            "class Processors { public static void main(String[] a) {"
            " System.out.println(Runtime.getRuntime().availableProcessors()); } }"
        )
        code = "from vmscope.tool import processors; print(processors.available())"
        counts = [
            subprocess.run(["sh", "-c", begin + command], capture_output=True, text=True, timeout=60, check=True).stdout
            for command in (f"{sys.executable} -c '{code}'", f"{jdk.tool('java')} {source}")
        ]
        assert counts == ["1\n", "1\n"]
    finally:
        group.rmdir()
