import faulthandler
import os
import threading

import hammer  # type: ignore[import-not-found]


def caught():
    with open("/proc/self/status") as file:
        mask = next(line.split()[1] for line in file if line.startswith("SigCgt"))
    return int(mask, 16) & 0x7FFFFFFF  # without libc's own


before = caught()
hammer.run(100, 64)
assert caught() == before
thread = threading.Thread(target=hammer.run, args=(20_000, 64))
thread.start()
faulthandler.enable()
enabled = caught()
pid = os.fork()
if pid == 0:
    os._exit(caught() != enabled)
assert os.waitpid(pid, 0)[1] == 0
thread.join()
assert caught() == enabled != before
faulthandler.disable()
hammer.run(100, 64)
assert caught() == before, "what it had put back is ours, and goes"
print("done")
