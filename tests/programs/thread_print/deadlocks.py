import sys
import threading
import time

from vmscope import commands

a, b, c = threading.Lock(), threading.RLock(), threading.Lock()
ready = threading.Barrier(3)


def cross(one, two):
    with one:
        ready.wait()
        with two:
            pass


for name, locks in (("ann", (a, b)), ("bob", (b, c)), ("cid", (c, a))):
    threading.Thread(target=cross, args=locks, name=name, daemon=True).start()
itself = threading.Lock()


def twice():
    with itself:
        with itself:
            pass


threading.Thread(target=twice, name="eve", daemon=True).start()
import io

from tests.wait import wait_for


def dump():
    out = io.StringIO()
    commands.execute("Thread.print", out)
    return "Found 2 deadlocks." in out.getvalue() and out.getvalue()


print(wait_for(dump), flush=True)
import os

os._exit(0)
