"""What a jstat command line asks for, by the JDK's rules."""

from __future__ import annotations

from vmscope.cli import _java
from vmscope.errors import CommandLineError


class JstatRequest:
    """What the command line asks for. `option` names a view, or is "" for -list, -snap and -name."""

    __slots__ = (
        "constants",
        "count",
        "descending",
        "header_rate",
        "interval",
        "list",
        "names",
        "option",
        "snap",
        "strings",
        "timestamp",
        "unsupported",
        "verbose",
        "vmid",
    )

    def __init__(self) -> None:
        self.option: str | None = None
        self.list = self.snap = self.timestamp = self.verbose = False
        self.constants = self.strings = self.descending = self.unsupported = False
        self.names: str | None = None
        self.header_rate = 0
        self.vmid: str | None = None
        self.interval = 0  # ms
        self.count = 1  # 0 or less: without end


def parse(arguments: list[str]) -> JstatRequest:
    """Options first, then VM, interval and count. Raises CommandLineError with jstat's own messages."""
    request = JstatRequest()
    at = 0
    if arguments[0] == "-list":
        request.list = True
        at = 1
        if len(arguments) > 2:
            raise CommandLineError("invalid argument count")
    while at < len(arguments) and arguments[at].startswith("-") and not _is_lvmid(arguments[at]):
        at = _parse_option(request, arguments, at) + 1
    if request.option is None and not request.list and not request.snap and request.names is None:
        raise CommandLineError("-<option> required")
    rest = arguments[at:]
    if len(rest) > (1 if request.snap else 3) or (not rest and not request.list):
        raise CommandLineError("invalid argument count")
    request.vmid = rest[0] if rest else None
    if len(rest) == 3:
        try:
            request.count = _java.parse_int(rest[2])
        except ValueError:
            raise CommandLineError(f"illegal count value: {rest[2]}") from None
    if len(rest) >= 2:
        request.interval = _milliseconds(rest[1])
        if len(rest) == 2:
            request.count = -1
        if request.interval == request.count == -1:  # to jstat this is as if neither were there
            request.interval, request.count = 0, 1
    if request.names is not None:
        from vmscope.cli._counter_lists import pattern

        pattern(request.names)
    return request


def _is_lvmid(argument: str) -> bool:
    try:
        _java.parse_int(argument.partition("@")[0])
    except ValueError:
        return False
    return True


def _parse_option(request: JstatRequest, arguments: list[str], at: int) -> int:
    """Take the option that stands here; where its last argument stands."""
    option = arguments[at]
    if option in ("-a", "-d"):
        request.descending = option == "-d"
    elif option == "-t":
        request.timestamp = True
    elif option == "-v":
        request.verbose = True
    elif option in ("-constants", "-c"):
        request.constants = True
    elif option in ("-strings", "-s"):
        request.strings = True
    elif option.startswith("-h"):
        lines = option[2:]
        if not lines:
            at += 1
            if at == len(arguments):
                raise CommandLineError("-h requires an integer argument")
            lines = arguments[at]
        try:
            request.header_rate = _java.parse_int(lines)
        except ValueError:
            request.header_rate = -1
        if request.header_rate < 0:
            raise CommandLineError(f"illegal -h argument: {lines}")
    elif option.startswith("-name"):
        if option.startswith("-name="):
            if len(option) == 6:
                raise CommandLineError("option argument expected")
            request.names = option[7:]  # jstat skips one character too many
        else:
            at += 1
            if at == len(arguments):
                raise CommandLineError("option argument expected")
            request.names = arguments[at]
    elif at == 0 and option == "-snap":
        request.snap = True
    elif at == 0:
        request.option = option[1:]
    else:
        raise CommandLineError(f"illegal argument: {option}")
    return at


def _milliseconds(text: str) -> int:
    """An interval: a number, then ms, s or nothing."""
    at = text.find("ms")
    if at <= 0:
        at = text.find("s")
    digits, unit = (text[:at], text[at:]) if at > 0 else (text, "ms")
    try:
        interval = _java.parse_int(digits)
    except ValueError:
        raise CommandLineError(f"Could not convert interval: {text}") from None
    if unit == "ms":
        return interval
    if unit != "s":
        raise CommandLineError(f"Unknow time unit: {unit}")  # so spelt
    return (interval * 1000 - _java.INT_MIN) % (1 << 32) + _java.INT_MIN  # as 32 bits hold it
