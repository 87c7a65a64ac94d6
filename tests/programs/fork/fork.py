import fcntl
import os
import random
import sys
import threading

import vmscope
from tests.wait import wait_for
from vmscope.memory import _directory
from vmscope.wire.decode import decode


def published():
    wait_for(lambda: vmscope.status().path is not None)
    return vmscope.status().path


def region(path):
    with open(path, "rb") as file:
        data = file.read()
    return decode(data).values(data)


def locked(path):
    with open(path, "rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def fork(work):
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(0)
    return pid


def wait(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def path_of(pid):
    return f"/tmp/hsperfdata_{_directory.user_name(os.geteuid())}/{pid}"
