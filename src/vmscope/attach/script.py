"""What a Python process is given to run, and its answer: a folder in /tmp, of the user who asks.

The process's user can neither change the script nor swap what root reads and removes: a privileged program, that the
process becomes by exec just then, runs nothing of that user's. The answer is the one file that the process may write.
A lock says that the client lives: without one the script removes the folder, or the next client does where it may not.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from itertools import islice

from vmscope.attach.target import TMP, Target
from vmscope.mounts import open_beneath

OK = "started"  # the first line of a good answer; of another one it is the error's type

_LONGEST_ANSWER = 4096
_MOST_NAMES = 100_000  # of /tmp, in the search for old folders
_PREFIX = "vmscope-attach-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES = ("attach.py", "waiting", "answer")

# What runs in the other process. It must leave nothing behind, raise nothing, and do nothing by halves.
_CODE = """\
def run(folder, package):
    import fcntl, os, sys
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
        with open(folder + "/answer", "r+", errors="replace") as file:
            file.write(answer + "\\0")
        try:
            with open(folder + "/waiting", "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
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

    __slots__ = ("_answer", "_folder", "_name", "_tmp", "_waiting", "path")

    def __init__(self, target: Target) -> None:
        """OSError where it cannot be made."""
        self._name = f"{_PREFIX}{target.pid}-{os.urandom(8).hex()}"
        self.path = f"{TMP}/{self._name}/attach.py"
        self._folder = self._waiting = self._answer = -1
        self._tmp = os.open(TMP, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _remove_stale(self._tmp)
            os.mkdir(self._name, 0o700, dir_fd=self._tmp)
            self._folder = os.open(self._name, _FOLDER, dir_fd=self._tmp)
            self._fill(target)
        except BaseException:
            self.remove()
            raise

    def _fill(self, target: Target) -> None:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        text = _CODE.format(ok=OK, names=_NAMES, folder=os.path.dirname(self.path), package=package)
        self._waiting = os.open("waiting", _NEW, 0o600, dir_fd=self._folder)
        flock(self._waiting, LOCK_EX)
        os.write(self._waiting, _namespace())
        self._answer = os.open("answer", _NEW, 0o600, dir_fd=self._folder)
        fd = os.open("attach.py", _NEW, 0o600, dir_fd=self._folder)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            if target.uid != os.geteuid():
                os.fchown(self._answer, target.uid, target.gid)
                os.fchmod(fd, 0o644)
                os.fchmod(self._folder, 0o711)
            file.write(text)

    def answer(self) -> str | None:
        """What the process has answered."""
        text = os.pread(self._answer, _LONGEST_ANSWER, 0).decode("utf-8", "replace")
        answer, end, _ = text.partition("\0")
        return answer if end or len(text) >= _LONGEST_ANSWER else None

    def abandon(self) -> None:
        """Leaves the script to the process, which will run it, and then remove it."""
        for fd in (self._waiting, self._answer, self._folder, self._tmp):
            if fd >= 0:
                os.close(fd)
        self._waiting = self._answer = self._folder = self._tmp = -1

    def remove(self) -> None:
        """Takes away all of it; a second call does nothing."""
        try:
            if self._folder >= 0:
                _empty(self._folder)
            if self._tmp >= 0:
                os.rmdir(self._name, dir_fd=self._tmp)
        except OSError:  # a cleaner of /tmp was faster
            pass
        finally:
            self.abandon()


def _namespace() -> bytes:
    """What the pid in the folder's name is a pid of: containers may share /tmp."""
    return os.readlink("/proc/self/ns/pid").encode()


def _empty(folder: int) -> None:
    for name in _NAMES:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass


def _remove_stale(tmp: int) -> None:
    """Removes the folders that clients of this user left to processes that have answered, or have ended, since."""
    with os.scandir(TMP) as entries:
        names = [entry.name for entry in islice(entries, _MOST_NAMES) if entry.name.startswith(_PREFIX)]
    for name in names:
        try:
            folder = open_beneath(tmp, name, _FOLDER)
        except OSError:
            continue
        try:
            if os.fstat(folder).st_uid == os.geteuid() and _done(folder, name):
                _empty(folder)
                os.rmdir(name, dir_fd=tmp)
        except OSError:  # another client is as far, or the folder is not a client's
            pass
        finally:
            os.close(folder)


def _done(folder: int, name: str) -> bool:
    """Whether a folder of vmscope's is no longer needed. OSError where a client waits."""
    with open(os.open("waiting", _OLD, dir_fd=folder), "rb") as file:
        flock(file, LOCK_SH | LOCK_NB)
        here = file.read(64) == _namespace()
    if os.stat("answer", dir_fd=folder, follow_symlinks=False).st_size:
        return True
    return here and not os.path.exists(f"/proc/{name.removeprefix(_PREFIX).partition('-')[0]}")
