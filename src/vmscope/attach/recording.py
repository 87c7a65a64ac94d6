"""A flight recording in another process, of its own name: started, copied to us, and stopped.

The process writes the copy into a folder in its own tmp directory, which it and we alone may look into.
"""

from __future__ import annotations

import os
import stat

from vmscope.attach.client import connect
from vmscope.attach.target import TMP
from vmscope.errors import AttachError, OperationFailed
from vmscope.mounts import open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.attach.target import Target

_STARTED, _DUMPED = "Started recording", "Dumped recording"
_FILE = "recording.jfr"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20


class RemoteRecording:
    """A recording that runs from `start` to `stop`. `dump` copies what it has so far."""

    __slots__ = ("_client", "_runs", "name", "pid")

    def __init__(self, pid: int) -> None:
        """Raises what `connect` raises."""
        self.pid = pid
        self.name = f"vmscope-{os.getpid()}-{os.urandom(4).hex()}"
        self._client = connect(pid)
        self._runs = False

    @property
    def alive(self) -> bool:
        """Whether its process is."""
        return self._client.target.alive

    def start(self, *settings: str) -> None:
        """With the settings called profile, and these. Raises OperationFailed with the process's own words."""
        self._runs = True  # even if its answer is lost
        reply = self._ask(f"JFR.start name={self.name} settings=profile", *settings)
        if _STARTED not in reply:
            raise self._failure(reply)

    def dump(self, path: str) -> None:
        """Writes what there is to a file. Raises OperationFailed, AttachError, OSError."""
        with _Folder(self._client.target) as folder:
            reply = self._ask(f"JFR.dump name={self.name} filename={folder.path}/{_FILE}")
            if _DUMPED not in reply:
                raise self._failure(reply)
            folder.copy(path)

    def stop(self) -> None:
        """Ends it, and its data there; nothing where it has ended."""
        if self._runs:
            self._runs = False
            self._ask(f"JFR.stop name={self.name}")

    def close(self) -> None:
        """Stops it, if that can be done, and leaves the process alone."""
        try:
            self.stop()
        except (AttachError, OperationFailed):
            pass  # the process has ended
        self._client.close()

    def _ask(self, *words: str) -> str:
        with self._client.execute("jcmd", " ".join(words)) as reply:
            if reply.status:
                raise reply.failure()
            return reply.read().decode("utf-8", "backslashreplace")

    def _failure(self, reply: str) -> OperationFailed:
        said = " ".join(reply.split()) or "it did not say why"
        return OperationFailed(f"process {self.pid} does not record: {said}", status=1, pid=self.pid)


class _Folder:
    """A folder in the process's tmp directory, of the process's user, gone at the end."""

    __slots__ = ("_folder", "_name", "_target", "_tmp", "path")

    def __init__(self, target: Target) -> None:
        self._target = target
        self._folder = -1
        self._name = f"vmscope-flight-{os.getpid()}-{os.urandom(8).hex()}"
        self.path = f"{TMP}/{self._name}"  # as the process sees it

    def __enter__(self) -> _Folder:
        self._tmp = self._target.open_tmp()
        try:
            os.mkdir(self._name, 0o700, dir_fd=self._tmp)
            self._folder = os.open(self._name, _FOLDER, dir_fd=self._tmp)
            if self._target.uid != os.geteuid():
                os.fchown(self._folder, self._target.uid, self._target.gid)
        except BaseException:
            self._remove()
            raise
        return self

    def copy(self, path: str) -> None:
        """The file that the process has left there. It is the process's user's: nothing of it is believed."""
        source = open_beneath(self._folder, _FILE, _READ)
        with open(source, "rb") as file, open(path, "wb") as ours:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise AttachError(f"process {self._target.pid} has left no file", pid=self._target.pid)
            while data := file.read(_PIECE):
                ours.write(data)

    def __exit__(self, *_: object) -> None:
        try:
            os.unlink(_FILE, dir_fd=self._folder)
        except OSError:
            pass  # it has written nothing
        self._remove()

    def _remove(self) -> None:
        try:
            os.rmdir(self._name, dir_fd=self._tmp)
        except OSError:
            pass  # a cleaner of /tmp was faster
        for descriptor in (self._folder, self._tmp):
            if descriptor >= 0:
                os.close(descriptor)
