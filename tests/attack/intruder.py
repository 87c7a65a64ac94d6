"""Another user, who puts things in the way: at a path that is about to be used, or has just been looked at."""

from __future__ import annotations

from tests import programs
from tests.support import Child, User, python_command

# What may stand in the way. SECRET is a file that the intruder may read, and wants to see changed, or filled.
KINDS = ("link", "hard link", "file", "pipe", "socket", "folder")

_CODE = programs.source("intruder/program")


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
