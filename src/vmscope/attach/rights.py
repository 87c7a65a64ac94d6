"""Another user's rights: where a process's user may put links and swap folders, root does what that user could do.

Only this thread has them, and only on files; signals and descriptors that are open stay root's.
"""

from __future__ import annotations

import os
from stat import S_IWOTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

_ASK = -1  # no user: setfsuid changes nothing, and says who it is
_CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
# Over files: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, MKNOD; MAC_OVERRIDE
_LOW, _HIGH = 0x0800001F, 0x1


class Rights:
    """Those of a user and its group on files, in a `with` statement. Nothing changes where the user is ours.

    Raises PermissionError where they cannot be had, as without CAP_SETUID, and where root's capabilities over files
    stay.
    """

    __slots__ = ("_gid", "_libc", "_uid")

    def __init__(self, uid: int, gid: int) -> None:
        self._uid = uid
        self._gid = gid
        self._libc: ctypes.CDLL | None = None

    def __enter__(self) -> Rights:
        if self._uid != os.geteuid():
            try:
                import ctypes
            except ImportError:
                raise PermissionError(
                    f"the rights of another user cannot be taken without ctypes: user {self._uid}"
                ) from None
            self._libc = ctypes.CDLL(None)
            self._libc.setfsgid(self._gid)
            self._libc.setfsuid(self._uid)  # with the user go root's capabilities over files
            if not self._is_taken(ctypes.c_uint32):
                self.__exit__()
                raise PermissionError(f"the rights of user {self._uid} cannot be taken")
        return self

    def _is_taken(self, word: type[ctypes.c_uint32]) -> bool:
        """Whether this thread is the user on files, and no more: under SECBIT_NO_SETUID_FIXUP capabilities stay."""
        assert self._libc is not None
        user, group = (ask(_ASK) & 0xFFFFFFFF for ask in (self._libc.setfsuid, self._libc.setfsgid))
        found = (word * 6)()  # twice: effective, permitted, inheritable
        known = self._libc.capget((word * 2)(_CAPABILITIES, 0), found) == 0
        return (user, group) == (self._uid, self._gid) and known and not (found[0] & _LOW or found[3] & _HIGH)

    def __exit__(self, *_: object) -> None:
        libc, self._libc = self._libc, None
        if libc is not None:
            libc.setfsuid(os.geteuid())
            libc.setfsgid(os.getegid())

    def check(self, folder: int) -> None:
        """PermissionError for a folder in which root's groups, which a thread keeps, could do what the user cannot."""
        found = os.fstat(folder)
        if self._libc is not None and found.st_uid != self._uid and not found.st_mode & S_IWOTH:
            raise PermissionError(f"not a folder of user {self._uid}, nor everybody's")
