import os
import signal
import sys
import time

import vmscope

vmscope.start(*sys.argv[1:])
fds = sorted(os.listdir("/proc/self/fd"))
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        same = sorted(os.listdir("/proc/self/fd")) == fds
        from tests.wait import wait_for

        wait_for(lambda: vmscope.status().attach_path)
        print(f"child {os.getpid()} {same}\n", end="", flush=True)
        time.sleep(60)
        os._exit(0)
    pids.append(pid)
same = sorted(os.listdir("/proc/self/fd")) == fds
print(f"parent {os.getpid()} {same}\n", end="", flush=True)
sys.stdin.readline()
for pid in pids:
    os.kill(pid, signal.SIGTERM)
for pid in pids:
    os.waitpid(pid, 0)
