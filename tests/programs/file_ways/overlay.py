import os
import time

import vmscope
from tests.programs.sandbox import _directory, _stale, answer, fcntl
from tests.wait import wait_for


def locked():
    with open(path, "rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


vm = os.fork()
if vm == 0:
    vmscope.start()
    time.sleep(60)
    os._exit(0)
path = f"/tmp/hsperfdata_root/{vm}"
held = wait_for(lambda: os.path.exists(path) and locked())
os.kill(vm, 9)
os.waitpid(vm, 0)
answer(held=held, free=wait_for(lambda: not locked()))
with _directory.open_directory() as directory:
    answer(removed=_stale.clean(directory, os.getpid()) == [str(vm)])
