"""What root's exporter keeps of its rights once it listens: to read what VMs publish, and nothing to write."""

from __future__ import annotations

import os
import struct
import sys

from vmscope import mounts
from vmscope.errors import VMScopeError

NOBODY = 65534
_DAC_READ_SEARCH = 2  # other users' regions
_SYS_PTRACE = 19  # other users' /proc/PID/fd and environment, and the tmp directories of containers
KEPT = (_DAC_READ_SEARCH, _SYS_PTRACE)
_KEEP_CAPS, _NO_NEW_PRIVS, _CAPBSET_DROP, _SET_DUMPABLE = 8, 38, 24, 4
_VERSION_3 = 0x20080522


def drop() -> bool:
    """Becomes the user `nobody`, who may read everything. False where this is not root. No thread may run yet."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result: int) -> None:
        if result != 0:
            error = ctypes.get_errno()
            raise VMScopeError(f"root's rights cannot be dropped: {os.strerror(error)}", hint="run it as another user")

    held = _held()
    for capability in range(64):
        if capability not in KEPT and libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # the first that the kernel does not know, or a right that is missing already
    checked(libc.prctl(_KEEP_CAPS, 1, 0, 0, 0))
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        raise VMScopeError(
            f"root's rights cannot be dropped: {error.strerror}", hint="run it as another user"
        ) from None
    kept = sum(1 << capability for capability in KEPT) & held
    header = ctypes.create_string_buffer(struct.pack("=Ii", _VERSION_3, 0))
    data = ctypes.create_string_buffer(struct.pack("=6I", kept, kept, 0, 0, 0, 0))
    checked(libc.capset(header, data))
    checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    checked(libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0))
    if kept & 1 << _DAC_READ_SEARCH:
        mounts.read_as_root()
    return True


def _held() -> int:
    """The capabilities that this process may have."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next((int(line.split()[1], 16) for line in file if line.startswith("CapPrm:")), 0)
