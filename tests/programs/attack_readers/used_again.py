# The file is locked by a process that ends, and leaves the lock to another one, its name and pid to root's.
import fcntl
import os
import signal

import vmscope
from tests.programs.sandbox import answer
from vmscope import reader


def spawn(action):
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    return child


def spawn_as(pid):
    for _ in range(10_000):  # others fork too
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        child = spawn(signal.pause)
        if child == pid:
            return child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def lock():
    os.setresgid(1001, 1001, 1001)
    os.setresuid(1001, 1001, 1001)
    name = f"/tmp/hsperfdata_shop/{os.getpid()}"
    with open(name, "wb") as file:
        file.write(image)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        keeper = spawn(signal.pause)  # the lock is the open file's, and this process keeps it
        with open("/tmp/keeper", "w") as file:  # type: ignore[assignment]
            file.write(str(keeper))  # type: ignore[arg-type]


vmscope.runtime.start()
with open(vmscope.runtime.status().path, "rb") as file:  # type: ignore[arg-type]
    image = file.read()
vmscope.runtime.stop()
os.mkdir("/tmp/hsperfdata_shop", 0o755)
os.chown("/tmp/hsperfdata_shop", 1001, 1001)
pid = spawn(lock)
os.waitpid(pid, 0)
roots = spawn_as(pid)
holders = [line.split()[4] for line in open("/proc/locks") if "FLOCK" in line]
path = f"/tmp/hsperfdata_shop/{pid}"
answer(held=str(pid) in holders, states=[vm.state for vm in reader.vms(stale=True) if vm.path == path])
os.kill(roots, signal.SIGKILL)
os.kill(int(open("/tmp/keeper").read()), signal.SIGKILL)
