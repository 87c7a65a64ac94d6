"""Tables for people: aligned columns, cut at the terminal's width, and numbers with their units."""

from __future__ import annotations

import os

from vmscope import terminal
from vmscope.terminal import columns as width_of
from vmscope.terminal import cut, printable

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_WIDEST = 256  # columns of a cell that others stand behind: all lines get as wide as the longest
_LONGEST = 32_768  # of the last one; no constant text of HotSpot's is longer
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Column:
    """A column's title, and whether its cells stand at the right, as numbers do."""

    __slots__ = ("right", "title")

    def __init__(self, title: str, *, right: bool = False) -> None:
        self.title = title
        self.right = right


class Screen:
    """Where a table goes: `width` is None and `colour` False where that is not a terminal."""

    __slots__ = ("colour", "terminal", "width")

    def __init__(self) -> None:
        self.terminal = terminal.OUT.isatty()
        self.width: int | None = None
        self.colour = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if self.terminal:
            columns = os.environ.get("COLUMNS", "")
            given = int(columns) if columns.isdecimal() else 0
            self.width = given or os.get_terminal_size(1).columns or None

    def clear(self) -> None:
        """Empties a terminal before the next picture; elsewhere one picture follows another after a blank line."""
        terminal.OUT.put(_CLEAR if self.terminal else "\n")


def render(columns: list[Column], rows: list[list[str]], screen: Screen, *, dim: frozenset[int] = frozenset()) -> str:
    """The table's lines, title first. `dim` are the numbers of rows that matter less."""
    most = [*(_WIDEST for _ in columns[1:]), _LONGEST]
    cells = [[_shown(cell, width) for cell, width in zip(row, most, strict=True)] for row in rows]
    widths = [max([len(column.title), *(width_of(row[i]) for row in cells)]) for i, column in enumerate(columns)]
    lines = [_line([column.title for column in columns], columns, widths, screen)]
    lines += [_line(row, columns, widths, screen) for row in cells]
    if screen.colour:
        lines[0] = _BOLD + lines[0] + _PLAIN
        for number in dim:
            lines[number + 1] = _DIM + lines[number + 1] + _PLAIN
    return "\n".join(lines) + "\n"


def as_json(value: object) -> str:
    """One line of printable ASCII."""
    import json

    return json.dumps(value).replace("\x7f", "\\u007f") + "\n"  # json leaves that one as it is


def _shown(cell: str, most: int) -> str:
    """A cell: cut where it is very long, as another user may have made it."""
    if len(cell) > _WIDEST and not cell.isascii():
        most = min(most, _LONGEST // 8)  # the width of other characters is found one by one
    return cut(printable(cell[: most + 1]), most)


def _line(cells: list[str], columns: list[Column], widths: list[int], screen: Screen) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        room = " " * (width - width_of(cell))
        parts.append(room + cell if column.right else cell + room)
    line = "  ".join(parts).rstrip()
    return line if screen.width is None else cut(line, screen.width)


# -- numbers --------------------------------------------------------------------------------------


def size(count: float) -> str:
    """Bytes, in at most five characters: `512B`, `3.4M`, `128M`."""
    for unit in "BKMGT":
        if count < 999.5 or unit == "T":
            break
        count /= 1024
    return f"{count:.0f}{unit}" if unit == "B" or count >= 99.95 else f"{count:.1f}{unit}"


def duration(seconds: float) -> str:
    """`0s`, `4.3ms`, `421ms`, `9.87s`, `12.5s`, `3m05s`, `2h07m`, `5d03h`."""
    if seconds <= 0:
        return "0s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.1f}ms" if seconds < 0.09995 else f"{seconds * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.2f}s" if seconds < 9.995 else f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def percent(share: float) -> str:
    return f"{share * 100:.1f}%"
