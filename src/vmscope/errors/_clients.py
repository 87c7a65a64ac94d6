"""What is asked of another process, of a command or on the command line."""

from __future__ import annotations

from vmscope.errors import VMScopeError


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


class CommandError(VMScopeError, ValueError):
    """A diagnostic command that was not understood, or cannot be carried out: what its client is shown."""


class VMIdentifierError(VMScopeError, ValueError):
    """Text that is not a VM identifier of the form `[proto:][//]lvmid[@host][:port][/server]`."""


class CommandLineError(VMScopeError, ValueError):
    """Arguments that a sub-command does not take: exit status 2."""
