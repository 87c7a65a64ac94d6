"""Where VM.log sends records. Imported with the first output, as logging is then."""

from __future__ import annotations

import logging
import os

from vmscope import terminal
from vmscope.native.region.save import open_own

STDERR = "stderr"

_FORMAT = "[%(asctime)s][%(levelname)s][%(name)s] %(message)s"
# A pipe is not waited for, neither for its reader nor for room.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class LogOutput(logging.Handler):
    """Appends to a file, or to standard error; by the rule for terminals, whichever agent's logger a record is of.

    What cannot be written is discarded: logging would show a traceback on the program's standard error for each record.
    """

    def __init__(self, name: str) -> None:
        """OSError where the file cannot be opened, or may be another user's."""
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))
        self._file = -1 if name == STDERR else open_own(name, _APPEND, 0o666)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = terminal.lines(self.format(record)) + "\n"
            if self._file < 0:
                terminal.ERR.show(text)
                terminal.ERR.flush()
            else:
                terminal.write_all(self._file, text)
        except Exception:
            return

    def close(self) -> None:
        super().close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
