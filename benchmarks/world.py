"""Where the benchmarks run: a /tmp and a pid namespace of their own, with just the VMs that a figure asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import vmscope
from tests.support import JDK, JVM, Child
from vmscope.reader.machine import VM

ROOT = Path(__file__).parents[1]
INSIDE = "VMSCOPE_BENCHMARKS_INSIDE"

# Whatever would change what is measured, or have a tool say so on stderr.
UNWANTED = ("PYTHON", "VMSCOPE_", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "TMPDIR")

# The new /tmp is made to the side, so that a project below the old one can be shown in it, at its place.
MOUNTS = """
mount -t tmpfs -o mode=1777 tmpfs /mnt
for path do
    case $path in /tmp/*) mkdir -p "/mnt/${path#/tmp/}"; mount --rbind "$path" "/mnt/${path#/tmp/}";; esac
done
mount --rbind /mnt /tmp
"""

IDLE = "import sys; print('ready', flush=True); sys.stdin.read()"


def enter(arguments: list[str]) -> None:
    """Starts this program again inside, in place of this process; returns when it is inside already.

    RuntimeError where namespaces are not to be had.
    """
    if os.environ.pop(INSIDE, None):
        paths = (str(ROOT), sys.prefix, sys.base_prefix)
        subprocess.run(["sh", "-euc", MOUNTS, "mounts", *paths], check=True)
        return
    unshare = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        raise RuntimeError("benchmarks need unshare (util-linux) and the right to make mount and pid namespaces")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    command = [*unshare, sys.executable, "-m", "benchmarks", *arguments]
    os.execvpe(command[0], command, {**environment, INSIDE: "1"})


def jdk() -> JDK:
    found = JDK.find()
    if found is None:
        raise RuntimeError("benchmarks need a JDK: scripts/setup jdk fetches one")
    return found


def vmscope_command(*arguments: str) -> list[str]:
    """vmscope as it is installed beside this interpreter."""
    return [os.path.join(sys.prefix, "bin", "vmscope"), *arguments]


def bare_python() -> list[str]:
    return [sys.executable, "-c", "pass"]


@contextmanager
def ten_vms() -> Iterator[list[int]]:
    """Eight Pythons and two JVMs, idle; gives their pids."""
    with ExitStack() as stack:
        pids = [stack.enter_context(JVM(jdk(), "-Xmx64m")).pid for _ in range(2)]
        for _ in range(8):
            child = stack.enter_context(Child(vmscope_command("run", "-c", IDLE)))
            child.read_until(b"ready\n")
            pids.append(child.pid)
        yield pids


@contextmanager
def fleet(size: int, numbers: int, interval: int = 50) -> Iterator[list[VM]]:
    """Many live Pythons, sampled each `interval` ms, with a region of just so many numbers; gives them as open VMs."""
    command = [sys.executable, "-m", "benchmarks.fleet", str(size), str(numbers), str(interval)]
    patience = 30 + size / 10
    with Child(command, cwd=ROOT) as parent:
        parent.read_until(b"ready\n", timeout=patience)
        deadline = time.monotonic() + patience
        while True:
            vms = vmscope.vms()
            counts = [sum(isinstance(value, int) for value in vm.values().values()) for vm in vms]
            if counts == [numbers] * size:
                break
            for vm in vms:
                vm.close()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(vms)} regions, with {sorted(set(counts))} numbers")
            time.sleep(0.1)
        try:
            yield vms
        finally:
            for vm in vms:
                vm.close()
            parent.stop(patience)
