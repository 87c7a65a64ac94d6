"""The tool interface's errors: one class a code, below `ToolError`; `.code` is the JVM TI number.

Where Python has a builtin for the same thing the class derives from that too. `ERRORS` has them by number;
what is not in it (`VersionNotOffered`, `NotAttached`) is an answer of GetEnv and has JNI's number.
"""

from __future__ import annotations

from vmscope.errors import VMScopeError

LONGEST = 200  # characters of a value in a message


class ToolError(VMScopeError):
    """The base. Without a message of its own an error says its class's first sentence."""

    code = 0

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n")[0], hint=hint)


# -- threads --------------------------------------------------------------------------------------


class InvalidThread(ToolError, ValueError):
    """Not a thread of this VM."""

    code = 10


class InvalidThreadGroup(ToolError, ValueError):
    """Not a thread group of this VM."""

    code = 11


class InvalidPriority(ToolError, ValueError):
    """Not a thread priority: 1 to 10."""

    code = 12


class ThreadNotSuspended(ToolError, RuntimeError):
    """The thread has to be suspended for this."""

    code = 13


class ThreadSuspended(ToolError, RuntimeError):
    """The thread is suspended already."""

    code = 14


class ThreadNotAlive(ToolError, RuntimeError):
    """The thread has not started yet, or it has ended."""

    code = 15


# -- objects, classes, methods --------------------------------------------------------------------


class InvalidObject(ToolError, ValueError):
    """Not an object."""

    code = 20


class InvalidClass(ToolError, ValueError):
    """Not a class."""

    code = 21


class ClassNotPrepared(ToolError, RuntimeError):
    """The class is not ready yet."""

    code = 22


class InvalidMethodID(ToolError, ValueError):
    """Not a method: a method is a code object."""

    code = 23


class InvalidLocation(ToolError, ValueError):
    """Not a location in this method: a location is the offset of an instruction."""

    code = 24


class InvalidFieldID(ToolError, ValueError):
    """Not a field of this class."""

    code = 25


class InvalidModule(ToolError, ValueError):
    """Not a module."""

    code = 26


class NoMoreFrames(ToolError, LookupError):
    """The stack has no frame at this depth."""

    code = 31


class OpaqueFrame(ToolError, RuntimeError):
    """This frame cannot be read or changed."""

    code = 32


class TypeMismatch(ToolError, TypeError):
    """The variable is of another type."""

    code = 34


class InvalidSlot(ToolError, ValueError):
    """The frame has no variable in this slot."""

    code = 35


class Duplicate(ToolError, ValueError):
    """It has been set already."""

    code = 40


class NotFound(ToolError, LookupError):
    """It has not been set."""

    code = 41


class InvalidMonitor(ToolError, ValueError):
    """Not a raw monitor of this VM."""

    code = 50


class NotMonitorOwner(ToolError, RuntimeError):
    """The current thread does not own the monitor."""

    code = 51


class Interrupted(ToolError, InterruptedError):
    """The wait was interrupted."""

    code = 52


# -- changing classes -----------------------------------------------------------------------------


class InvalidClassFormat(ToolError, ValueError):
    """The new class file is malformed."""

    code = 60


class CircularClassDefinition(ToolError, ValueError):
    """The new class would be its own ancestor."""

    code = 61


class FailsVerification(ToolError, ValueError):
    """The new class file contradicts itself."""

    code = 62


class RedefinitionMethodAdded(ToolError, ValueError):
    """The new class has a method that the old one has not."""

    code = 63


class RedefinitionSchemaChanged(ToolError, ValueError):
    """The new class has other fields than the old one."""

    code = 64


class InvalidTypestate(ToolError, RuntimeError):
    """The thread's state does not fit the new class."""

    code = 65


class RedefinitionHierarchyChanged(ToolError, ValueError):
    """The new class has other bases than the old one."""

    code = 66


class RedefinitionMethodDeleted(ToolError, ValueError):
    """The new class lacks a method that the old one has."""

    code = 67


class UnsupportedVersion(ToolError, ValueError):
    """The new class file is of a version that this VM does not read."""

    code = 68


class NamesDontMatch(ToolError, ValueError):
    """The new class file is that of another class."""

    code = 69


class RedefinitionClassModifiersChanged(ToolError, ValueError):
    """The new class has other modifiers than the old one."""

    code = 70


class RedefinitionMethodModifiersChanged(ToolError, ValueError):
    """A method of the new class has other modifiers than in the old one."""

    code = 71


class RedefinitionClassAttributeChanged(ToolError, ValueError):
    """The new class has other attributes than the old one."""

    code = 72


class UnsupportedOperation(ToolError, RuntimeError):
    """Not to be done to a thread of this kind."""

    code = 73


class UnmodifiableClass(ToolError, TypeError):
    """The class cannot be changed."""

    code = 79


class UnmodifiableModule(ToolError, TypeError):
    """The module cannot be changed."""

    code = 80


# -- anything -------------------------------------------------------------------------------------


class NotAvailable(ToolError, RuntimeError):
    """Not available in this VM now: a capability outside the potential ones, or a feature it does not have."""

    code = 98


class MustPossessCapability(ToolError, RuntimeError):
    """The environment lacks the capability for this."""

    code = 99


class NullPointer(ToolError, TypeError):
    """None where a value is needed."""

    code = 100


class AbsentInformation(ToolError, LookupError):
    """What was asked for is not recorded."""

    code = 101


class InvalidEventType(ToolError, ValueError):
    """No event has this number."""

    code = 102


class IllegalArgument(ToolError, ValueError):
    """An argument out of its range."""

    code = 103


class NativeMethod(ToolError, TypeError):
    """Native code has nothing of the kind."""

    code = 104


class ClassLoaderUnsupported(ToolError, RuntimeError):
    """The class loader cannot do this."""

    code = 106


class OutOfMemory(ToolError, MemoryError):
    """No memory is left for this."""

    code = 110


class ToolAccessDenied(ToolError, PermissionError):
    """The functionality has been disabled in this VM."""

    code = 111


class WrongPhase(ToolError, RuntimeError):
    """Not in this phase of the VM's life."""

    code = 112


class InternalError(ToolError, RuntimeError):
    """Something went wrong within vmscope: please report it."""

    code = 113


class UnattachedThread(ToolError, RuntimeError):
    """The calling thread is unknown to this VM."""

    code = 115


class InvalidEnvironment(ToolError, ValueError):
    """Not an environment, or one that has been disposed of."""

    code = 116


# -- GetEnv: JNI's numbers ------------------------------------------------------------------------


class NotAttached(ToolError, RuntimeError):
    """Environments are made in the phases ONLOAD and LIVE only."""

    code = -2


class VersionNotOffered(ToolError, ValueError):
    """No version of the tool interface has this number."""

    code = -3


ERRORS: dict[int, type[ToolError]] = {
    error.code: error
    for error in sorted(ToolError.__subclasses__(), key=lambda error: error.code)
    if error.code > 0
}  # fmt: skip


def shown(value: object) -> str:
    """For a message: the program's own object may have a `__repr__` that raises, or is endless."""
    try:
        text = repr(value)
    except Exception:  # whatever it is, the error that is due says more
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
