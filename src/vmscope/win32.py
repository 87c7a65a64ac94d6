"""The Win32 calls that vmscope makes: each typed once, here, and behind a function that raises OSError.

The error is the call's own (`winerror`, and Windows' text for it). Handles are plain ints; whoever gets one closes it,
and no child process inherits it.
"""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char, c_size_t, c_void_p, create_unicode_buffer, sizeof, wintypes
from ctypes.wintypes import BOOL, DWORD, FILETIME, HANDLE, LPCWSTR, LPWSTR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ERROR_FILE_NOT_FOUND = 2
ERROR_ACCESS_DENIED = 5
ERROR_HANDLE_DISK_FULL = 39
ERROR_INVALID_PARAMETER = 87
ERROR_DISK_FULL = 112
ERROR_ALREADY_EXISTS = 183

FILE_ATTRIBUTE_DIRECTORY = 0x10
FILE_ATTRIBUTE_REPARSE_POINT = 0x400
FILE_PERSISTENT_ACLS = 0x8
FILE_VOLUME_IS_COMPRESSED = 0x8000

_MAX_PATH = 260
_LONGEST_NAME = 256 + 1  # UNLEN and its NUL
_STILL_ACTIVE = 259
_INVALID_HANDLE = c_void_p(-1).value
_NO_ATTRIBUTES = 0xFFFFFFFF
_GENERIC_READ, _GENERIC_WRITE = 0x80000000, 0x40000000
_SHARE_READ, _SHARE_WRITE, _SHARE_DELETE = 1, 2, 4
_CREATE_ALWAYS, _OPEN_EXISTING = 2, 3
_ATTRIBUTE_TEMPORARY, _FLAG_DELETE_ON_CLOSE = 0x100, 0x04000000
_PAGE_READWRITE = 4
_FILE_MAP_WRITE, _FILE_MAP_READ = 2, 4
_DACL_SECURITY_INFORMATION = 4
_TOKEN_QUERY, _TOKEN_USER = 8, 1
_PROCESS_QUERY_LIMITED_INFORMATION = 0x1000
_SNAPSHOT_PROCESSES = 2
_SDDL_REVISION = 1

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)


class _SecurityAttributes(Structure):
    _fields_ = [("nLength", DWORD), ("lpSecurityDescriptor", c_void_p), ("bInheritHandle", BOOL)]


class _ProcessMemory(Structure):
    _fields_ = [
        ("cb", DWORD),
        ("PageFaultCount", DWORD),
        ("PeakWorkingSetSize", c_size_t),
        ("WorkingSetSize", c_size_t),
        ("QuotaPeakPagedPoolUsage", c_size_t),
        ("QuotaPagedPoolUsage", c_size_t),
        ("QuotaPeakNonPagedPoolUsage", c_size_t),
        ("QuotaNonPagedPoolUsage", c_size_t),
        ("PagefileUsage", c_size_t),
        ("PeakPagefileUsage", c_size_t),
    ]


class _ProcessEntry(Structure):
    _fields_ = [
        ("dwSize", DWORD),
        ("cntUsage", DWORD),
        ("th32ProcessID", DWORD),
        ("th32DefaultHeapID", c_size_t),
        ("th32ModuleID", DWORD),
        ("cntThreads", DWORD),
        ("th32ParentProcessID", DWORD),
        ("pcPriClassBase", wintypes.LONG),
        ("dwFlags", DWORD),
        ("szExeFile", wintypes.WCHAR * _MAX_PATH),
    ]


class _TokenUser(Structure):
    _fields_ = [("Sid", c_void_p), ("Attributes", DWORD)]


