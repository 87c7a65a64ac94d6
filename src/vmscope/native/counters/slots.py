"""The Python twin of slots.c: the same values for the same calls, under one lock.

A signal handler that updates the slot being updated finds the lock its own (it is reentrant), and the
update is one statement without a call in it, in which no handler runs. A forked child makes the lock anew.
"""

from __future__ import annotations

import os
from _thread import RLock
from math import ldexp
from operator import index
from struct import Struct

from vmscope.native.counters.labels import Labelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["CounterSlot", "FloatGaugeSlot", "GaugeSlot", "LongSlot", "TextSlot", "reset_slots"]

_LOW, _HIGH, _RANGE = -(1 << 63), (1 << 63) - 1, 1 << 64
_END = 2.0**63
_MAX_TEXT = 32768
_NEGATIVE = "a counter only grows: add() takes no negative amount"

_BITS, _DOUBLE = Struct("=q"), Struct("=d")

_lock = RLock()


def _new_lock() -> None:
    global _lock
    _lock = RLock()


def reset_slots(slots: Mapping[str, object], /) -> None:
    """Those among the values of a dict that are numbers, back to zero, in a forked child."""
    for slot in slots.values():
        reset = getattr(slot, "_reset", None)
        if reset is not None:
            reset()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_new_lock)


def _int64(number: int) -> int:
    value = index(number)
    if not _LOW <= value <= _HIGH:
        raise OverflowError("int too big to convert")
    return value


def bits(number: float) -> int:
    """A double's bits, as a signed integer."""
    return int(_BITS.unpack(_DOUBLE.pack(number))[0])


def add_cells(cells: list[float], bucket: int, amount: int) -> None:
    """One more in a bucket of a histogram, and so much more in its sum."""
    with _lock:
        cells[0] = (cells[0] + amount - _LOW) % _RANGE + _LOW
        cells[1 + bucket] += 1


def add_double(cells: list[float], bucket: int | None, amount: float) -> None:
    """The same where the sum is a double; None: in no bucket."""
    with _lock:
        cells[0] += amount
        if bucket is not None:
            cells[1 + bucket] += 1


class LongSlot(Labelled):
    """One 64-bit number, read and written whole."""

    __slots__ = ("_value",)
    _value: int

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        self._children = None
        self._value = 0
        return self

    @property
    def value(self) -> int:
        """The value now, an int of 64 bits."""
        return self._value

    @property
    def cells(self) -> tuple[int, ...]:
        """The value as it is kept, in a tuple."""
        return (self._value,)

    def _add(self, amount: int) -> None:
        with _lock:
            self._value = (self._value + amount - _LOW) % _RANGE + _LOW

    def _restore(self, value: int, /) -> None:
        self._value = _int64(value)

    def _reset(self) -> None:
        self._value = 0


class CounterSlot(LongSlot):
    """A number that only grows. Amounts that are not whole are added up by themselves."""

    __slots__ = ("_fraction",)
    _fraction: float

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        self._fraction = 0.0
        return self

    @property
    def value(self) -> float:  # type: ignore[override]
        """The value now: an int of 64 bits, or a float once an amount was not whole."""
        return self._value + self._fraction if self._fraction else self._value

    @property
    def cells(self) -> tuple[int, ...]:
        """The sum of whole amounts; the bits of a double, the sum of the others."""
        return self._value, bits(self._fraction)

    def inc(self) -> None:
        """Adds one."""
        self._add(1)

    def add(self, amount: int | float, /) -> None:
        """Adds an amount of zero or more (ValueError otherwise)."""
        if isinstance(amount, float) and not (amount.is_integer() and amount < _END):
            if not amount >= 0:
                raise ValueError(_NEGATIVE)
            self._add_fraction(amount)
            return
        value = _int64(int(amount) if isinstance(amount, float) else amount)
        if value < 0:
            raise ValueError(_NEGATIVE)
        self._add(value)

    def _add_fraction(self, amount: float) -> None:
        if not self._fraction:
            self._show_fraction()
        with _lock:
            self._fraction += amount

    def _show_fraction(self) -> None:
        """The first amount that is not whole is about to be added."""

    def _reset(self) -> None:
        self._value = 0
        self._fraction = 0.0


class GaugeSlot(LongSlot):
    """A number that goes up and down."""

    __slots__ = ()

    def inc(self) -> None:
        """Adds one."""
        self._add(1)

    def dec(self) -> None:
        """Takes one away."""
        self._add(-1)

    def add(self, amount: int, /) -> None:
        """Adds an amount, negative or not."""
        self._add(_int64(amount))

    def set(self, value: int, /) -> None:
        """Sets the value."""
        self._value = _int64(value)


class FloatGaugeSlot(LongSlot):
    """A float that goes up and down."""

    __slots__ = ("_float",)
    _float: float

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        self._float = 0.0
        return self

    @property
    def value(self) -> float:  # type: ignore[override]
        """The value now, a float."""
        return self._float

    @property
    def cells(self) -> tuple[int, ...]:
        """Its bits."""
        return (bits(self._float),)

    def inc(self) -> None:
        """Adds one."""
        self.add(1.0)

    def dec(self) -> None:
        """Takes one away."""
        self.add(-1.0)

    def add(self, amount: float, /) -> None:
        """Adds an amount, negative or not."""
        number = ldexp(amount, 0)  # the one call that takes a number as C does, and gives it back
        with _lock:
            self._float += number

    def set(self, value: float, /) -> None:
        """Sets the value."""
        self._float = ldexp(value, 0)

    _restore = set

    def _reset(self) -> None:
        self._float = 0.0


class TextSlot:
    """A text of at most `capacity` bytes of UTF-8."""

    __slots__ = ("_bytes", "_capacity")
    _bytes: bytes
    _capacity: int

    def __new__(cls, capacity: int, *args: object, **kwargs: object) -> Self:
        if not 0 <= capacity <= _MAX_TEXT:
            raise ValueError(f"a text's capacity is 0 to {_MAX_TEXT} bytes, not {capacity}")
        self = super().__new__(cls)
        self._capacity = capacity
        self._bytes = b""
        return self

    @property
    def value(self) -> str:
        """The text now."""
        return self._bytes.decode()

    @property
    def capacity(self) -> int:
        """How many bytes of UTF-8 it holds."""
        return self._capacity

    def set(self, text: str, /) -> None:
        """Sets the text; one that is too long is cut between characters, at a NUL in any case."""
        if not isinstance(text, str):
            raise TypeError(f"set() takes a str, not {type(text).__name__}")
        encoded = text.encode("utf-8", "replace").partition(b"\0")[0]
        if len(encoded) > self._capacity:
            encoded = encoded[: self._capacity].decode("utf-8", "ignore").encode()
        self._bytes = encoded
