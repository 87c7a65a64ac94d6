import os
import signal
import socket
from contextlib import suppress

from tests.wait import wait_for
from vmscope.attach.client import connect
from vmscope.memory import _directory

FOLDER = "/tmp/hsperfdata_" + _directory.user_name(os.geteuid())


def files(pid):
    return [f"{FOLDER}/{pid}", f"/tmp/.java_pid{pid}"]


def left(pid):
    return [path for path in files(pid) if os.path.lexists(path)]


def fork(work=signal.pause):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def descriptors(kind):
    tasks = "/proc/self/task"
    found = []
    for task in os.listdir(tasks):
        with suppress(OSError):  # the thread has gone
            if open(f"{tasks}/{task}/comm").read() == "vmscope listene\n":
                for name in os.listdir(f"{tasks}/{task}/fd"):
                    with suppress(OSError):  # the descriptor has
                        found.append(os.readlink(f"{tasks}/{task}/fd/{name}"))
    return found.count(f"anon_inode:[{kind}]")


def watched(count):
    wait_for(lambda: descriptors("pidfd") == count)


def born(count, work=signal.pause):
    pids = [fork(work) for _ in range(count)]
    wait_for(lambda: all(len(left(pid)) == 2 for pid in pids))
    return pids


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def reaped(pid):
    return os.waitpid(pid, 0)[1]
