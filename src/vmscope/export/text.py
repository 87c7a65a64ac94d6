"""Prometheus's text formats: 0.0.4, 1.0.0 and OpenMetrics. A template is made for each layout, then only filled in."""

from __future__ import annotations

from vmscope import native
from vmscope.export.model import COUNTER, HISTOGRAM, INFO, SUMMARY, UNTYPED, Family
from vmscope.export.names import Labels, is_legacy
from vmscope.reader.structure import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vmscope.export.exemplars import Exemplar
    from vmscope.export.table import Line, Table


class Format:
    """One of the formats: `openmetrics`, and whether names may be any UTF-8."""

    __slots__ = ("content_type", "openmetrics", "utf8")

    def __init__(self, content_type: str, *, openmetrics: bool = False, utf8: bool = False) -> None:
        self.content_type = content_type
        self.openmetrics = openmetrics
        self.utf8 = utf8


_TEXT = "text/plain; version={}; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text; version={}; charset=utf-8"
_ANY, _UNDERSCORES = "; escaping=allow-utf-8", "; escaping=underscores"
TEXT_0 = Format(_TEXT.format("0.0.4"))
TEXT_1 = Format(_TEXT.format("1.0.0") + _UNDERSCORES)
TEXT_1_UTF8 = Format(_TEXT.format("1.0.0") + _ANY, utf8=True)
OPENMETRICS_0 = Format(_OPENMETRICS.format("0.0.1"), openmetrics=True)
OPENMETRICS_1 = Format(_OPENMETRICS.format("1.0.0") + _UNDERSCORES, openmetrics=True)
OPENMETRICS_1_UTF8 = Format(_OPENMETRICS.format("1.0.0") + _ANY, openmetrics=True, utf8=True)


def negotiate(accept: str) -> Format:
    """The format that an Accept header asks for; 0.0.4 where it names none of them."""
    best, quality = TEXT_0, 0.0
    for part in accept[:4096].split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        given = dict(parameter.lower().replace(" ", "").partition("=")[::2] for parameter in parameters)
        try:
            weight = float(given.get("q", "1"))
        except ValueError:
            continue
        found = _format(kind.lower(), given)
        if found is not None and weight > quality:
            best, quality = found, weight
    return best


def _format(kind: str, given: dict[str, str]) -> Format | None:
    utf8 = given.get("escaping") == "allow-utf-8"
    version = given.get("version")
    if kind == "application/openmetrics-text" and version in (None, "0.0.1", "1.0.0"):
        if version == "1.0.0":
            return OPENMETRICS_1_UTF8 if utf8 else OPENMETRICS_1
        return OPENMETRICS_0
    if kind in ("text/plain", "text/*", "*/*") and version in (None, "0.0.4", "1.0.0"):
        return (TEXT_1_UTF8 if utf8 else TEXT_1) if version == "1.0.0" else TEXT_0
    return None


# -- lines


_COMPUTED = words("q", [-1])  # the source of a value by itself


class Template:
    """The answer of one layout, filled in again and again."""

    __slots__ = ("_length", "_text", "table")

    def __init__(self, table: Table, form: Format) -> None:
        self.table = table
        self._text = _template(table, form)
        self._length = 0  # of the last answer

    def fill(self, numbers: memoryview, exemplars: dict[int, Exemplar | None], end: str) -> bytes:
        """The answer, with the values of all lines, in OpenMetrics with the exemplars of those that may have one, and
        `end` behind it."""
        table = self.table
        computed = table.computed(numbers)
        values: dict[int, int | float | bytes] = {**computed}
        for position, exemplar in exemplars.items():
            value = table.value(position, numbers, computed)
            behind = b"" if exemplar is None else _exemplar(exemplar)
            values[position] = native.fill(b"%d", b"", _COMPUTED, b"\0", {0: value}, behind, 0)
        found = native.fill(self._text, numbers, table.sources, table.digits, values, end.encode(), self._length)
        self._length = len(found)
        return found


def _exemplar(exemplar: Exemplar) -> bytes:
    labels = ",".join(f'{name}="{_escape(value)}"' for name, value in exemplar.labels)
    return f" # {{{labels}}} {exemplar.value!r} {exemplar.time:.3f}".encode()


