import json
import multiprocessing
import os
import pwd
import sys
import time

import vmscope
from vmscope import reader
from vmscope.errors import VMScopeError

count = vmscope.counter("test.count")
state = vmscope.text("test.state", capacity=16)


def region(pid):
    return f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}/{pid}"


def child(queue, go):
    if multiprocessing.get_start_method() != "fork":
        vmscope.start()
    count.add(7)
    end = time.monotonic() + 20
    found = {}  # type: ignore[var-annotated]
    while time.monotonic() < end and found.get("test.count") != 7:
        time.sleep(0.01)  # a worker imports no tests.wait
        try:
            with reader.vm(os.getpid(), stale=True) as vm:
                found = vm.values()
        except VMScopeError:
            pass
    queue.put((os.getpid(), found.get("test.count"), found.get("test.state"), os.path.exists(region(os.getpid()))))
    go.wait(20)


if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    vmscope.start()
    count.add(100)
    state.set("open")
    queue, go = multiprocessing.Queue(), multiprocessing.Event()  # type: ignore[var-annotated]
    children = [multiprocessing.Process(target=child, args=(queue, go)) for _ in range(3)]
    for process in children:
        process.start()
    told = [queue.get(timeout=30) for _ in children]
    go.set()
    for process in children:
        process.join(30)
    time.sleep(0.1)  # the parent's thread has come by again
    with reader.vm(os.getpid()) as vm:
        own = vm.values()["test.count"]
    print(
        json.dumps(
            {
                "told": told,
                "left": [pid for pid, *_ in told if os.path.exists(region(pid))],
                "codes": [process.exitcode for process in children],
                "own": own,
                "region": os.path.exists(region(os.getpid())),
            }
        )
    )
