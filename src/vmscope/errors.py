"""Every error that vmscope raises: what happened, to which process or file, and what to do now.

All of them derive from `VMScopeError` and, where Python has a builtin for the same thing,
from that builtin too. They pickle with everything they carry.
"""

from __future__ import annotations


class VMScopeError(Exception):
    """The base. `str(error)` is one line; `pid` and `path` say what it is about; `hint` what to do now."""

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


# -- other processes and their regions ------------------------------------------------------------


class NoSuchProcess(VMScopeError, ProcessLookupError):
    """No process has this pid, or the one that wrote the region is gone."""


class AccessDenied(VMScopeError, PermissionError):
    """The operating system does not let this user read the process or the file."""


class NoRegion(VMScopeError, FileNotFoundError):
    """The process lives but publishes no region that can be found."""


class StaleRegion(VMScopeError, ProcessLookupError):
    """The region's file is there, its writer is not: it ended, or its pid went to another process."""


class ReadTimeout(VMScopeError, TimeoutError):
    """A region that is not read in time: its owner changes it without pause, or has made it so that nobody could."""


class InsecureDirectory(VMScopeError, PermissionError):
    """A region directory that another user could have tampered with: never read, never written."""


class RegionSizeError(VMScopeError, ValueError):
    """A region file whose size cannot be a region's (zero, or not a multiple of a page)."""


class AccessModeError(VMScopeError, ValueError):
    """A mode in which no region can be attached; only read-only works."""


class VMIdentifierError(VMScopeError, ValueError):
    """Text that is no VM identifier of the form `[proto:][//]lvmid[@host][:port][/server]`."""


# -- bytes that are no region ---------------------------------------------------------------------


class FormatError(VMScopeError, ValueError):
    """Bytes that are not a readable region. `offset` says where, `entry` which entry (its name, or "")."""

    def __init__(self, message: str, *, offset: int = 0, entry: str = "", path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.offset = offset
        self.entry = entry


class MagicError(FormatError):
    """The first four bytes are not a region's."""


class VersionError(FormatError):
    """A region, but of a version that nobody defined."""


class StructureError(FormatError):
    """An offset or a length that points outside its entry or the region."""


class DataError(FormatError):
    """A variability or units code that nobody defined, or one that this type cannot have."""


class EntryTypeError(FormatError, TypeError):
    """An entry of a type that no reader understands."""


# -- asking another process -----------------------------------------------------------------------


class AttachError(VMScopeError, ConnectionError):
    """A process that could not be asked, or that stopped answering half-way."""


class NotAttachable(AttachError):
    """The process does not take part in the attach protocol. No signal was sent to it."""


class AttachTimeout(AttachError, TimeoutError):
    """The process takes part, and did not answer in time."""


class InsecureSocket(AttachError, PermissionError):
    """A socket that another user could have put there, or that another process answers: nothing was sent to it."""


class RequestError(AttachError, ValueError):
    """What is asked of a process does not fit into the attach protocol."""


class OperationFailed(VMScopeError, RuntimeError):
    """The process answered, and what was asked of it failed: `status` is the protocol's, the message its own."""

    def __init__(self, message: str, *, status: int, pid: int | None = None) -> None:
        super().__init__(message, pid=pid)
        self.status = status


# -- this process's own region --------------------------------------------------------------------


class RegionFileError(VMScopeError, OSError):
    """This process's region cannot stand in a file; its counters go on in private memory."""


class DiskFull(RegionFileError):
    """The file system or the user's quota has no room for the region: the one of these that deserves a warning."""


# -- this process's own counters ------------------------------------------------------------------


class CounterNameError(VMScopeError, ValueError):
    """A counter name that is empty or holds anything but printable ASCII without blanks."""


class CounterExistsError(VMScopeError, ValueError):
    """A counter of this name exists with another kind, units or capacity."""


class OptionError(VMScopeError, ValueError):
    """A VM option that is unknown, malformed or out of its range."""


class InstrumentError(OptionError):
    """A name that no instrument has, or of one that cannot work here."""


class AgentError(VMScopeError, RuntimeError):
    """An agent that cannot be loaded: not found, without an entry point, or it raised or returned no 0.

    `agent` is its name, `reason` the message without that, `status` what it returned, where that is why.
    """

    def __init__(self, agent: str, message: str, *, status: object = None, path: str | None = None) -> None:
        super().__init__(f"agent {agent}: {message}", path=path)
        self.agent = agent
        self.reason = message
        self.status = status


class LibraryError(AgentError):
    """A native agent's library that cannot be loaded, in a JVM's words, which tools look for.

    `loader` is what the system's loader says of it, where that is why.
    """

    def __init__(
        self, agent: str, message: str, *, status: int | None = None, path: str | None = None, loader: str = ""
    ) -> None:
        super().__init__(agent, message, status=status, path=path)
        self.message = message
        self.loader = loader

    def at_start(self) -> str:
        """What is shown when the VM does not come to life for it."""
        return f"Error occurred during initialization of VM\n{self.message}\n"


class CommandLineError(VMScopeError, ValueError):
    """Arguments that a sub-command does not take: exit status 2."""


# -- diagnostic commands --------------------------------------------------------------------------


class CommandError(VMScopeError, ValueError):
    """A diagnostic command that was not understood, or cannot be carried out: what its client is shown."""
