"""A signal handler that raises in the middle of start() or stop(): at each of vmscope's bytecodes."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests import sandbox
from vmscope.memory._directory import user_name

TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp\n"

pytestmark = pytest.mark.usefixtures("implementation")

# In the twin only what both forms share is interrupted: its own parts are Python where the extension's are C.
PROGRAM = """
import gc
HOME = os.path.dirname(vmscope.__file__) + "/"
SPARED = (HOME + "native/", HOME + "mounts.py") if native.IMPLEMENTATION == "python" else "none"
STEP = int(os.environ.get("VMSCOPE_INTERRUPT_STEP", "6"))
FIRST = os.getpid() % STEP  # so that every one has its turn, over some runs
counter = vmscope.counter("test.count")

def interrupted(call, position):
    '''Whether it was still under way at the bytecode of that number, of those that it came to for the first time.'''
    global seen
    seen = set()
    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(HOME) or name.startswith(SPARED):
            return None
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            frame.f_trace = trace  # else it tells of its bytecodes from the second call on
        if event == "opcode":
            seen.add((frame.f_code, frame.f_lasti))
            if len(seen) > position:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace
    sys._getframe().f_trace_opcodes = True  # before 3.13 settrace looks there whether anybody wants them
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

def state():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0])
        except FileNotFoundError:  # that of listdir
            pass
    with open("/proc/self/maps") as maps:
        mapped = sum("hsperfdata" in line for line in maps)
    with open("/proc/self/status") as status:
        caught = [line for line in status if line.startswith("SigCgt")]
    return dict(
        fds=sorted(links), threads=len(os.listdir("/proc/self/task")), tree=tree(), mapped=mapped, caught=caught,
        callbacks=[type(each).__name__ for each in gc.callbacks], exit=type(os._exit).__name__,
        imports=type(sys.modules["_frozen_importlib"]._find_and_load).__name__, armed=native.is_armed(),
        running=vmscope.status().running, path=vmscope.status().path, attach=vmscope.status().attach_path,
        problems=vmscope.status().problems,
    )

def check(wanted, where):
    end = time.monotonic() + 10
    while (found := state()) != wanted and time.monotonic() < end:  # the twin's mirror opens its file a moment later
        time.sleep(0.001)
    differences = [(name, found[name], wanted[name]) for name in wanted if found[name] != wanted[name]]
    assert not differences, (where, differences)

def check_region():
    counter.inc()
    vmscope.runtime.VM.region.mirror.refresh()
    values = vmscope.vm("self").values()
    assert values["sun.gc.collector.0.invocations"] <= gc.get_stats()[0]["collections"]

gc.disable()
vmscope.start()
vmscope.stop()
stopped = state()
vmscope.start()
vmscope.vm("self").values()
while vmscope.runtime.VM.region.mirror.visits == 0:
    time.sleep(0.001)
running = state()
vmscope.stop()
check(stopped, "at first")

def positions(prepare, call):
    '''How many there are.'''
    numbers = []
    while len(numbers) < 4 or numbers[-1] != numbers[-3]:
        prepare()
        interrupted(call, 10**9)
        numbers.append(len(seen))
    return numbers[-1]

def start_again(where):
    vmscope.start()
    check(running, where)
    if where[1] % 16 == 0:
        check_region()

def stop_again(where):
    vmscope.stop()
    check(stopped, where)
"""

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
