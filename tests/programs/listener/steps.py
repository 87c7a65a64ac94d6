import os
import sys
import threading
import time
import warnings

from vmscope.commands import registry


def walk(out):
    out.write("begun\n")
    out.flush()
    threads = set()
    try:
        while not done:
            threads.add(threading.get_native_id())
            time.sleep(0.01)  # a command that takes its time
            yield
    finally:
        ended.append(os.getpid())
    out.write(f"{len(threads)} threads")


done, ended, warned = [], [], []
registry.register(registry.Command("Test.walk", "Goes on until `done`.", walk))
warnings.simplefilter("error")
sys.unraisablehook = warned.append


def fork():
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        import gc

        gc.collect()
        os._exit(len(ended))
    assert os.waitpid(pid, 0)[1] == 0
    return time.monotonic() - begin
