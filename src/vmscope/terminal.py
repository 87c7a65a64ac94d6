"""What a terminal is shown of text that others may have written, and the one way to standard output and standard error.

The rule: a character that is not printable, or is printable and shows nothing, stands there as in Python source
(`\\x1b`, `\\u202e`), and so does a byte that is not UTF-8 (`\\xff`). These are control characters, C0 and C1, and what
reorders, joins or separates text; no such text moves the cursor, takes other text's place or looks like another one.
A character keeps a few combining marks; a mark that would stand on what comes before the text is escaped too.
"""

from __future__ import annotations

import os
import sys
from errno import EBADF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from vmscope.errors import VMScopeError

LINES = "\n\t"  # what a text of several lines keeps
LONGEST_ERROR = 2000  # characters of an error's line

_MARKS = 4  # combining marks on one character; a pile of them covers the lines above and below
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"

_STDERR = 2
_PIECE = 1 << 14  # what is written at once: a part of what a pipe holds


def printable(text: str) -> str:
    """The text as one line."""
    return text if text.isascii() and text.isprintable() else Escape()(text)


def lines(text: str) -> str:
    """The text with its newlines and tabs."""
    plain = text.replace("\n", "").replace("\t", "")
    return text if plain.isascii() and plain.isprintable() else Escape(LINES)(text)


class Escape:
    """The rule, for a text that comes in pieces. `kept`: control characters that stay."""

    __slots__ = ("_kept", "_room")

    def __init__(self, kept: str = "") -> None:
        self._kept = kept
        self._room = 0  # for marks on the character before

    def __call__(self, text: str) -> str:
        """The next piece."""
        shown = []
        for char in text:
            room = _MARKS
            if not " " <= char <= "~":
                if char in self._kept:
                    room = 0
                elif not char.isprintable() or _is_unseen(char):
                    char, room = ascii(char)[1:-1], 0
                elif _is_mark(char):
                    char, room = (char, self._room - 1) if self._room else (ascii(char)[1:-1], 0)
            shown.append(char)
            self._room = room
        return "".join(shown)


class Filter:
    """The rule, for bytes that come in pieces: an answer's lines, in UTF-8."""

    __slots__ = ("_decode", "_escape")

    def __init__(self) -> None:
        import codecs

        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        self._escape = Escape(LINES)

    def feed(self, data: bytes, last: bool = False) -> str:
        """What the next piece shows. A character that is not whole waits for the next one."""
        return self._escape(self._decode(data, last))


def _is_unseen(char: str) -> bool:
    """Printable to Python, though there is nothing to be seen: fillers, and what chooses among glyphs."""
    return char in _FILLERS or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_mark(char: str) -> bool:
    if char < "\u0300":
        return False
    import unicodedata

    return unicodedata.category(char) in ("Mn", "Me")


def columns(text: str) -> int:
    """How many columns printable text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if char < "\u0300":
        return 1
    import unicodedata

    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb" or unicodedata.category(char) in ("Mn", "Me"):
        return 0  # the first two: vowels and finals of Hangul, which are drawn into the syllable before
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """At most this many columns of printable text, an ellipsis for what is missing."""
    if columns(text) <= width:
        return text
    left, end = width - 1, 0
    for char in text:
        left -= _columns(char)
        if left < 0:
            break
        end += 1
    return text[:end] + "…"


def fold(text: str, *, indent: int = 0) -> str:
    """A line of help as lines that fit a terminal of 80 columns."""
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 80:
            lines.append(line.rstrip())
            line = " " * indent
        line += f"{word} "
    return "\n".join([*lines, line.rstrip()])


class OutputError(OSError):
    """Standard output cannot be written: it is closed, its reader has gone, or the disk is full."""


class Stream:
    """Standard output or standard error, whatever stands there now.

    What cannot be written to standard output raises OutputError; a failure of standard error cannot be shown. `taken`:
    some of it has been written, and so a reader that has gone had what he wanted.
    """

    __slots__ = ("_name", "_vital", "taken")

    def __init__(self, name: str, *, vital: bool) -> None:
        self._name = name
        self._vital = vital
        self.taken = False

    @property
    def _file(self) -> TextIO | None:
        found: TextIO | None = getattr(sys, self._name)
        return found

    def isatty(self) -> bool:
        file = self._file
        return file is not None and file.isatty()

    def show(self, text: str) -> None:
        """Lines, by the rule, to a terminal, a pipe or a file."""
        self.put(lines(text))

    def put(self, text: str) -> None:
        """Text that the rule has been applied to, with control sequences of our own in it."""
        file = self._file
        if file is None:  # the descriptor was closed when Python started
            self._failed(OSError(EBADF, "it is closed"))
            return
        if not text.isascii():
            charset = getattr(file, "encoding", None) or "utf-8"
            text = text.encode(charset, "backslashreplace").decode(charset)
        try:
            for start in range(0, len(text), _PIECE):
                file.write(text[start : start + _PIECE])
                file.flush()
                self.taken = True
        except OSError as error:
            self._failed(error)

    def pass_on(self, data: bytes) -> None:
        """Bytes as they are, at once: what is made for scripts."""
        file = self._file
        if file is None:
            self._failed(OSError(EBADF, "it is closed"))
            return
        try:
            file.flush()
            for start in range(0, len(data), _PIECE):
                file.buffer.write(data[start : start + _PIECE])
                file.buffer.flush()
                self.taken = True
        except OSError as error:
            self._failed(error)

    def flush(self) -> None:
        file = self._file
        if file is not None:
            try:
                file.flush()
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self._vital:
            raise OutputError(error.errno, error.strerror) from error


OUT, ERR = Stream("stdout", vital=True), Stream("stderr", vital=False)


def complain(error: VMScopeError) -> None:
    """An error as one line on standard error."""
    place = f"{error.path}: " if error.path and error.path not in str(error) else ""
    hint = f" ({error.hint})" if error.hint else ""
    ERR.show(cut(printable(f"vmscope: {place}{error}{hint}"), LONGEST_ERROR) + "\n")


# -- the descriptor, for what must not go through the program's own objects ------------------------


def identity(file: int) -> tuple[int, int] | None:
    """Which file a descriptor is; None where it is closed."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_first = identity(_STDERR)  # what it was when vmscope came


def standard_error() -> int:
    """A descriptor of one's own for standard error. OSError where that is closed.

    A program may have closed it, as daemons do, and its number be another file's now, which vmscope must leave alone.
    What is put in its place on purpose is inherited by children; what Python opens at a number that is free is not.
    """
    import stat
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    inherited = os.get_inheritable(_STDERR)
    file = fcntl(_STDERR, F_DUPFD_CLOEXEC, _STDERR + 1)  # what is found out of it holds for what is written to it
    if identity(file) != _first and (not inherited or stat.S_ISSOCK(os.fstat(file).st_mode)):
        os.close(file)
        raise OSError("standard error is closed")
    return file


def write_all(file: int, text: str) -> None:
    """Text as it is, to a descriptor. OSError."""
    data = text.encode(errors="backslashreplace")
    while data:
        data = data[os.write(file, data) :]


def warn(text: str) -> None:
    """Lines, by the rule, to standard error's descriptor; nothing where it is closed."""
    try:
        file = standard_error()
    except OSError:
        return
    try:
        write_all(file, lines(text))
    except OSError:
        pass  # it cannot be reported
    finally:
        os.close(file)
