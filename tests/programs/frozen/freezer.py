# What runs in the namespace: `/tmp` is the file system that is frozen; a subject counts and forks meanwhile.
import errno
import fcntl
import json
import os
import sys
import time

import vmscope

LIBRARY: str  # that it is started with
import atexit
import ctypes
import select
import threading
import warnings

warnings.simplefilter("ignore")  # of forks beside threads
from vmscope.wire.decode import decode

FREEZE, THAW, LIMIT = 0xC0045877, 0xC0045878, 20.0
assert os.stat("/tmp").st_dev != os.stat("/").st_dev
disk = os.open("/tmp", os.O_RDONLY)


def thaw():
    try:
        fcntl.ioctl(disk, THAW, 0)
    except OSError as error:
        assert error.errno == errno.EINVAL, error  # it is not frozen


alive, mine = os.pipe()
if os.fork() == 0:
    os.close(mine)
    select.select([alive], [], [], LIMIT)  # until the parent has ended, or for too long
    thaw()
    os._exit(0)
os.close(alive)


class Frozen:
    def __enter__(self):
        fcntl.ioctl(disk, FREEZE, 0)

    def __exit__(self, *_):
        thaw()


library = ctypes.PyDLL(LIBRARY)  # noqa: F821
library.count.argtypes = [ctypes.py_object, ctypes.c_longlong, ctypes.POINTER(ctypes.c_longlong)]


def sampled():
    from vmscope.counters.registry import REGISTRY

    return [REGISTRY.get(name).value for name in ("vmscope.sampler.visits", "python.process.cpu.user")]  # type: ignore[union-attr]


def busy(counters, seconds):
    first = sampled()
    results = [(ctypes.c_longlong * 4)() for _ in counters]
    threads = [
        threading.Thread(target=library.count, args=(counter.inc, int(seconds * 1e9), result))
        for counter, result in zip(counters, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    forks, end = [], time.monotonic() + seconds
    while time.monotonic() < end - 0.15:
        time.sleep(0.1)  # ten forks a second
        start = time.perf_counter_ns()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        forks.append(time.perf_counter_ns() - start)
        os.waitpid(pid, 0)
    for thread in threads:
        thread.join()
    updates, slept, worst, stalled = zip(*results, strict=True)
    values = [counter.value for counter in counters]
    return dict(
        updates=sum(updates),
        slept=sum(slept),
        worst=max(worst),
        stalled=max(stalled),
        forks=forks,
        values=values,
        sampled=[first, sampled()],
    )


class Subject:
    def __init__(self, *options):
        theirs, own = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(mine)
            os.dup2(theirs[0], 0)
            os.dup2(own[1], 1)
            os.closerange(3, 100)
            self.run(options)
        os.close(theirs[0])
        os.close(own[1])
        self.input, self.output = os.fdopen(theirs[1], "w", 1), os.fdopen(own[0])
        self.path = json.loads(self.output.readline())

    def run(self, options):
        atexit.register(lambda: print("the end", flush=True))  # after vmscope's
        vmscope.start(*options)
        assert vmscope.status().path, vmscope.status()
        counters = [vmscope.counter(f"test.{i}") for i in range(4)]
        answer_line(vmscope.status().path)
        while line := sys.stdin.readline():
            answer_line(busy(counters, float(line)))
        sys.exit()

    def phase(self, seconds):
        self.input.write(f"{seconds}\n")
        return json.loads(self.output.readline())

    def end(self):
        self.input.close()
        assert os.waitpid(self.pid, 0)[1] == 0

    def in_file(self):
        with open(self.path, "rb") as file:
            data = file.read()
        values = decode(data).values(data)
        return [values[f"test.{i}"] for i in range(4)]


def answer_line(found):
    print(json.dumps(found), flush=True)
