# Holds what it is told to: a lock, a mapping.
import fcntl
import mmap
import os
import sys

held = []


def lock(path):
    held.append(os.open(path, os.O_RDWR))
    fcntl.flock(held[-1], fcntl.LOCK_EX)


def map(path):
    fd = os.open(path, os.O_RDWR)
    held.append(mmap.mmap(fd, 0))
    os.close(fd)


print("ready", flush=True)
for line in sys.stdin:
    eval(line)
    print("done", flush=True)
