"""What people read: values, names in order, and labels for codes. Fast paths import it: no enum here."""

from __future__ import annotations

# By code; 0 is none. The words are the JDK's own.
UNITS = ("", "None", "Bytes", "Ticks", "Events", "String", "Hertz")
VARIABILITY = ("", "Constant", "Monotonic", "Variable")


def value(of: int | str) -> str:
    """A counter's value as `jcmd PID PerfCounter.print` shows it: digits, or the text in quotes, nothing escaped."""
    return f'"{of}"' if isinstance(of, str) else str(of)


def line(name: str, of: int | str) -> str:
    """One line of `jcmd PID PerfCounter.print`."""
    return f'{name}="{of}"' if isinstance(of, str) else f"{name}={of}"


def order(name: str) -> bytes:
    """The key by which the JDK sorts counters: UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")
