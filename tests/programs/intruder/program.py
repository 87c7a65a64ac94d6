import os
import socket
import stat
import sys

kept = []


def put(kind, path, secret):
    try:
        if os.path.lexists(path):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
            else:
                os.unlink(path)
        if kind == "link":
            os.symlink(secret, path)
        elif kind == "hard link":
            os.link(secret, path)
        elif kind == "file":
            kept.append(open(path, "x"))
            os.chmod(path, 0o666)
        elif kind == "pipe":
            os.mkfifo(path, 0o666)
            os.chmod(path, 0o666)
            kept.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        elif kind == "socket":
            kept.append(socket.socket(socket.AF_UNIX))
            kept[-1].bind(path)
            kept[-1].listen()
            os.chmod(path, 0o777)
        elif kind == "folder":
            os.mkdir(path, 0o777)
            os.chmod(path, 0o777)
    except OSError as error:
        return error.strerror
    return "done"


def move(path, other):
    try:
        os.rename(path, other)
    except OSError as error:
        return error.strerror
    return "done"


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
