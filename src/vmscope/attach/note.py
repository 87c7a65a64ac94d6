"""The file that tells a VM that SIGQUIT means a client: `.attach_pidN`, of its own user, in its own tmp directory.

HotSpot looks in its working directory first, and there the JDK's clients make it. A user chooses the working
directories of its processes: root would make files wherever that user wants some, and leave them where it is gone by
the time they are to be removed. The tmp directory does for every HotSpot, and no VM without one can be asked.
"""

from __future__ import annotations

import os

from vmscope import native
from vmscope.attach.rights import Rights
from vmscope.attach.target import TMP, Target
from vmscope.errors import AccessDenied, VMScopeError
from vmscope.mounts import THERE

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 100


class Note:
    """Left while a `with` statement lasts, in which no signal should end us. AccessDenied where none can be.

    Its lock says that its client lives: what a killed client left is taken over, and goes with this one's.
    """

    __slots__ = ("_file", "_folder", "_name", "_rights", "_target")

    def __init__(self, target: Target) -> None:
        self._target = target
        self._name = f".attach_pid{target.nspid}"
        self._file = self._folder = -1

    def __enter__(self) -> Note:
        target = self._target
        self._folder = target.open_tmp()
        try:
            target.look()  # after that: it may have become another user's, who has chosen the directory
            self._rights = Rights(target.uid, target.gid)
            with self._rights:
                self._leave()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError) and not isinstance(error, VMScopeError):
                raise self._refusal(error.strerror or str(error)) from None
            raise
        return self

    def _leave(self) -> None:
        self._rights.check(self._folder)
        for _ in range(_TRIES):
            try:
                self._make_or_find()
                if self._file < 0 or self._is_there():
                    return
            except FileNotFoundError:  # another client has just taken its own away
                pass
            self._close()
        raise self._refusal("others make it and take it away all the time")

    def _make_or_find(self) -> None:
        try:
            self._file = os.open(self._name, _NEW, 0o600, dir_fd=self._folder)
        except FileExistsError:
            user = self._found().st_uid
            if user not in (0, self._target.uid):
                raise self._refusal(f"user {user} has a file {self._name} there") from None
            if user == 0 != self._target.uid:  # root's client, whom a VM believes too, takes it away
                return
            self._file = native.open_beneath(self._folder, self._name, _READ)
        try:
            native.lock_file(self._file)
        except BlockingIOError:  # its client lives, and takes it away
            self._close()

    def _is_there(self) -> bool:
        return os.path.samestat(self._found(), os.fstat(self._file))

    def _found(self) -> os.stat_result:
        """Whose the note is. OSError: EXDEV where a file system is mounted there, ELOOP for a symbolic link."""
        place = native.open_beneath(self._folder, self._name, THERE)
        try:
            return os.fstat(place)
        finally:
            os.close(place)

    def __exit__(self, *_: object) -> None:
        try:
            if self._file >= 0:
                with self._rights:
                    if self._is_there():
                        os.unlink(self._name, dir_fd=self._folder)
        except OSError:  # its user was faster
            pass
        finally:
            self._close()
            folder, self._folder = self._folder, -1
            if folder >= 0:
                os.close(folder)

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _refusal(self, why: str) -> AccessDenied:
        pid = self._target.pid
        return AccessDenied(
            f"process {pid} cannot be notified of a client: no file can be made in its {TMP}: {why}",
            pid=pid,
            hint="run this as its user or as root",
        )
