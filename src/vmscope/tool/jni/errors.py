"""JNI's functions about exceptions, except those in C."""

from __future__ import annotations

import os

from vmscope import terminal
from vmscope.tool.jni import names, text
from vmscope.tool.jni.base import Group
from vmscope.tool.jni.jni_errors import MisuseError
from vmscope.tool.model import introspection, threads
from vmscope.tool.model.frames import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

ERROR = -1


class Errors(Group):
    def throw_new(self, klass: object, message: int) -> int:
        if not introspection.is_a(klass, type) or not introspection.derives(klass, BaseException):
            raise MisuseError(TypeError, f"{klass!r} is not a class of exceptions")
        given = (text.decode(self.jni.text(message)),) if message else ()
        try:
            error = klass(*given)
            if not introspection.is_a(error, BaseException):
                raise TypeError(f"{names.class_name(klass)} has made a {type(error).__name__}: not an exception")
        except Exception as other:
            self.jni.throw(other)
            return ERROR
        self.jni.throw(error)
        return 0

    def exception_describe(self) -> None:
        """Prints it as the end of a thread is printed, without the way through vmscope, and clears it."""
        error = self.jni.pending()
        if error is None:
            return
        self.jni.throw(None)
        import traceback

        shown = traceback.format_exception(type(error), error, of_program(error.__traceback__))
        terminal.ERR.show("".join([f'Exception in thread "{threads.current().name}":\n', *shown]))

    def fatal_error(self, message: int) -> None:
        """The process ends."""
        shown = text.decode(self.jni.text(message)) if message else ""
        terminal.warn(f"FATAL ERROR in native method: {shown}\n")
        os.abort()


def of_program(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames of vmscope that it begins with."""
    while trace is not None and is_own(trace.tb_frame.f_code):
        trace = trace.tb_next
    return trace
