import os
import sys

from tests.programs.sandbox import IMAGE, answer, fcntl, publish, tree

links: list[object] = []
sys.addaudithook(lambda event, arguments: links.append(arguments[0]) if event == "os.link" else None)
vm = os.fork()
if vm == 0:
    file, _ = publish()
    try:
        fcntl.flock(open(file.path, "rb"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        answer(links=links, whole=open(file.path, "rb").read() == IMAGE, tree=len(tree()))
    os.kill(os.getpid(), 9)
os.waitpid(vm, 0)
file, removed = publish()
file.unlink()
from tests.wait import wait_for

wait_for(lambda: len(tree()) <= 1)  # what is unlinked while open keeps a hidden name
answer(removed=removed == [str(vm)], tree=tree())
