import ctypes
import os


def sockets():
    found = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return [os.readlink(path) for path in found if os.path.exists(path) and os.readlink(path).startswith("socket:")]


def fork():
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        os._exit(len(sockets()))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
