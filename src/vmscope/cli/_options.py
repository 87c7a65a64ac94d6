"""Reading a sub-command's arguments: long options, some with a value, and what is left."""

from __future__ import annotations

from vmscope.errors import CommandLineError

LONGEST = 10 * 365 * 86400.0  # seconds
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_PID = 19  # digits


def parse(command: str, args: list[str], takes: dict[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """The options given and the other arguments.

    `takes` maps an option to None, to its default where `=VALUE` may be left out, or to "" where it may not: then the
    value may be the next argument too.
    """
    given: dict[str, str] = {}
    rest: list[str] = []
    left = iter(args)
    for argument in left:
        if argument == "--":
            rest += left
            break
        if not argument.startswith("-") or argument == "-":
            rest.append(argument)
            continue
        name, equals, value = argument.partition("=")
        if name not in takes:
            raise _wrong(command, f"does not take {argument}")
        default = takes[name]
        if default is None and equals:
            raise _wrong(command, f"takes no value for {name}")
        if default == "" and not equals:
            value = next(left, "")
        if default == "" and not value:
            raise _wrong(command, f"needs a value: {name}=VALUE")
        given[name] = value or default or ""
    return given, rest


def seconds(command: str, text: str) -> float:
    """A time: `2`, `0.5` and `2s` are seconds, `500ms` milliseconds, `5m` minutes, `1h` hours."""
    number = text.rstrip("mhs")
    try:
        value = float(number) * _UNITS.get(text[len(number) :], 0.0)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= LONGEST:
        raise _wrong(command, f"does not take {text!r} as a time: use 2, 0.5, 2s, 500ms, 5m or 1h")
    return value


def count(command: str, text: str) -> int:
    """A number of samples, at least 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise _wrong(command, f"does not take {text!r} as a number of samples")
    return int(text)


def is_pid(word: str) -> bool:
    """Whether it is a number that can be a pid."""
    return word.isascii() and word.isdigit() and len(word) <= _LONGEST_PID


def _wrong(command: str, what: str) -> CommandLineError:
    return CommandLineError(f"{command} {what}", hint=f"vmscope {command} --help shows what it takes")
