"""Exceptions that a signal's handler raised: they are meant for the program, wherever they came."""

from __future__ import annotations

from vmscope.tool.model.frames import code_of


def from_handler(error: BaseException) -> bool:
    """Whether a handler of the program's, which ran while something else did, has raised it."""
    codes = {code_of(handler) for handler in handlers()}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def handlers() -> list[object]:
    """Those that are set, and can be called."""
    import signal

    found = [signal.getsignal(number) for number in signal.valid_signals()]
    return [each for each in found if callable(each) and each is not signal.default_int_handler]
