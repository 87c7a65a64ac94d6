"""What all these agents' options have in common: `key=value`, with commas between.

A key may come more than once where several values make sense. The key that a table names `REST` is the last one: its
value is all that follows, commas and all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from vmscope.tool import Environment

    class VM(Protocol):
        """What an agent is given: a VM that makes environments."""

        def get_env(self, version: int = ..., agent: str = ...) -> Environment: ...


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse(text: str, readers: Mapping[str, Callable[[str], object]], rest: str = "") -> dict[str, list[object]]:
    """Every value of each key, as its reader reads it. ValueError says what is wrong with which option."""
    found: dict[str, list[object]] = {}
    while text:
        key, equals, _ = text.partition("=")
        if key == rest and equals:
            item, text = text, ""
        else:
            item, _, text = text.partition(",")
            key, equals, _ = item.partition("=")
        if key not in readers or not equals:
            raise ValueError(f"{item!r} is not an option; options are {', '.join(f'{name}=' for name in readers)}")
        try:
            value = readers[key](item[len(key) + 1 :])
        except ValueError as error:
            raise ValueError(f"option {item}: {error}") from None
        found.setdefault(key, []).append(value)
    return found


def seconds(text: str) -> float:
    """`10`, `10s`, `500ms`, `2m`, `1h`."""
    number, unit = _split(text)
    if unit not in ("", *_SECONDS) or number <= 0:
        raise ValueError("a time is a number and ms, s, m or h, as in 10s")
    return number * _SECONDS.get(unit, 1.0)


def size(text: str) -> int:
    """`1500m`, `2g`; without a letter, bytes."""
    number, unit = _split(text.lower())
    if unit not in ("", *_BYTES) or number <= 0:
        raise ValueError("a size is a number and k, m, g or t, as in 2g")
    return int(number * _BYTES.get(unit, 1))


def share(text: str) -> float:
    """`30%`: 0.3."""
    number, unit = _split(text)
    if unit != "%" or not 0 < number <= 100:
        raise ValueError("a share is a number from 0 to 100 and %, as in 30%")
    return number / 100


def number(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("it is a whole number, 1 or more")
    return int(text)


def switch(text: str) -> bool:
    """`on` or `off`."""
    if text not in ("on", "off"):
        raise ValueError("it is on or off")
    return text == "on"


def word(text: str) -> str:
    """Anything but nothing."""
    if not text:
        raise ValueError("it has no value")
    return text


def _split(text: str) -> tuple[float, str]:
    """The number that a text begins with, and what follows."""
    end = len(text.rstrip("abcdefghijklmnopqrstuvwxyz%"))
    try:
        return float(text[:end]), text[end:]
    except ValueError:
        raise ValueError(f"{text!r} does not begin with a number") from None
