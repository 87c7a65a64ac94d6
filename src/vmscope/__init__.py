"""HotSpot's serviceability for CPython: counters in a PerfData region, and readers of every VM's.

The names below are the public face; each is loaded when it is first used, so that a process that is
merely visible pays for little.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.counters import constant, counter, float_gauge, gauge, histogram, text
    from vmscope.counters.kinds import Constant, Counter, FloatGauge, Gauge, Histogram, Text
    from vmscope.errors import VMScopeError
    from vmscope.flight.events import Event, event
    from vmscope.instruments import instrument
    from vmscope.process_status import Status
    from vmscope.reader import vm, vms
    from vmscope.reader.machine import VM
    from vmscope.runtime import start, status, stop
    from vmscope.wire.codes import Units, Variability

__all__ = [
    "VM",
    "Constant",
    "Counter",
    "Event",
    "FloatGauge",
    "Gauge",
    "Histogram",
    "Status",
    "Text",
    "Units",
    "VMScopeError",
    "Variability",
    "__version__",
    "constant",
    "counter",
    "event",
    "float_gauge",
    "gauge",
    "histogram",
    "instrument",
    "start",
    "status",
    "stop",
    "text",
    "vm",
    "vms",
]

_HOMES = {
    "counters": ("constant", "counter", "float_gauge", "gauge", "histogram", "text"),
    "counters.kinds": ("Constant", "Counter", "FloatGauge", "Gauge", "Histogram", "Text"),
    "errors": ("VMScopeError",),
    "flight.events": ("Event", "event"),
    "instruments": ("instrument",),
    "reader": ("vm", "vms"),
    "reader.machine": ("VM",),
    "process_status": ("Status",),
    "runtime": ("start", "status", "stop"),
    "wire.codes": ("Units", "Variability"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            module = __import__(f"vmscope.{home}", fromlist=[name])
            value: object = getattr(module, name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
