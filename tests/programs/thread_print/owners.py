import io
import threading

from tests.wait import wait_for
from vmscope import commands

lock, over = threading.Lock(), threading.Event()


def take():
    lock.acquire()


def hold():
    lock.acquire()
    over.wait()
    lock.release()


def kept():
    take()
    over.wait()
    lock.release()


def waits():
    out = io.StringIO()
    commands.execute("Thread.print -l", out)
    return "waiting to lock" in out.getvalue() and out.getvalue()


def dump(target):
    over.clear()
    holder = threading.Thread(target=target, name="holder")
    holder.start()
    wait_for(lock.locked)
    waiter = threading.Thread(target=take, name="waiter")
    waiter.start()
    text = wait_for(waits)
    over.set()
    holder.join()
    waiter.join()
    lock.release()
    print(text)
    print("@@")


dump(hold)
dump(kept)
