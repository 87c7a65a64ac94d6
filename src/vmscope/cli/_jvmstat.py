"""What stands between a region and the JDK's tools: waiting for its owner, old names, and six made-up counters."""

from __future__ import annotations

from time import monotonic

from vmscope.errors import FormatError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.reader.machine import VM

PATIENCE = 5.0  # seconds, for a VM that is still starting

# A name that every region of JDK 1.4 has, and no later one.
_OLD_MARK = "hotspot.rt.hrt.frequency"

# What lists show, and what it was called then.
_IDENTITY = (
    *("sun.rt.javaCommand", "java.rt.vmArgs", "java.rt.vmFlags", "sun.rt.jvmCapabilities"),
    *(_OLD_MARK, "hotspot.vm.args", "hotspot.vm.flags", "sun.java.command"),
)

MADE_UP = "sun.perfdata."
MADE_UP_NAMES = [MADE_UP + name for name in ("majorVersion", "minorVersion", "overflow", "size", "timestamp", "used")]
_NONE, _BYTES, _TICKS = 1, 2, 3  # units
_CONSTANT, _MONOTONIC = 1, 2  # variability


def patience() -> float:
    """Until when a VM that is still starting is waited for, or all those that are listed."""
    return monotonic() + PATIENCE


def wait(vm: VM, until: float | None = None) -> None:
    """Returns when the VM can be read. Raises VMScopeError when it takes too long, FormatError for no region."""
    if not vm.reader.wait_accessible((until or patience()) - monotonic()):
        raise VMScopeError(
            f"The VM of {vm.path} has been starting for {PATIENCE:.0f} s: it is stuck, or was killed",
            pid=vm.pid,
            path=vm.path,
        )


def values(vm: VM) -> Mapping[str, int | str]:
    """The VM's values now, those of an old region also under today's names."""
    return _renamed(vm.values())


def identity(vm: VM) -> Mapping[str, int | str]:
    """What a list of VMs shows of one, as `values`; FormatError for one that is damaged anywhere."""
    try:
        found = vm.reader.some(_IDENTITY, sound=True)
    except FormatError:  # by an entry that was just being added
        found = vm.reader.some(_IDENTITY, sound=True)
    return _renamed(found)


def _renamed(found: Mapping[str, int | str]) -> Mapping[str, int | str]:
    if _OLD_MARK in found:
        from vmscope.cli._old_names import with_new_names

        return with_new_names(found)
    return found


class MadeUp:
    """A counter that is not an entry: a field of the prologue."""

    __slots__ = ("name", "supported", "units", "value", "variability")

    def __init__(self, name: str, value: int, units: int, variability: int) -> None:
        self.name = MADE_UP + name
        self.value = value
        self.units = units
        self.variability = variability
        self.supported = False


def made_up(vm: VM) -> list[MadeUp]:
    """The counters that jvmstat adds to each region."""
    prologue = vm.reader.prologue()
    return [
        MadeUp("majorVersion", prologue.major, _NONE, _CONSTANT),
        MadeUp("minorVersion", prologue.minor, _NONE, _CONSTANT),
        MadeUp("overflow", prologue.overflow, _BYTES, _MONOTONIC),
        MadeUp("size", vm.reader.mapping.size, _BYTES, _MONOTONIC),
        MadeUp("timestamp", prologue.mod_time_stamp, _TICKS, _MONOTONIC),
        MadeUp("used", prologue.used, _BYTES, _MONOTONIC),
    ]
