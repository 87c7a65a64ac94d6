"""A statistics view, as `jstat` prints it: a header line, and one row for each sample of a VM's counters.

The standard views are data in `_standard_views`; a user's own are read by `_view_language`.
Evaluation is pure: a row is made from a mapping of counter names to values.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.cli._decimal_format import Symbols

    # A counter's name, a number, or (operator, left, right).
    Expression = str | float | tuple[str, "Expression", "Expression"]

NAN = float("nan")
INFINITY = float("inf")

# Patterns with a fixed number of decimals, and the magnitudes for which printf's rounding gives what Java's
# number format does with them.
_DECIMALS = {"0": 0, "0.0": 1, "0.00": 2, "0.000": 3}
_LEAST, _MOST = 1e-3, 1e12


class ViewError(ValueError):
    """A view that cannot be evaluated."""


class TextOperandError(ViewError):
    """A counter that holds text stands in an arithmetic expression."""


class ViewColumn:
    """One column.

    `header` may carry marks: `^text^` centres it, `^text` puts it left, `text^` right, and each makes the column
    as wide as header and pattern need; without a mark it stands as it is. `scale` divides the value. A counter
    that the VM lacks makes the value NaN, shown as `-`, or counts as 0 where the column is `required`.
    """

    __slots__ = ("align", "data", "heading", "pattern", "required", "scale", "width")

    def __init__(
        self,
        header: str,
        data: Expression,
        pattern: str = "0",
        *,
        scale: float = 1.0,
        width: int = 0,
        align: str = "center",
        required: bool = False,
    ) -> None:
        self.data = data
        self.pattern = pattern
        self.scale = scale
        self.align = align
        self.required = required
        left, right = header.startswith("^"), header.endswith("^")
        text = header[left : len(header) - right]
        if left or right:
            width = max(width, len(pattern), len(text))
            text = aligned(text, width, "center" if left and right else "left" if left else "right")
        self.heading = text
        self.width = width

    def cell(self, values: Mapping[str, int | str], symbols: Symbols | None = None) -> str:
        """The column's text for these counters."""
        value = evaluate(self.data, values, 0.0 if self.required else NAN)
        if not isinstance(value, str):
            value = number(divide(value, self.scale), self.pattern, symbols)
        return aligned(value, self.width, self.align)


class View:
    """Columns under a name."""

    __slots__ = ("columns", "name")

    def __init__(self, name: str, columns: list[ViewColumn]) -> None:
        self.name = name
        self.columns = columns

    def header(self) -> str:
        return " ".join([column.heading for column in self.columns])

    def names(self) -> set[str]:
        """The counters that the columns ask for."""
        names: set[str] = set()
        todo = [column.data for column in self.columns]
        while todo:
            data = todo.pop()
            if isinstance(data, str):
                names.add(data)
            elif isinstance(data, tuple):
                todo += data[1:]
        return names

    def row(self, values: Mapping[str, int | str], symbols: Symbols | None = None) -> str:
        """The row for these counters. Raises ViewError."""
        return " ".join([column.cell(values, symbols) for column in self.columns])


def evaluate(expression: Expression, values: Mapping[str, int | str], missing: float) -> float | str:
    """The expression's value: text only where it is nothing but the name of a text counter."""
    if isinstance(expression, str):
        value = values.get(expression, missing)
        return value if isinstance(value, str) else float(value)
    if isinstance(expression, float):
        return expression
    operator, left_side, right_side = expression
    left, right = evaluate(left_side, values, missing), evaluate(right_side, values, missing)
    if isinstance(left, str) or isinstance(right, str):
        raise TextOperandError(f"text in arithmetic: {left!r} {operator} {right!r}")
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left / right if right else NAN


def divide(value: float, scale: float) -> float:
    """IEEE division: by zero it gives an infinity, or NaN for 0 and NaN."""
    if scale:
        return value / scale
    return NAN if value == 0 or value != value else INFINITY if value > 0 else -INFINITY


def aligned(text: str, width: int, align: str) -> str:
    """The text padded to the width; centred text that cannot stand evenly leans to the left."""
    space = width - len(text)
    if space <= 0:
        return text
    if align == "right":
        return " " * space + text
    if align == "left":
        return text + " " * space
    return " " * (space // 2) + text + " " * (space - space // 2)


def number(value: float, pattern: str, symbols: Symbols | None = None) -> str:
    """The value in a `java.text.DecimalFormat` pattern: rounded half to even, NaN as `-`. ViewError for no pattern."""
    decimals = _DECIMALS.get(pattern)
    if decimals is not None and symbols is None:
        if value != value:
            return "-"
        if value == 0.0 or _LEAST <= abs(value) < _MOST:
            return f"{value:.{decimals}f}"
    from vmscope.cli._decimal_format import DecimalFormat

    try:
        return DecimalFormat(pattern, symbols).format(value)
    except ValueError as error:
        raise ViewError(str(error)) from None
