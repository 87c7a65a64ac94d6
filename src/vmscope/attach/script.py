"""What a Python process is given to run, and its answer: a folder in /tmp of its user alone, made with its rights.

So nothing of root's stands where that user can swap it, and root removes nothing by a path: all is done beside the
folder's descriptor. A lock says that the client lives: without one the script removes the folder itself.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from vmscope.attach.rights import Rights
from vmscope.attach.target import TMP, Target
from vmscope.errors import AttachError

OK = "started"  # the first line of a good answer; of another one it is the error's type

_LONGEST_ANSWER = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES = ("attach.py", "waiting", "answer", "answer.new")

# What runs in the other process. It must leave nothing behind, raise nothing, and do nothing by halves.
_CODE = """\
def run(folder, package):
    import os, sys
    before = set(sys.modules)
    try:
        try:
            import vmscope
        except ModuleNotFoundError as error:
            if error.name != "vmscope":
                raise
            import importlib.util
            spec = importlib.util.spec_from_file_location(
                "vmscope", package + "/__init__.py", submodule_search_locations=[package])
            try:
                vmscope = sys.modules["vmscope"] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(vmscope)
            except OSError:
                raise ModuleNotFoundError("vmscope is not installed there") from None
        vmscope.start()
        status = vmscope.status()
        answer = {ok!r} + "\\n" + (status.path or "") + "\\n" + status.attach_reason
    except Exception as error:
        for name in set(sys.modules) - before:
            if name == "vmscope" or name.startswith("vmscope."):
                del sys.modules[name]
        answer = type(error).__name__ + "\\n" + str(error)
    try:
        with open(folder + "/answer.new", "w", errors="replace") as file:
            file.write(answer)
        os.rename(folder + "/answer.new", folder + "/answer")
        try:
            with open(folder + "/waiting", "r+") as file:
                os.lockf(file.fileno(), os.F_TEST, 0)
        except FileNotFoundError:
            pass
        except OSError:
            return  # the client lives, and removes all
        for name in {names!r}:
            try:
                os.unlink(folder + "/" + name)
            except FileNotFoundError:
                pass
        os.rmdir(folder)
    except OSError:
        pass
run({folder!r}, {package!r})
"""


class Script:
    """The folder, from when it is made until it is removed, or `abandon`ed to the process. `path` is the script's."""

    __slots__ = ("_folder", "_name", "_rights", "_target", "_tmp", "_waiting", "path")

    def __init__(self, target: Target) -> None:
        """OSError where it cannot be made."""
        self._target = target
        self._rights = Rights(target.uid, target.gid)
        self._name = f"vmscope-attach-{target.pid}-{os.urandom(8).hex()}"
        self.path = f"{TMP}/{self._name}/attach.py"
        self._folder = self._waiting = -1
        self._tmp = os.open(TMP, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with self._rights:
                os.mkdir(self._name, 0o700, dir_fd=self._tmp)
                self._folder = os.open(self._name, _FOLDER, dir_fd=self._tmp)
                self._fill()
        except BaseException:
            self.remove()
            raise

    def _fill(self) -> None:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        text = _CODE.format(ok=OK, names=_NAMES, folder=os.path.dirname(self.path), package=package)
        self._waiting = os.open("waiting", _NEW, 0o600, dir_fd=self._folder)
        os.lockf(self._waiting, os.F_TLOCK, 0)
        fd = os.open("attach.py", _NEW, 0o600, dir_fd=self._folder)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def answer(self) -> str | None:
        """What the process has answered. AttachError for what is no file."""
        try:
            with self._rights:
                fd = os.open("answer", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._odd(str(error.strerror)) from None
        try:
            if not S_ISREG(os.fstat(fd).st_mode):
                raise self._odd("it is not a file")
            return os.read(fd, _LONGEST_ANSWER).decode("utf-8", "replace")
        finally:
            os.close(fd)

    def _odd(self, why: str) -> AttachError:
        return AttachError(f"the answer of process {self._target.pid} cannot be read: {why}", pid=self._target.pid)

    def abandon(self) -> None:
        """Leaves the script to the process, which will run it, and then remove it."""
        for fd in (self._waiting, self._folder, self._tmp):
            if fd >= 0:
                os.close(fd)
        self._waiting = self._folder = self._tmp = -1

    def remove(self) -> None:
        """Takes away all of it; a second call does nothing."""
        try:
            with self._rights:
                if self._folder >= 0:
                    for name in _NAMES:
                        try:
                            os.unlink(name, dir_fd=self._folder)
                        except FileNotFoundError:
                            pass
                if self._tmp >= 0:
                    os.rmdir(self._name, dir_fd=self._tmp)
        except OSError:  # its user was faster
            pass
        finally:
            self.abandon()
