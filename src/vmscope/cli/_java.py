"""What of Java shows in the output of the JDK's tools: launcher options, integers, locale.

The drop-ins `jps` and `jstat` behave like programs that the JDK's launcher runs, so these rules are theirs.
"""

from __future__ import annotations

import sys

from vmscope import terminal
from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.cli._decimal_format import Symbols

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


def split_options(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """The tool's own arguments, and the system properties among its `-J` options.

    `-J` options may stand anywhere. There is no Java VM here to hand the others to, so they are dropped.
    """
    own: list[str] = []
    properties: dict[str, str] = {}
    for argument in arguments:
        if not argument.startswith("-J"):
            own.append(argument)
        elif argument == "-J":
            raise CommandLineError("Error: The -J option should not be followed by a space.")
        elif argument.startswith("-J-D"):
            key, _, value = argument[4:].partition("=")
            properties[key] = value
    return own, properties


def parse_int(text: str) -> int:
    """A 32-bit decimal integer with an optional sign, nothing around it; else ValueError."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        raise ValueError(text)
    number = int(text)
    if not INT_MIN <= number <= INT_MAX:
        raise ValueError(text)
    return number


def encode(text: str) -> bytes:
    """The text in the locale's characters, question marks for those that it lacks.

    Java decodes a region's bytes by the locale too, so that in the C locale each byte of a character becomes one.
    """
    if sys.platform == "win32":
        text = text.replace("\n", "\r\n")
    if text.isascii():
        return text.encode("ascii")
    charset = _charset()
    if charset == "ascii":
        return b"".join([char.encode("ascii") if char < "\x80" else b"?" * _bytes(char) for char in text])
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode(charset, "replace")


def encode_text(text: str) -> bytes:
    """The same for text that came as characters: one question mark for each that the locale lacks."""
    return text.encode("ascii" if text.isascii() else _charset(), "replace")


def _bytes(char: str) -> int:
    """How many bytes of a region a character was. U+FFFD was one that is not UTF-8; infinity comes from no region."""
    return 1 if char in "\ufffd\u221e" else len(char.encode("utf-8", "surrogateescape"))


def _charset() -> str:
    """The character set of the locale that the process was started in; ASCII where there is no such locale.

    Python turns the C locale into UTF-8 and puts that into its own environment, so the original is needed.
    """
    if sys.platform == "win32":
        return "mbcs"  # the code page of the system, whichever it is
    import _locale
    import codecs

    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [pair.partition(b"=") for pair in file.read().split(b"\0")]
        environment = {key: value.decode("ascii", "replace") for key, _, value in pairs}
    except OSError:
        environment = {}
    name = next((environment[key] for key in (b"LC_ALL", b"LC_CTYPE", b"LANG") if environment.get(key)), "C")
    before = _locale.setlocale(_locale.LC_CTYPE)
    try:
        _locale.setlocale(_locale.LC_CTYPE, name)
        return codecs.lookup(_locale.nl_langinfo(_locale.CODESET)).name
    except (_locale.Error, LookupError):  # type: ignore[attr-defined]  # typeshed has it in locale alone
        return "ascii"
    finally:
        _locale.setlocale(_locale.LC_CTYPE, before)


def decimal_symbols() -> Symbols | None:
    """What the locale puts into numbers, where that is not a point."""
    import _locale

    # Java formats by the locale of characters, which is the one that Python has set.
    name = _locale.setlocale(_locale.LC_CTYPE)
    if name in ("C", "POSIX") or name.startswith(("C.", "en")):
        return None
    before = _locale.setlocale(_locale.LC_NUMERIC)
    try:
        _locale.setlocale(_locale.LC_NUMERIC, name)
        convention = _locale.localeconv()
    except _locale.Error:  # type: ignore[attr-defined]  # typeshed has it in locale alone
        return None
    finally:
        _locale.setlocale(_locale.LC_NUMERIC, before)
    from vmscope.cli._decimal_format import Symbols

    return Symbols(str(convention["decimal_point"]), str(convention["thousands_sep"]))


def write(text: str) -> None:
    """Put text on stdout, now: byte for byte as the JDK's tools do, but where a terminal would obey what is in it."""
    _put(terminal.OUT, text)


def complain(text: str) -> int:
    """A line or more on stderr; the exit status that the JDK's tools then have."""
    _put(terminal.ERR, text + "\n")
    return 1


def _put(stream: terminal.Stream, text: str) -> None:
    stream.pass_on(encode(terminal.lines(text) if stream.isatty() else text))
