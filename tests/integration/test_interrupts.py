"""A signal handler that raises in the middle of start() or stop(): at each of vmscope's bytecodes.

One run tries every sixth, beginning at another one each time, because all of them take minutes.
VMSCOPE_INTERRUPT_STEP=1 tries all.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests import programs, sandbox
from vmscope.memory._directory import user_name

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"

pytestmark = pytest.mark.usefixtures("implementation")

PROGRAM = programs.source("interrupts/program")

START = """
total = positions(vmscope.stop, vmscope.start)
vmscope.stop()
for position in range(FIRST, total, STEP):
    if not interrupted(vmscope.start, position):
        break
    check(running if vmscope.status().running else stopped, ("start", position))
    start_again(("start, start", position))
    stop_again(("start, start, stop", position))
answer(total=total, tried=position + STEP)
"""

STOP = """
total = positions(vmscope.start, vmscope.stop)
for position in range(FIRST, total, STEP):
    vmscope.start()
    if not interrupted(vmscope.stop, position):
        break
    start_again(("stop, start", position))
    vmscope.stop()
    vmscope.start()
    interrupted(vmscope.stop, position)
    stop_again(("stop, stop", position))
answer(total=total, tried=position + STEP)
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("call", ["start", "stop"])
def test_an_interrupt_at_each_bytecode(call: str) -> None:
    found = json.loads(sandbox.run(PROGRAM + (START if call == "start" else STOP), mounts=TMP, timeout=600))
    assert found["total"] > 500
    assert found["tried"] > 0.9 * found["total"], "a call may take another branch than the one before"


@pytest.mark.parametrize("end", ["interrupt", "exit"])
def test_an_end_that_python_does_not_complete(end: str, implementation: str) -> None:
    """A handler that raises in an atexit function; C code that calls exit()."""
    if implementation == "python":
        pytest.skip("the twin has no part in exit()")
    code = """
        import atexit, ctypes
        vmscope.start()
        status = vmscope.status()
        answer(there=os.path.exists(status.path) and os.path.exists(status.attach_path), pid=os.getpid())
        def interrupted():
            raise KeyboardInterrupt
        vmscope.runtime.VM.listener = type("Listener", (), {"close": lambda *_: interrupted()})()
    """
    if end == "exit":
        code += "    ctypes.PyDLL(None).exit(0)\n"
    child = subprocess.run(sandbox.plain_command(code), capture_output=True, text=True, timeout=60)
    answer = json.loads(child.stdout)
    assert answer["there"]
    assert not os.path.exists(f"/tmp/hsperfdata_{user_name(os.geteuid())}/{answer['pid']}")
    assert not os.path.exists(f"/tmp/.java_pid{answer['pid']}")
