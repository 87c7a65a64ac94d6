"""The grammar of a command's arguments, as HotSpot reads them.

Blanks stand between them. An option is written `KEY` or `KEY=VALUE`; what is not an option is the next argument, in
the order of the command's table, and a `=VALUE` behind it is passed over. Key and value may stand in quotes of either
kind, which hold blanks and the other kind, and in which a backslash keeps the quote behind it, and itself. An
argument that is empty ends the list.
"""

from __future__ import annotations

import os

from vmscope.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Value = str | bool | int | tuple[str, ...] | None

# What a JVM's clients show before what is wrong with a command's text; scripts look for it.
ILLEGAL = "java.lang.IllegalArgumentException: "

_MOST, _LEAST = (1 << 63) - 1, -(1 << 63)
_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TIMES = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}


class Argument:
    """One argument of a command.

    `type` is STRING, STRING SET (with commas), FILE, BOOLEAN, INT, JULONG (not below zero), MEMORY SIZE or NANOTIME. In
    a FILE `%p` is the pid, and `%%` a `%`. A MEMORY SIZE is in bytes, or ends in k, m or g; a NANOTIME ends in ns, us,
    ms, s, m, h or d. `default` is written as a user would; None for none. `option`: written `NAME` or `NAME=VALUE`;
    names with a dash in front are.
    """

    __slots__ = ("default", "description", "mandatory", "name", "option", "type")

    def __init__(
        self,
        name: str,
        description: str,
        type: str = "STRING",
        *,
        mandatory: bool = False,
        default: str | None = None,
        option: bool | None = None,
    ) -> None:
        if type not in _READERS:
            raise ValueError(f"{type} is not a type of arguments: {', '.join(_READERS)}")
        self.name = name
        self.description = description
        self.type = type
        self.mandatory = mandatory
        self.default = default
        self.option = name.startswith("-") if option is None else option

    @property
    def keyword(self) -> str:
        """The keyword by which `run` gets it: the name without the leading dash, with _ for all but letters."""
        return "".join(c if c.isalnum() else "_" for c in self.name.removeprefix("-"))

    def read(self, text: str | None) -> Value:
        """Reads a value; `text` is None where only the name was written. CommandError for a value that is not valid."""
        return _READERS[self.type](self.name, text)

    def default_value(self) -> Value:
        """The value where the argument is left out."""
        return None if self.default is None else self.read(self.default)

    def __repr__(self) -> str:
        return f"<Argument {self.name} ({self.type})>"


def parse(text: str, arguments: Iterable[Argument]) -> dict[str, Value]:
    """The values of a command's arguments, by keyword, from what follows the command's name. CommandError."""
    options = {each.name: each for each in arguments if each.option}
    positions = [each for each in arguments if not each.option]
    waiting = iter(positions)
    if not options and not positions:
        _expect_nothing(text)
    values: dict[str, Value] = {}
    for key, value in words(text):
        option = options.get(key)
        if option is not None:
            if option.keyword in values:
                raise CommandError(f"{ILLEGAL}Duplicates in diagnostic command arguments")
            values[option.keyword] = option.read(value)
            continue
        argument = next(waiting, None)
        if argument is None:
            raise CommandError(f"{ILLEGAL}Unknown argument '{key}' in diagnostic command.")
        values[argument.keyword] = argument.read(key)
    for kind, group in (("argument", positions), ("option", options.values())):
        for each in group:
            if each.keyword not in values:
                if each.mandatory:
                    raise CommandError(f"{ILLEGAL}The {kind} '{each.name}' is mandatory.")
                values[each.keyword] = each.default_value()
    return values


def _expect_nothing(text: str) -> None:
    try:
        word = next(words(text), None)
    except CommandError:
        word = text, None
    if word is not None:
        raise CommandError(f"{ILLEGAL}The argument list of this diagnostic command should be empty.")


def words(text: str, blank: str = " ") -> Iterator[tuple[str, str | None]]:
    """Each key with its value, or None where no `=` follows it. CommandError for a quote that is not closed.

    `blank`: what stands between them instead.
    """
    place = 0
    while True:
        while text[place : place + 1] == blank:
            place += 1
        key, place = _word(text, place, f"{blank}=")
        value = None
        if text[place : place + 1] == "=":
            value, place = _word(text, place + 1, blank)
        if not key:
            return
        yield key, value


def _word(text: str, start: int, ends: str) -> tuple[str, int]:
    """What stands from `start` to one of `ends`, or to the end of the quotes in it; and where it ended."""
    for place in range(start, len(text)):
        if text[place] in ends:
            return text[start:place], place
        if text[place] in "\"'":
            end = _closing(text, place)
            return text[start:place] + text[place + 1 : end], end + 1
    return text[start:], len(text)


def _closing(text: str, opening: int) -> int:
    place = opening + 1
    while place < len(text):
        if text[place] == text[opening]:
            return place
        place += 2 if text[place] == "\\" else 1
    raise CommandError(f"{ILLEGAL}Format error in diagnostic command arguments")


def _string(name: str, text: str | None) -> str | None:
    return text


def _file(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    return "%".join(part.replace("%p", str(os.getpid())) for part in text.split("%%"))


def _boolean(name: str, text: str | None) -> bool:
    if not text or text.lower() == "true":
        return True
    if text.lower() != "false":
        raise CommandError(f"{ILLEGAL}Boolean parsing error in command argument '{name}'. Could not parse: {text}.")
    return False


def _int(name: str, text: str | None) -> int:
    number = (text or "").lstrip()
    digits = number[1:] if number[:1] in ("+", "-") else number
    if not (digits.isascii() and digits.isdigit()):
        wrong = text or ""
        raise CommandError(f"{ILLEGAL}Integer parsing error in command argument '{name}'. Could not parse: {wrong}.")
    value = int(digits) if len(digits) < 20 else _MOST + 1
    return max(_LEAST, min(_MOST, -value if number[0] == "-" else value))


def _unsigned(name: str, text: str | None) -> int:
    value = _int(name, text)
    if value < 0:
        raise CommandError(f"{ILLEGAL}Integer parsing error in command argument '{name}'. Could not parse: {text}.")
    return value


def _size(name: str, text: str | None) -> int:
    number = text or ""
    if number.startswith("-"):
        raise CommandError(f"{ILLEGAL}Parsing error memory size value: negative values not allowed")
    factor = _SIZES.get(number[-1:].lower(), 1)
    digits = number[:-1] if factor > 1 else number
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise CommandError(f"{ILLEGAL}Parsing error memory size value: invalid value")
    return int(digits) * factor


def _time(name: str, text: str | None) -> int:
    number = text or ""
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = number[len(digits) :]
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise CommandError(f"{ILLEGAL}Integer parsing error nanotime value: syntax error")
    if not unit and int(digits):
        raise CommandError(f"{ILLEGAL}Integer parsing error nanotime value: unit required")
    if unit and unit not in _TIMES:
        raise CommandError(f"{ILLEGAL}Integer parsing error nanotime value: illegal unit")
    return int(digits) * _TIMES.get(unit, 0)


def _set(name: str, text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


_READERS: dict[str, Callable[[str, str | None], Value]] = {
    "STRING": _string,
    "FILE": _file,
    "BOOLEAN": _boolean,
    "INT": _int,
    "JULONG": _unsigned,
    "MEMORY SIZE": _size,
    "NANOTIME": _time,
    "STRING SET": _set,
}
