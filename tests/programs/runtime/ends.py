import os
import sys

import vmscope


def child(end, options=()):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        vmscope.start(*options)
        vmscope.counter("test.count").inc()
        exec(end)
        sys.exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, os.listdir("/tmp/hsperfdata_root") == [str(pid)]
