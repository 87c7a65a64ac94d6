# In the twin only what both forms share is interrupted: its own parts are Python where the extension's are C.
import gc
import os
import sys
import time

import vmscope
from tests.programs.sandbox import tree
from vmscope import native

HOME = os.path.dirname(vmscope.__file__) + "/"
SPARED = (HOME + "native/", HOME + "mounts.py") if native.IMPLEMENTATION == "python" else "none"
STEP = int(os.environ.get("VMSCOPE_INTERRUPT_STEP", "6"))
FIRST = os.getpid() % STEP  # so that every one has its turn, over some runs
counter = vmscope.counter("test.count")
seen = set()


def interrupted(call, position):
    """Whether it was still under way at the bytecode of that number, of those that it came to for the first time."""
    seen.clear()

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
        fds=sorted(links),
        threads=len(os.listdir("/proc/self/task")),
        tree=tree(),
        mapped=mapped,
        caught=caught,
        callbacks=[type(each).__name__ for each in gc.callbacks],
        exit=type(os._exit).__name__,
        imports=type(sys.modules["_frozen_importlib"]._find_and_load).__name__,
        armed=native.is_armed(),
        running=vmscope.status().running,
        path=vmscope.status().path,
        attach=vmscope.status().attach_path,
        problems=vmscope.status().problems,
    )


def check(wanted, where):
    end = time.monotonic() + 10
    while (found := state()) != wanted and time.monotonic() < end:  # the twin's mirror opens its file a moment later
        time.sleep(0.001)  # no import may come here
    differences = [(name, found[name], wanted[name]) for name in wanted if found[name] != wanted[name]]
    assert not differences, (where, differences)


def check_region():
    counter.inc()
    vmscope.runtime.VM.region.mirror.refresh()  # type: ignore[union-attr]
    values = vmscope.vm("self").values()
    assert values["sun.gc.collector.0.invocations"] <= gc.get_stats()[0]["collections"]


gc.disable()
vmscope.start()
vmscope.stop()
stopped = state()
vmscope.start()
vmscope.vm("self").values()
while vmscope.runtime.VM.region.mirror.visits == 0:  # type: ignore[union-attr]
    time.sleep(0.001)  # no import may come here
running = state()
vmscope.stop()
check(stopped, "at first")


def positions(prepare, call):
    """How many there are."""
    numbers = []  # type: ignore[var-annotated]
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
