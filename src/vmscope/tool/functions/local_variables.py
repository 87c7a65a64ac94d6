"""The functions that read and write the local variables of frames.

A slot is a variable's place among those of its code: locals, cells, free variables, as `get_local_variable_table` has
them. A variable has no type of its own; what it refers to now has.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import introspection, threads
from vmscope.tool.model.frames import frame_at
from vmscope.tool.model.threads import Thread
from vmscope.tool.spec.errors import InvalidSlot, OpaqueFrame, TypeMismatch

WRITABLE = sys.version_info >= (3, 13)


class LocalVariables(Base):
    @function
    def get_local_object(self, thread: Thread | None, depth: int, slot: int) -> object:
        """What the variable refers to. NoMoreFrames, InvalidSlot, also for one without a value, ThreadNotAlive.

        CPython: f_locals.
        """
        return self._get(thread, depth, slot)

    @function
    def get_local_int(self, thread: Thread | None, depth: int, slot: int) -> int:
        """TypeMismatch for what is not an int of 32 bits.

        CPython: f_locals.
        Differs: the type is that of the object which is there now.
        """
        return whole(self._get(thread, depth, slot), 32)

    @function
    def get_local_long(self, thread: Thread | None, depth: int, slot: int) -> int:
        """TypeMismatch for what is not an int of 64 bits.

        CPython: f_locals.
        Differs: the type is that of the object which is there now; an int that `get_local_int` gives it gives too.
        """
        return whole(self._get(thread, depth, slot), 64)

    @function
    def get_local_float(self, thread: Thread | None, depth: int, slot: int) -> float:
        """TypeMismatch for what is not a float.

        CPython: f_locals.
        Differs: Python's floats are doubles, and given whole.
        """
        return real(self._get(thread, depth, slot))

    @function
    def get_local_double(self, thread: Thread | None, depth: int, slot: int) -> float:
        """TypeMismatch for what is not a float.

        CPython: f_locals.
        """
        return real(self._get(thread, depth, slot))

    @function
    def get_local_instance(self, thread: Thread | None, depth: int) -> object:
        """What the method of this frame was called on. InvalidSlot for a frame that is not a method's.

        CPython: the first argument, when a class of its type has this code as a method of its own.
        """
        frame = self._frame(thread, depth)
        code = frame.f_code
        if code.co_argcount:
            value = self._value(frame, code.co_varnames[0])
            if any(has_method(kind, code) for kind in type(value).__mro__):
                return value
        raise InvalidSlot(f"{code.co_qualname} is not a method of an instance")

    @function
    def set_local_object(self, thread: Thread | None, depth: int, slot: int, value: object) -> None:
        """Lets the variable refer to another object; None is Python's None. OpaqueFrame where it cannot be written to.

        CPython: f_locals, which writes through since 3.13; before, every frame is opaque.
        """
        self._set(thread, depth, slot, value, None)

    @function
    def set_local_int(self, thread: Thread | None, depth: int, slot: int, value: int) -> None:
        """TypeMismatch for a variable that holds no int now.

        CPython: f_locals, since 3.13.
        """
        self._set(thread, depth, slot, value, int)

    @function
    def set_local_long(self, thread: Thread | None, depth: int, slot: int, value: int) -> None:
        """TypeMismatch for a variable that holds no int now.

        CPython: f_locals, since 3.13.
        """
        self._set(thread, depth, slot, value, int)

    @function
    def set_local_float(self, thread: Thread | None, depth: int, slot: int, value: float) -> None:
        """TypeMismatch for a variable that holds no float now.

        CPython: f_locals, since 3.13.
        """
        self._set(thread, depth, slot, float(value), float)

    @function
    def set_local_double(self, thread: Thread | None, depth: int, slot: int, value: float) -> None:
        """TypeMismatch for a variable that holds no float now.

        CPython: f_locals, since 3.13.
        """
        self._set(thread, depth, slot, float(value), float)

    # -- the way to a variable --------------------------------------------------------------------

    def _frame(self, thread: Thread | None, depth: int) -> FrameType:
        return frame_at(self.host, thread or threads.current(), depth)

    def _get(self, thread: Thread | None, depth: int, slot: int) -> object:
        frame = self._frame(thread, depth)
        return self._value(frame, name_of(frame.f_code, slot))

    def _set(self, thread: Thread | None, depth: int, slot: int, value: object, kind: type | None) -> None:
        frame = self._frame(thread, depth)
        if not WRITABLE:
            raise OpaqueFrame("the variables of a frame can be written to since Python 3.13")
        name = name_of(frame.f_code, slot)
        variables = frame.f_locals
        if kind is not None and name in variables and not isinstance(variables[name], kind):
            raise TypeMismatch(f"{name} is {type(variables[name]).__name__}, not {kind.__name__}")
        variables[name] = value

    @staticmethod
    def _value(frame: FrameType, name: str) -> object:
        variables = frame.f_locals
        if name not in variables:
            raise InvalidSlot(f"{name} of {frame.f_code.co_qualname} has no value now")
        value: object = variables[name]
        return value


def name_of(code: CodeType, slot: int) -> str:
    """The variable in this slot. InvalidSlot."""
    names = introspection.slots(code)
    if not 0 <= slot < len(names):
        raise InvalidSlot(f"{code.co_qualname} has {len(names)} variables, and so no slot {slot}")
    return names[slot]


def whole(value: object, bits: int) -> int:
    if not isinstance(value, int) or not -1 << bits - 1 <= value < 1 << bits - 1:
        raise TypeMismatch(f"{value!r} is not an integer of {bits} bits")
    return value


def real(value: object) -> float:
    if not isinstance(value, float):
        raise TypeMismatch(f"{value!r} is not a float")
    return value


def has_method(kind: type, code: CodeType) -> bool:
    """Whether a class's own body made this code as a method that is called on an instance."""
    if code.co_qualname.rpartition(".")[0] != kind.__qualname__:
        return False
    return not isinstance(vars(kind).get(code.co_name), staticmethod | classmethod)
