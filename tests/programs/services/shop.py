# One of each: it prints the role and the pid of each process that it starts.
import multiprocessing
import os
import subprocess
import sys
import time


def work(way, pipe):
    pipe.send((way, os.getpid(), os.getppid()))
    time.sleep(100)


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe(False)
    for way in ("fork", "spawn", "forkserver"):
        multiprocessing.get_context(way).Process(target=work, args=(way, theirs), daemon=True).start()  # type: ignore[attr-defined]
        print(*ours.recv(), flush=True)
    from multiprocessing import resource_tracker

    print("tracker", resource_tracker._resource_tracker._pid, os.getpid(), flush=True)  # type: ignore[attr-defined]
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", "other"])
    print("other", other.pid, os.getpid(), flush=True)
    print("ready", flush=True)
    time.sleep(100)
