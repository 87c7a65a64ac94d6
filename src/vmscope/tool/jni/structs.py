"""JVM TI's structs, from C and to C."""

from __future__ import annotations

from vmscope.tool.capabilities import CapabilitySet
from vmscope.tool.events import KINDS, Event
from vmscope.tool.jni.values import POINTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.environment import Environment
    from vmscope.tool.jni.machine import Machine

FIRST_EVENT = 50
CAPABILITIES_SIZE = 16


def capabilities(machine: Machine, environment: Environment, address: int, size: int) -> CapabilitySet:
    bits = int.from_bytes(machine.jni.read(address, CAPABILITIES_SIZE), "little")
    return CapabilitySet(bits=bits)


def callbacks(
    machine: Machine, environment: Environment, address: int, size: int
) -> dict[Event, Callable[..., object]]:
    """A function pointer for each event from VMInit on, as many as `size` has room for."""
    raw = machine.jni.read(address, size // POINTER.size * POINTER.size)
    block = machine.address(environment)
    return {
        Event(number): machine.jni.callback(block, number, function)
        for number, (function,) in enumerate(POINTER.iter_unpack(raw), FIRST_EVENT)
        if function and number in KINDS
    }


READERS: dict[str, Callable[[Machine, Environment, int, int], object]] = {
    "capabilities": capabilities,
    "callbacks": callbacks,
}