def _template(table: Table, form: Format) -> bytes:
    """With `%d` where a whole number stands, `%a` where another may, and `%b` where one with an exemplar."""
    parts: list[str] = []
    rows = [_escaped_percent(_labels(row)) for row in table.rows]
    own: dict[Labels, str] = {(): ""}
    for family, lines in table.families:
        parts.append(_escaped_percent(heading(family, form)))
        write = _WRITERS.get(family.type, _plain)
        names = _Names(_escaped_percent(_name(family, form)), form)
        has_created = form.openmetrics and family.type in (COUNTER, HISTOGRAM, SUMMARY)
        for line in lines:
            behind = own.get(line.labels)
            if behind is None:
                behind = own[line.labels] = f",{_escaped_percent(_labels(line.labels))}"
            labels = rows[line.row] + behind
            write(parts, names, labels, line)
            if has_created and line.created:
                parts.append(f"{names.head('_created', labels)} {line.created!r}\n")
    return "".join(parts).encode()


def single(family: Family, samples: Sequence[tuple[Labels, int | float]], form: Format, created: float) -> str:
    """A family that is not of the table."""
    names = _Names(_name(family, form), form)
    suffix = "_total" if family.type == COUNTER else ""
    lines = [f"{names.head(suffix, _labels(labels))} {value}\n" for labels, value in samples]
    if form.openmetrics and family.type == COUNTER:
        lines += [f"{names.head('_created', _labels(labels))} {created:.3f}\n" for labels, _ in samples]
    return heading(family, form) + "".join(lines)


class _Names:
    """The beginnings of a family's lines: plain, or in quotes where the name needs them."""

    __slots__ = ("exemplars", "name", "quoted")

    def __init__(self, name: str, form: Format) -> None:
        self.name = name
        self.exemplars = form.openmetrics
        self.quoted = form.utf8 and not is_legacy(name)

    def head(self, suffix: str, labels: str) -> str:
        if self.quoted:
            inner = f'"{_escape(self.name + suffix)}"'
            return f"{{{inner},{labels}}}" if labels else f"{{{inner}}}"
        return f"{self.name}{suffix}{{{labels}}}" if labels else self.name + suffix


def _name(family: Family, form: Format) -> str:
    return family.original if form.utf8 and not family.standard else family.name


def heading(family: Family, form: Format) -> str:
    """HELP, TYPE and, in OpenMetrics, UNIT."""
    name, kind = _name(family, form), family.type
    if not form.openmetrics:
        name += {COUNTER: "_total", INFO: "_info"}.get(kind, "")
        kind = "gauge" if kind == INFO else kind
    elif kind == UNTYPED:
        kind = "unknown"
    shown = f'"{_escape(name)}"' if form.utf8 and not is_legacy(name) else name
    text = _escape(family.help) if form.openmetrics else family.help.replace("\\", "\\\\").replace("\n", "\\n")
    lines = f"# HELP {shown} {text}\n# TYPE {shown} {kind}\n"
    if form.openmetrics and family.unit and name.endswith(f"_{family.unit}"):
        lines += f"# UNIT {shown} {family.unit}\n"
    return lines


def _labels(labels: Labels) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_percent(text: str) -> str:
    return text.replace("%", "%%")


def _plain(parts: list[str], names: _Names, labels: str, line: Line, suffix: str = "") -> None:
    place = _place(names, line, 0, "%a" if line.double else "%d")
    parts.append(f"{names.head(suffix, labels)} {place}\n")


def _place(names: _Names, line: Line, number: int, plain: str) -> str:
    """What stands for one of a line's values: bytes for one that may have an exemplar."""
    return "%b" if names.exemplars and number in line.exemplars else plain


def _counter(parts: list[str], names: _Names, labels: str, line: Line) -> None:
    _plain(parts, names, labels, line, "_total")


def _info(parts: list[str], names: _Names, labels: str, line: Line) -> None:
    _plain(parts, names, labels, line, "_info")


def _summary(parts: list[str], names: _Names, labels: str, line: Line) -> None:
    parts.append(f"{names.head('_count', labels)} %d\n{names.head('_sum', labels)} %a\n")


def _histogram(parts: list[str], names: _Names, labels: str, line: Line) -> None:
    for number, bound in enumerate(line.bounds):
        head = names.head("_bucket", f'{labels},le="{bound}"')
        parts.append(f"{head} {_place(names, line, number, '%d')}\n")
    _summary(parts, names, labels, line)


_WRITERS = {COUNTER: _counter, INFO: _info, SUMMARY: _summary, HISTOGRAM: _histogram}
