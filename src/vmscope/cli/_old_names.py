"""What JDK 1.4 called the counters that the standard views and jps ask for.

A region of that time (version 1.0) has the old names; jps and jstat look for them where the new one is absent.
Under each group's old prefix: the new name's end, and the old names' ends, 1.4.2's before 1.4.1's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OLD = "hotspot."
# One that every old region has, and by which it is known.
_MARK = "hotspot.rt.hrt.frequency"

_CLASSES = {
    "java.cls.loadedClasses": ("rt.cl.classes.loaded",),
    "java.cls.unloadedClasses": ("rt.cl.classes.unloaded",),
    "sun.cls.initializedClasses": ("rt.cl.classes.initialized",),
    "sun.cls.loadedBytes": ("rt.cl.bytes.loaded",),
    "sun.cls.unloadedBytes": ("rt.cl.bytes.unloaded",),
    "sun.cls.time": ("rt.cl.time",),
}
_COMPILER = {
    "java.ci.totalTime": ("ci.total.time",),
    "sun.ci.lastFailedMethod": ("ci.failed.method",),
    "sun.ci.lastFailedType": ("ci.failed.type",),
    "sun.ci.lastMethod": ("ci.last.method",),
    "sun.ci.lastSize": ("ci.last.size",),
    "sun.ci.lastType": ("ci.last.type",),
    "sun.ci.totalBailouts": ("ci.total.bailout",),
    "sun.ci.totalCompiles": ("ci.total.compiles",),
    "sun.ci.totalInvalidates": ("ci.total.invalid",),
}
_COLLECTOR = {
    "sun.gc.cause": ("gc.cause",),
    "sun.gc.lastCause": ("gc.last_cause",),
    "sun.gc.collector.0.invocations": ("gc.collector.0.invocations", "gc.new.eden.invocations"),
    "sun.gc.collector.0.time": ("gc.collector.0.time", "gc.new.eden.time"),
    "sun.gc.collector.1.invocations": ("gc.collector.1.invocations", "gc.new.eden.invocations"),
    "sun.gc.collector.1.time": ("gc.collector.1.time", "gc.new.eden.time"),
    "sun.gc.policy.desiredSurvivorSize": ("gc.policy.desired_survivor_size", "gc.agetable.dss"),
    "sun.gc.policy.maxTenuringThreshold": ("gc.max_tenuring_threshold", "gc.agetable.mtt"),
    "sun.gc.policy.tenuringThreshold": ("gc.policy.tenuring_threshold", "gc.agetable.tt"),
}
_RUNTIME = {
    "java.rt.vmArgs": ("vm.args",),
    "java.rt.vmFlags": ("vm.flags",),
    "sun.os.hrt.frequency": ("rt.hrt.frequency",),
    "sun.os.hrt.ticks": ("rt.hrt.ticks",),
}
# generation and space, and what 1.4.1 called it
_SPACES = {"0.space.0": "new.eden", "0.space.1": "new.s0", "0.space.2": "new.s1", "1.space.0": "tenured"}


def with_new_names(values: Mapping[str, int | str]) -> Mapping[str, int | str]:
    """The values, in an old region also under their new names."""
    if _MARK not in values:
        return values
    renamed = dict(values)
    for new, olds in _table().items():
        old = next((name for name in olds if name in values), None)
        if old is not None and new not in values:
            renamed[new] = values[old]
    return renamed


def _table() -> dict[str, tuple[str, ...]]:
    """New name to old names."""
    ends = {**_CLASSES, **_COMPILER, **_COLLECTOR, **_RUNTIME}
    for generation in ("0", "1"):
        for new, old in (("capacity", "current"), ("maxCapacity", "max"), ("minCapacity", "min")):
            ends[f"sun.gc.generation.{generation}.{new}"] = (f"gc.generation.{generation}.capacity.{old}",)
    for space, before in _SPACES.items():
        for new, now, then in (
            ("capacity", "capacity", "capacity"),
            ("maxCapacity", "size", "capacity"),
            ("used", "used", "used"),
        ):
            ends[f"sun.gc.generation.{space}.{new}"] = (f"gc.generation.{space}.{now}", f"gc.{before}.{then}")
    table = {new: tuple(_OLD + end for end in olds) for new, olds in ends.items()}
    table["sun.rt.javaCommand"] = ("sun.java.command",)
    return table
