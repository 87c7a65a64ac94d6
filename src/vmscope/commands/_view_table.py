"""Tables and forms of JFR.view, as the JDK's recorder prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NARROW, USUAL, WIDEST = 39, 79, 119  # columns of text: of two columns, of more, and what content may widen them to
_CUT = "..."


class Shape(NamedTuple):
    """What a client asks for: 0 stands for what fits."""

    width: int = 0
    height: int = 0
    from_beginning: bool = False  # what is too long loses its beginning


class Column(NamedTuple):
    label: str
    number: bool = False  # at the right


def table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], shape: Shape) -> str:
    """The whole of it, below an empty line."""
    widths = _widths(columns, rows, shape)
    total = sum(widths) + len(widths) - 1
    lines = ["", title.center(total).rstrip() if len(title) < total else title, ""]
    lines.append(_line([each.label for each in columns], columns, widths, shape))
    lines.append(" ".join("-" * width for width in widths))
    for row in rows:
        cells = [cell.split("\n")[: shape.height or 1] for cell in row]
        for at in range(max(map(len, cells))):
            lines.append(_line([cell[at] if at < len(cell) else "" for cell in cells], columns, widths, shape))
    return "\n".join(lines)


def form(title: str, fields: Sequence[tuple[str, str]]) -> str:
    """One value a line, with its name."""
    lines = ["", title, "-" * len(title), ""]
    return "\n".join([*lines, *("\n".join((f"{name}: {value}", "")) for name, value in fields)])


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], shape: Shape) -> list[int]:
    """What the content needs; the first column has what is left, or gives what is missing."""
    widths = [
        max(len(column.label), *(len(line) for row in rows for line in row[at].split("\n")), 1)
        for at, column in enumerate(columns)
    ]
    gaps = len(columns) - 1
    needed = sum(widths) + gaps
    wanted = shape.width - 1 if shape.width else max(NARROW if len(columns) == 2 else USUAL, min(needed, WIDEST))
    widths[0] = max(widths[0] + wanted - needed, min(len(_CUT), widths[0]))
    while shape.width and sum(widths) + gaps > wanted and max(widths) > len(_CUT):
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], shape: Shape) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = _cut(cell, width, shape.from_beginning)
        parts.append(text.rjust(width) if column.number else text.ljust(width))
    return " ".join(parts)


def _cut(text: str, width: int, from_beginning: bool) -> str:
    if len(text) <= width:
        return text
    if width <= len(_CUT):
        return _CUT[:width]
    return _CUT + text[len(_CUT) - width :] if from_beginning else text[: width - len(_CUT)] + _CUT
