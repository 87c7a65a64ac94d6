"""Every error that vmscope raises: what happened, to which process or file, and what to do now.

All of them derive from `VMScopeError` and, where Python has a builtin for the same thing,
from that builtin too. They pickle with everything they carry.

Here are those that a process meets by itself. The others are in modules of their own, which are loaded when one of
their names is first used: 33 classes take a sixth of the time that vmscope adds to a start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.errors._agents import (
        AgentError,
        InstrumentError,
        LibraryError,
    )
    from vmscope.errors._clients import (
        AttachError,
        AttachTimeout,
        CommandError,
        CommandLineError,
        InsecureSocket,
        NotAttachable,
        OperationFailed,
        RequestError,
        VMIdentifierError,
    )
    from vmscope.errors._readers import (
        AccessDenied,
        AccessModeError,
        DataError,
        EntryTypeError,
        FormatError,
        MagicError,
        NoRegion,
        NoSuchProcess,
        NotReadable,
        ReadTimeout,
        RecordingFormatError,
        RegionSizeError,
        StaleRegion,
        StructureError,
        VersionError,
    )

__all__ = [
    "AccessDenied",
    "AccessModeError",
    "AgentError",
    "AttachError",
    "AttachTimeout",
    "CommandError",
    "CommandLineError",
    "CounterExistsError",
    "CounterNameError",
    "DataError",
    "DiskFull",
    "EntryTypeError",
    "EventExistsError",
    "EventNameError",
    "FormatError",
    "InsecureDirectory",
    "InsecureSocket",
    "InstrumentError",
    "LibraryError",
    "MagicError",
    "NoRegion",
    "NoSuchProcess",
    "NotAttachable",
    "NotReadable",
    "OperationFailed",
    "OptionError",
    "ReadTimeout",
    "RecordingFormatError",
    "RegionFileError",
    "RegionSizeError",
    "RequestError",
    "StaleRegion",
    "StructureError",
    "VMIdentifierError",
    "VMScopeError",
    "VersionError",
]

_HOMES = {
    "_agents": ("AgentError", "LibraryError", "InstrumentError"),
    "_clients": (
        "AttachError",
        "NotAttachable",
        "AttachTimeout",
        "InsecureSocket",
        "RequestError",
        "OperationFailed",
        "CommandError",
        "VMIdentifierError",
        "CommandLineError",
    ),
    "_readers": (
        "NoSuchProcess",
        "AccessDenied",
        "NoRegion",
        "NotReadable",
        "StaleRegion",
        "ReadTimeout",
        "RegionSizeError",
        "AccessModeError",
        "FormatError",
        "MagicError",
        "VersionError",
        "StructureError",
        "DataError",
        "EntryTypeError",
        "RecordingFormatError",
    ),
}


class VMScopeError(Exception):
    """The base of vmscope's errors. `str(error)` is one line, `hint` says what to do; `pid` and `path` may be None."""

    def __init__(self, message: str, *, pid: int | None = None, path: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.pid = pid
        self.path = path
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))


def _rebuild(cls: type[VMScopeError], message: str, state: dict[str, object]) -> VMScopeError:
    error = cls.__new__(cls, message)
    VMScopeError.__init__(error, message)
    error.__dict__.update(state)
    return error


class RegionFileError(VMScopeError, OSError):
    """This process's region cannot stand in a file; its counters go on in private memory."""


class DiskFull(RegionFileError):
    """The file system or the user's quota has no room for the region: the one of these that deserves a warning."""


class InsecureDirectory(VMScopeError, PermissionError):
    """A region directory that another user could have tampered with: never read, never written."""


class CounterNameError(VMScopeError, ValueError):
    """A counter name that is empty or holds anything but printable ASCII without blanks."""


class CounterExistsError(VMScopeError, ValueError):
    """A counter of this name exists with another kind, units or capacity."""


class EventNameError(VMScopeError, ValueError):
    """A name or a field that an event of the program's own cannot have."""


class EventExistsError(VMScopeError, ValueError):
    """An event of this name exists with other fields."""


class OptionError(VMScopeError, ValueError):
    """A VM option that is unknown, malformed or out of its range."""


if not TYPE_CHECKING:  # which finds names that do not exist

    def __getattr__(name: str) -> type[VMScopeError]:
        for home, names in _HOMES.items():
            if name in names:
                module = __import__(f"vmscope.errors.{home}", fromlist=names)
                for each in names:
                    found = getattr(module, each)
                    found.__module__ = __name__  # where programs find it, and pickle
                    globals()[each] = found
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
