"""Another user, who puts things in the way: at a path that is about to be used, or has just been looked at."""

from __future__ import annotations

from tests.support import Child, User, python_command

# What may stand in the way. SECRET is a file that the intruder may read, and wants to see changed, or filled.
KINDS = ("link", "hard link", "file", "pipe", "socket", "folder")

_CODE = """
import os, socket, stat, sys
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
"""


class Intruder(Child):
    """A process of that user, which may do anything that this user may."""

    def __init__(self, user: User) -> None:
        super().__init__(python_command(_CODE, user=user, preload=["socket"]))
        self.read_until(b"ready\n")

    def put(self, kind: str, path: object, secret: object = "") -> bool:
        """Puts something there, in the place of what is there. False where this user may not."""
        return self.ask(f"put({kind!r}, {str(path)!r}, {str(secret)!r})") == "done"

    def move(self, path: object, other: object) -> bool:
        """Gives what is there another name. False where this user may not."""
        return self.ask(f"move({str(path)!r}, {str(other)!r})") == "done"
