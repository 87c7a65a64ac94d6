"""Other processes and their regions, and bytes that are not a region."""

from __future__ import annotations

from vmscope.errors import VMScopeError


class NoSuchProcess(VMScopeError, ProcessLookupError):
    """No process has this pid, or the one that wrote the region is gone."""


class AccessDenied(VMScopeError, PermissionError):
    """The operating system does not let this user read the process or the file."""


class NoRegion(VMScopeError, FileNotFoundError):
    """The process lives but publishes no region that can be found."""


class StaleRegion(VMScopeError, ProcessLookupError):
    """The region's file is there, its writer is not: it ended, or its pid went to another process."""


class ReadTimeout(VMScopeError, TimeoutError):
    """A region that is not read in time: its owner changes it without pause, or has made it so that no reader could."""


class NotReadable(VMScopeError, ValueError):
    """A process whose stacks cannot be read from outside: not a CPython, or one of a version that is not known."""


class RegionSizeError(VMScopeError, ValueError):
    """A region file whose size cannot be a region's (zero, or not a multiple of a page)."""


class AccessModeError(VMScopeError, ValueError):
    """A mode in which no region can be attached; only read-only works."""


class FormatError(VMScopeError, ValueError):
    """Bytes that are not a readable region. `offset` says where, `entry` which entry (its name, or "")."""

    def __init__(self, message: str, *, offset: int = 0, entry: str = "", path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.offset = offset
        self.entry = entry


class MagicError(FormatError):
    """The first four bytes are not a region's."""


class VersionError(FormatError):
    """A region, but of a version that is not defined."""


class StructureError(FormatError):
    """An offset or a length that points outside its entry or the region."""


class DataError(FormatError):
    """A variability or units code that is not defined, or one that this type cannot have."""


class EntryTypeError(FormatError, TypeError):
    """An entry of a type that no reader understands."""


class RecordingFormatError(VMScopeError, ValueError):
    """A file that is not a flight recording, or not a whole one. `offset` says where."""

    def __init__(self, message: str, *, offset: int = 0, path: str | None = None, hint: str = "") -> None:
        super().__init__(message, path=path, hint=hint)
        self.offset = offset
