# Out here: how to start programs in pid namespaces of their own, whose /tmp is our /mnt.
import fcntl
import json
import os
import subprocess
import time

from tests import sandbox


def container(command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


TMP = "mount --bind /mnt /tmp"

VM = """
vmscope.start()
status = vmscope.status()
answer(pid=os.getpid(), path=status.path, reason=status.reason)
sys.stdin.read()
"""


def vm():
    child = container(sandbox.command(VM, mounts=TMP, pid=True))
    return child, json.loads(child.stdout.readline())


def jvm(java):
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    options = ["-XX:+UseSerialGC", "-Xmx32m", "-Xlog:disable", "-Xlog:all=off"]
    keytool = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/nonexistent/none.p12"]
    child = container([*unshare, "sh", "-c", TMP + '; exec "$@"', "sh", java, *options, *keytool])
    said = b""
    while b"password:" not in said:
        more = os.read(child.stdout.fileno(), 4096)
        assert more, said
        said += more
    return child


def end(child, pid=None):
    child.kill()  # and with it, --kill-child, all of its namespace
    child.stdout.read()
    child.wait()
    child.stdin.close()  # only now: an end of input would be an orderly end
    deadline = time.monotonic() + 20
    while pid is not None and region(pid)[1] and time.monotonic() < deadline:  # its last thread is on its way out
        time.sleep(0.01)  # the process is of another namespace


def region(pid=1):
    path = f"/mnt/hsperfdata_root/{pid}"
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = False
        except BlockingIOError:
            locked = True
        return os.fstat(file.fileno()).st_ino, locked, b"vmscope" in file.read()
