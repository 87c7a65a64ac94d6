"""The numbers that stand in entries, named. Fast paths use the numbers and do not import this."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Units(IntEnum):
    """What a counter counts in.

    `NONE` is a plain number. `BYTES` are bytes. `TICKS` are ticks of the clock whose rate is the counter
    `sun.os.hrt.frequency`; of a Python process they are nanoseconds. `EVENTS` are things that happened. `STRING` is a
    text. `HERTZ` is a rate a second.
    """

    NONE = 1
    BYTES = 2
    TICKS = 3
    EVENTS = 4
    STRING = 5
    HERTZ = 6


class Variability(IntEnum):
    """How a counter changes: `CONSTANT` never does, `MONOTONIC` only grows, `VARIABLE` may do anything."""

    CONSTANT = 1
    MONOTONIC = 2
    VARIABLE = 3


class DataType(IntEnum):
    """The JVM's type characters. Only LONG scalars and BYTE vectors are ever written or accepted."""

    BOOLEAN = ord("Z")
    CHAR = ord("C")
    FLOAT = ord("F")
    DOUBLE = ord("D")
    BYTE = ord("B")
    SHORT = ord("S")
    INT = ord("I")
    LONG = ord("J")
    OBJECT = ord("L")
    ARRAY = ord("[")
    VOID = ord("V")


class Flags(IntFlag):
    SUPPORTED = 1
