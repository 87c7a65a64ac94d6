import gc
import locale
import logging
import os
import signal
import sys
import threading
import warnings


def fds():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            pass
    return found


def state():
    mask = os.umask(0)
    os.umask(mask)
    return repr(
        [
            threading.enumerate(),
            gc.get_threshold(),
            gc.isenabled(),
            gc.callbacks,
            gc.get_debug(),
            fds(),
            mask,
            [signal.getsignal(number) for number in range(1, 65)],
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            sys.gettrace(),
            sys.getprofile(),
            sys.getswitchinterval(),
            sys.getrecursionlimit(),
            sys.path,
            sys.meta_path,
            warnings.filters,
            logging.root.handlers,
            logging.root.level,
            logging.getLogger("vmscope").handlers,
            os.getcwd(),
            locale.setlocale(locale.LC_ALL),
            dict(os.environ),
            sys.stdout,
            sys.stderr,
            sys._xoptions,
        ]
    )


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
