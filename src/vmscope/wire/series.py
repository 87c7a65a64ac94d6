"""Series that were removed: entries stay where they are, so another one says that they are not to be shown.

`sold#created{what="tea"}` says of the counter `sold{what="tea"}`, of the histogram or of the summary when it was made
anew after it had been removed, in ms since the epoch; 0 while it is removed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CREATED = "#created"
_PARTS = (".sum", ".count")


def keys(name: str) -> tuple[str, ...]:
    """What an entry is a part of, in `{`: itself without its marks, and the histogram or summary that it may be of."""
    base, brace, rest = name.partition("{")
    base = base.partition("#")[0]
    labels = rest.rpartition("}")[0] if brace else ""
    own = f"{base}{{{labels}"
    if base.endswith(".bucket") and labels.startswith('le="'):
        rest = labels[4:].partition('"')[2].removeprefix(",")
        return own, f"{base.removesuffix('.bucket')}{{{rest}"
    for part in _PARTS:
        if base.endswith(part):
            return own, f"{base.removesuffix(part)}{{{labels}"
    return (own,)


def is_mark(name: str) -> bool:
    return CREATED in name and CREATED in name.partition("{")[0]


def removal(numbers: Iterable[tuple[str, int]]) -> Callable[[str], bool]:
    """Whether the entry of a name is of a series that these numbers say is removed."""
    removed = {keys(name)[0] for name, value in numbers if is_mark(name) and value == 0}
    if not removed:
        return lambda _: False
    return lambda name: any(key in removed for key in keys(name))