def _function(library: ctypes.WinDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = library[name]  # an object of its own, which no other code in the process types anew
    function.restype = result
    function.argtypes = arguments
    return function


_k, _a, _security = _kernel32, _advapi32, POINTER(_SecurityAttributes)
_dword_out, _handle_out, _time_out = POINTER(DWORD), POINTER(HANDLE), POINTER(FILETIME)
# fmt: off
_CloseHandle = _function(_k, "CloseHandle", BOOL, HANDLE)
_CreateDirectory = _function(_k, "CreateDirectoryW", BOOL, LPCWSTR, _security)
_CreateFile = _function(_k, "CreateFileW", HANDLE, LPCWSTR, DWORD, DWORD, _security, DWORD, DWORD, HANDLE)
_CreateFileMapping = _function(_k, "CreateFileMappingW", HANDLE, HANDLE, _security, DWORD, DWORD, DWORD, LPCWSTR)
_CreateSnapshot = _function(_k, "CreateToolhelp32Snapshot", HANDLE, DWORD, DWORD)
_FlushFileBuffers = _function(_k, "FlushFileBuffers", BOOL, HANDLE)
_GetCurrentProcess = _function(_k, "GetCurrentProcess", HANDLE)
_GetExitCodeProcess = _function(_k, "GetExitCodeProcess", BOOL, HANDLE, _dword_out)
_GetFileAttributes = _function(_k, "GetFileAttributesW", DWORD, LPCWSTR)
_GetProcessHandleCount = _function(_k, "GetProcessHandleCount", BOOL, HANDLE, _dword_out)
_GetProcessMemoryInfo = _function(_k, "K32GetProcessMemoryInfo", BOOL, HANDLE, POINTER(_ProcessMemory), DWORD)
_GetProcessTimes = _function(_k, "GetProcessTimes", BOOL, HANDLE, _time_out, _time_out, _time_out, _time_out)
_GetTempPath = _function(_k, "GetTempPathW", DWORD, DWORD, LPWSTR)
_GetVolumeInformation = _function(
    _k, "GetVolumeInformationW", BOOL, LPCWSTR, LPWSTR, DWORD, _dword_out, _dword_out, _dword_out, LPWSTR, DWORD
)
_LocalFree = _function(_k, "LocalFree", c_void_p, c_void_p)
_MapViewOfFile = _function(_k, "MapViewOfFile", c_void_p, HANDLE, DWORD, DWORD, DWORD, c_size_t)
_OpenFileMapping = _function(_k, "OpenFileMappingW", HANDLE, DWORD, BOOL, LPCWSTR)
_OpenProcess = _function(_k, "OpenProcess", HANDLE, DWORD, BOOL, DWORD)
_ProcessFirst = _function(_k, "Process32FirstW", BOOL, HANDLE, POINTER(_ProcessEntry))
_ProcessNext = _function(_k, "Process32NextW", BOOL, HANDLE, POINTER(_ProcessEntry))
_QueryImageName = _function(_k, "QueryFullProcessImageNameW", BOOL, HANDLE, DWORD, LPWSTR, _dword_out)
_UnmapViewOfFile = _function(_k, "UnmapViewOfFile", BOOL, c_void_p)
_WriteFile = _function(_k, "WriteFile", BOOL, HANDLE, c_void_p, DWORD, _dword_out, c_void_p)
_DescriptorOfText = _function(
    _a, "ConvertStringSecurityDescriptorToSecurityDescriptorW", BOOL, LPCWSTR, DWORD, POINTER(c_void_p), c_void_p
)
_GetTokenInformation = _function(_a, "GetTokenInformation", BOOL, HANDLE, DWORD, c_void_p, DWORD, _dword_out)
_GetUserName = _function(_a, "GetUserNameW", BOOL, LPWSTR, _dword_out)
_OpenProcessToken = _function(_a, "OpenProcessToken", BOOL, HANDLE, DWORD, _handle_out)
_SetFileSecurity = _function(_a, "SetFileSecurityW", BOOL, LPCWSTR, DWORD, c_void_p)
_TextOfSid = _function(_a, "ConvertSidToStringSidW", BOOL, c_void_p, POINTER(c_void_p))
# fmt: on


def _error() -> OSError:
    return ctypes.WinError(ctypes.get_last_error())


def _check(succeeded: object) -> None:
    if not succeeded:
        raise _error()


def close(handle: int) -> None:
    _check(_CloseHandle(handle))


# -- who, and where -------------------------------------------------------------------------------


def user_name() -> str:
    """What USERNAME says, or the account's name where it is unset or empty."""
    if given := os.environ.get("USERNAME"):
        return given
    name = create_unicode_buffer(_LONGEST_NAME)
    _check(_GetUserName(name, byref(DWORD(_LONGEST_NAME))))
    return name.value


def temporary_folder() -> str:
    """The folder for temporary files, which need not exist, with the backslash at its end."""
    path = create_unicode_buffer(_MAX_PATH + 1)
    length = _GetTempPath(len(path), path)
    _check(length)
    if length >= len(path):
        raise OSError(0, "the temporary folder's path is too long", None, ERROR_INVALID_PARAMETER)
    return path.value


def volume_flags(root: str) -> int:
    """What the file system can do whose root this is, such as `C:\\`: FILE_PERSISTENT_ACLS and others."""
    flags = DWORD()
    _check(_GetVolumeInformation(root, None, 0, None, None, byref(flags), None, 0))
    return flags.value


def file_attributes(path: str) -> int:
    """Of a file or directory itself, where it is a link."""
    attributes: int = _GetFileAttributes(path)
    if attributes == _NO_ATTRIBUTES:
        raise _error()
    return attributes


def insecurity(directory: str) -> str:
    """Why another user could lead its user astray: what it is instead of a directory; "": nothing."""
    attributes = file_attributes(directory)
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT:
        return "a link"
    return "" if attributes & FILE_ATTRIBUTE_DIRECTORY else "not a directory"


def user_sid() -> str:
    """The security identifier of this process's user, as text."""
    token, needed, text = HANDLE(), DWORD(), c_void_p()
    _check(_OpenProcessToken(_GetCurrentProcess(), _TOKEN_QUERY, byref(token)))
    try:
        _GetTokenInformation(token, _TOKEN_USER, None, 0, byref(needed))  # fails, and says how much it needs
        if needed.value < sizeof(_TokenUser):
            raise _error()
        room = (c_char * needed.value)()
        _check(_GetTokenInformation(token, _TOKEN_USER, room, needed, byref(needed)))
        _check(_TextOfSid(_TokenUser.from_buffer(room).Sid, byref(text)))
        try:
            return ctypes.wstring_at(text.value or 0)
        finally:
            _LocalFree(text)
    finally:
        close(token.value or 0)


class SecurityDescriptor:
    """A security descriptor, from its text (SDDL), until the end of the `with` statement."""

    def __init__(self, text: str) -> None:
        self._address = c_void_p()
        _check(_DescriptorOfText(text, _SDDL_REVISION, byref(self._address), None))
        self._attributes = _SecurityAttributes(sizeof(_SecurityAttributes), self._address, False)

    def __enter__(self) -> SecurityDescriptor:
        return self

    def __exit__(self, *_: object) -> None:
        _LocalFree(self._address)

    def make_directory(self, path: str) -> None:
        _check(_CreateDirectory(path, byref(self._attributes)))

    def apply(self, path: str) -> None:
        """Gives the file or directory this DACL."""
        _check(_SetFileSecurity(path, _DACL_SECURITY_INFORMATION, self._address))

    def make_file(self, path: str) -> int:
        """A handle to a new, empty file in place of any that is there; it goes with its last handle and view.

        Temporary: Windows then need not carry to the disk what is written to it.
        """
        handle: int = _CreateFile(
            path,
            _GENERIC_READ | _GENERIC_WRITE,
            _SHARE_READ | _SHARE_DELETE,
            byref(self._attributes),
            _CREATE_ALWAYS,
            _ATTRIBUTE_TEMPORARY | _FLAG_DELETE_ON_CLOSE,
            None,
        )
        if handle == _INVALID_HANDLE:
            raise _error()
        return handle

    def make_mapping(self, file: int, size: int, name: str) -> int:
        """A handle to a new mapping of a file's first `size` bytes. The name must be new."""
        ctypes.set_last_error(0)  # which a call that succeeds need not touch
        handle: int | None = _CreateFileMapping(file, byref(self._attributes), _PAGE_READWRITE, 0, size, name)
        if handle is None:
            raise _error()
        if ctypes.get_last_error() == ERROR_ALREADY_EXISTS:
            error = _error()
            close(handle)
            raise error
        return handle


# -- files and mappings ---------------------------------------------------------------------------


def write(file: int, data: bytes) -> None:
    """Writes it all where the file stands."""
    written = DWORD()
    done = 0
    while done < len(data):
        rest = data[done:] if done else data
        _check(_WriteFile(file, rest, len(rest), byref(written), None))
        if not written.value:
            raise OSError(0, "nothing could be written", None, ERROR_DISK_FULL)
        done += written.value


def flush(path: str) -> None:
    """Has the file's size stand in its directory."""
    share = _SHARE_READ | _SHARE_WRITE | _SHARE_DELETE
    handle = _CreateFile(path, _GENERIC_READ | _GENERIC_WRITE, share, None, _OPEN_EXISTING, 0, None)
    if handle == _INVALID_HANDLE:
        raise _error()
    try:
        _check(_FlushFileBuffers(handle))
    finally:
        close(handle)


def open_mapping(name: str) -> int:
    """A handle to an existing mapping, to read it."""
    handle: int | None = _OpenFileMapping(_FILE_MAP_READ, False, name)
    if handle is None:
        raise _error()
    return handle


class _Unmap:
    """Ends a view when nothing refers to it any more."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self, unmap: Any = _UnmapViewOfFile) -> None:
        unmap(self._address)


def view(mapping: int, size: int, *, writable: bool) -> memoryview:
    """A mapping's first `size` bytes, which stay mapped as long as the program has the view or a part of it."""
    address: int | None = _MapViewOfFile(mapping, _FILE_MAP_WRITE if writable else _FILE_MAP_READ, 0, 0, size)
    if address is None:
        raise _error()
    array = (c_char * size).from_address(address)
    array.unmap = _Unmap(address)  # type: ignore[attr-defined]
    whole = memoryview(array).cast("B")
    return whole if writable else whole.toreadonly()


# -- processes ------------------------------------------------------------------------------------


class ProcessFacts:
    """One look at a living process. `started` in units of 100 ns since 1601, CPU times in the same units."""

    __slots__ = ("program", "resident", "started", "system_time", "user_time")

    def __init__(self, handle: int) -> None:
        created, ended, system, user = FILETIME(), FILETIME(), FILETIME(), FILETIME()
        _check(_GetProcessTimes(handle, byref(created), byref(ended), byref(system), byref(user)))
        self.started, self.system_time, self.user_time = map(_number, (created, system, user))
        memory = _ProcessMemory(sizeof(_ProcessMemory))
        _check(_GetProcessMemoryInfo(handle, byref(memory), sizeof(memory)))
        self.resident = int(memory.WorkingSetSize)
        path = create_unicode_buffer(1 << 15)
        length = DWORD(len(path))
        self.program = path.value if _QueryImageName(handle, 0, path, byref(length)) else ""


class _Opened:
    """A process's handle, closed behind the `with` statement."""

    def __init__(self, pid: int) -> None:
        handle: int | None = _OpenProcess(_PROCESS_QUERY_LIMITED_INFORMATION, False, pid)
        if handle is None:
            raise _error()
        self._handle = handle

    def __enter__(self) -> int:
        return self._handle

    def __exit__(self, *_: object) -> None:
        close(self._handle)


def _number(time: FILETIME) -> int:
    return time.dwHighDateTime << 32 | time.dwLowDateTime


def runs(pid: int) -> bool:
    """Whether there is such a process, and it has not ended. OSError where it is not ours to ask about."""
    if pid == 0:
        return True  # the idle process, which cannot be opened
    code = DWORD()
    try:
        with _Opened(pid) as handle:
            _check(_GetExitCodeProcess(handle, byref(code)))
    except OSError as error:
        if error.winerror == ERROR_INVALID_PARAMETER:
            return False
        raise
    return code.value == _STILL_ACTIVE


def process(pid: int) -> ProcessFacts:
    with _Opened(pid) as handle:
        return ProcessFacts(handle)


def thread_counts() -> dict[int, int]:
    """How many threads each process has, by pid."""
    counts: dict[int, int] = {}
    snapshot = _CreateSnapshot(_SNAPSHOT_PROCESSES, 0)
    if snapshot == _INVALID_HANDLE:
        raise _error()
    try:
        entry = _ProcessEntry(sizeof(_ProcessEntry))
        more = _ProcessFirst(snapshot, byref(entry))
        while more:
            counts[entry.th32ProcessID] = entry.cntThreads
            more = _ProcessNext(snapshot, byref(entry))
    finally:
        close(snapshot)
    return counts


def milliseconds(time: int) -> int:
    """Since 1970, of a time in units of 100 ns since 1601."""
    return time // 10_000 - 11_644_473_600_000


def own_started() -> int:
    """When this process started, in units of 100 ns since 1601."""
    created, ended, system, user = FILETIME(), FILETIME(), FILETIME(), FILETIME()
    _check(_GetProcessTimes(_GetCurrentProcess(), byref(created), byref(ended), byref(system), byref(user)))
    return _number(created)


def own_memory() -> tuple[int, int, int]:
    """This process's resident memory, the most that it was, and its committed memory."""
    memory = _ProcessMemory(sizeof(_ProcessMemory))
    _check(_GetProcessMemoryInfo(_GetCurrentProcess(), byref(memory), sizeof(memory)))
    return memory.WorkingSetSize, memory.PeakWorkingSetSize, memory.PagefileUsage


def own_handles() -> int:
    """How many handles this process has open."""
    count = DWORD()
    _check(_GetProcessHandleCount(_GetCurrentProcess(), byref(count)))
    return count.value
