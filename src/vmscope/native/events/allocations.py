"""The Python twin of allocations.c, also where that has no reference tracer: no allocation is seen."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "allocations_lost",
    "allocations_served",
    "stop_tracing",
    "trace_allocations",
    "tracer_holder",
    "traces_allocations",
    "without_allocation_events",
]


def traces_allocations() -> bool:
    """Whether it can."""
    return False


def trace_allocations(callback: object, own: str, every: bool, interval: int, /) -> None:
    """RuntimeError."""
    raise RuntimeError("only the extension can trace allocations, on CPython 3.13 and later with its GIL")


def stop_tracing() -> None:
    """Nothing is traced."""


def tracer_holder() -> str:
    """There is no tracer, and so no owner."""
    return ""


def allocations_lost() -> int:
    return 0


def allocations_served() -> int:
    return 0


def without_allocation_events(function: Callable[..., object], /, *arguments: object) -> object:
    return function(*arguments)
