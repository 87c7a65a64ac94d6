import os
import threading
import time

from vmscope.tool.model import threads

seen: list[threads.Thread] = []
go = threading.Event()


def run():
    seen.append(threads.current())
    go.wait()


other = threading.Thread(target=run, daemon=True)
other.start()
from tests.wait import wait_for

wait_for(lambda: seen)
own = threads.current()
pid = os.fork()
if not pid:
    os._exit(0 if own.alive and threads.current() is own and not seen[0].alive and own.native_id == os.getpid() else 7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert seen[0].alive
go.set()
other.join()
