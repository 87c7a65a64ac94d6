import os
import sys
import time
import warnings

import vmscope


def forks(count):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    return count


def attachable():
    return vmscope.status().attach_path is not None


def swept():
    """Whether the twin's listener has looked for sockets that others left."""
    from vmscope.native.threads.thread import _active

    return not _active["listener"]._stale_check_at  # type: ignore[attr-defined]
