"""The model: families of metrics and their points, and from which numbers of a VM a point's values come."""

from __future__ import annotations

from vmscope.export.names import Labels

COUNTER, GAUGE, HISTOGRAM, SUMMARY, INFO, UNTYPED = "counter", "gauge", "histogram", "summary", "info", "untyped"
SUM, MIN, MAX, MOST_RECENT = "sum", "min", "max", "mostrecent"
MODES = (SUM, MIN, MAX)  # how the values of several VMs become one
# The marks in a gauge's name that say so. Without `live` the value of a process that has ended counts too.
MARKS = {f"{live}{mode}": mode for live in ("", "live") for mode in (*MODES, MOST_RECENT)}


class Otel:
    """What OpenTelemetry calls a family: its name, its unit, and its attributes by the names of the labels."""

    __slots__ = ("attributes", "name", "unit")

    def __init__(self, name: str, unit: str, attributes: dict[str, str] | None = None) -> None:
        self.name = name
        self.unit = unit
        self.attributes = attributes or {}


class Family:
    """Metrics of one name. `name` is without `_total`; `original` the name as the program has it, where that differs.

    `otel` is None for a family that OpenTelemetry has under another one's name.
    """

    __slots__ = ("help", "name", "original", "otel", "standard", "type", "unit")

    def __init__(
        self, name: str, type: str, help: str, *, unit: str = "", original: str = "", otel: Otel | None = None,
        standard: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.type = type
        self.help = help
        self.unit = unit
        self.original = original or name
        self.otel = otel
        self.standard = standard

    def __repr__(self) -> str:
        return f"<Family {self.name} {self.type}>"


class Source:
    """One number of a VM, and with which sign it counts."""

    __slots__ = ("column", "weight")

    def __init__(self, column: int, weight: int = 1) -> None:
        self.column = column
        self.weight = weight


class Point:
    """One set of labels of a family. `sources`: for each of its values the numbers that are added up.

    A histogram has a value for each bucket, `bounds` says which, and then the sum; a summary the count, then the sum;
    everything else one. `divisor` makes seconds of ticks, of the sum alone where there are several values.
    `constant` is the value of a point that has no source. `time`: of one of the mode MOST_RECENT, the number that
    says when it was set. `exemplars`: for values that may have one, by their place, the text of the region.
    `created`: when it was made anew, in seconds since the epoch; 0 where that was with its VM.
    """

    __slots__ = (
        "bounds", "constant", "created", "divisor", "exemplars", "family", "labels", "mode", "sources", "time",
    )  # fmt: skip

    def __init__(
        self, family: Family, labels: Labels, sources: list[list[Source]], *, divisor: float = 1, mode: str = SUM,
        bounds: tuple[str, ...] = (), constant: float | None = None, time: Source | None = None,
    ) -> None:  # fmt: skip
        self.family = family
        self.labels = labels
        self.sources = sources
        self.divisor = divisor
        self.mode = mode
        self.bounds = bounds
        self.constant = constant
        self.time = time
        self.exemplars: dict[int, str] = {}
        self.created = 0.0
