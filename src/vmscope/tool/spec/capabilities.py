"""Capabilities: what an environment may hold, and the rules by which it gets and gives back.

Inside, a set of capabilities is an int, bit N for capability N, as in JVM TI's struct; so the rules take and
give nothing that a caller from C could not. `CapabilitySet` is such an int as Python would have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from enum import IntEnum

from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, NotAvailable, NullPointer, WrongPhase, shown


class Capability(IntEnum):
    """The bits of JVM TI's capabilities struct, by name."""

    CAN_TAG_OBJECTS = 0
    CAN_GENERATE_FIELD_MODIFICATION_EVENTS = 1
    CAN_GENERATE_FIELD_ACCESS_EVENTS = 2
    CAN_GET_BYTECODES = 3
    CAN_GET_SYNTHETIC_ATTRIBUTE = 4
    CAN_GET_OWNED_MONITOR_INFO = 5
    CAN_GET_CURRENT_CONTENDED_MONITOR = 6
    CAN_GET_MONITOR_INFO = 7
    CAN_POP_FRAME = 8
    CAN_REDEFINE_CLASSES = 9
    CAN_SIGNAL_THREAD = 10
    CAN_GET_SOURCE_FILE_NAME = 11
    CAN_GET_LINE_NUMBERS = 12
    CAN_GET_SOURCE_DEBUG_EXTENSION = 13
    CAN_ACCESS_LOCAL_VARIABLES = 14
    CAN_MAINTAIN_ORIGINAL_METHOD_ORDER = 15
    CAN_GENERATE_SINGLE_STEP_EVENTS = 16
    CAN_GENERATE_EXCEPTION_EVENTS = 17
    CAN_GENERATE_FRAME_POP_EVENTS = 18
    CAN_GENERATE_BREAKPOINT_EVENTS = 19
    CAN_SUSPEND = 20
    CAN_REDEFINE_ANY_CLASS = 21
    CAN_GET_CURRENT_THREAD_CPU_TIME = 22
    CAN_GET_THREAD_CPU_TIME = 23
    CAN_GENERATE_METHOD_ENTRY_EVENTS = 24
    CAN_GENERATE_METHOD_EXIT_EVENTS = 25
    CAN_GENERATE_ALL_CLASS_HOOK_EVENTS = 26
    CAN_GENERATE_COMPILED_METHOD_LOAD_EVENTS = 27
    CAN_GENERATE_MONITOR_EVENTS = 28
    CAN_GENERATE_VM_OBJECT_ALLOC_EVENTS = 29
    CAN_GENERATE_NATIVE_METHOD_BIND_EVENTS = 30
    CAN_GENERATE_GARBAGE_COLLECTION_EVENTS = 31
    CAN_GENERATE_OBJECT_FREE_EVENTS = 32
    CAN_FORCE_EARLY_RETURN = 33
    CAN_GET_OWNED_MONITOR_STACK_DEPTH_INFO = 34
    CAN_GET_CONSTANT_POOL = 35
    CAN_SET_NATIVE_METHOD_PREFIX = 36
    CAN_RETRANSFORM_CLASSES = 37
    CAN_RETRANSFORM_ANY_CLASS = 38
    CAN_GENERATE_RESOURCE_EXHAUSTION_HEAP_EVENTS = 39
    CAN_GENERATE_RESOURCE_EXHAUSTION_THREADS_EVENTS = 40
    CAN_GENERATE_EARLY_VMSTART = 41
    CAN_GENERATE_EARLY_CLASS_HOOK_EVENTS = 42
    CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS = 43
    CAN_SUPPORT_VIRTUAL_THREADS = 44


ALL = (1 << len(Capability)) - 1
_NUMBERS = frozenset(Capability)
WHOLE_BYTES = (1 << 8 * ((len(Capability) + 7) // 8)) - 1  # what is read and written of a caller's struct


def mask(*bits: int) -> int:
    """The set of these capabilities, as an int."""
    result = 0
    for bit in bits:
        result |= 1 << bit
    return result


class CapabilitySet(AbstractSet[Capability]):
    """A set of capabilities that iterates in bit order; immutable. `int(it)` is its bits.

    It equals any set of the same capabilities, and hashes as a frozenset of them.
    """

    __slots__ = ("_bits",)

    def __init__(self, capabilities: Iterable[object] | None = (), *, bits: int = 0) -> None:
        """IllegalArgument for a number that is not a capability, NullPointer for None."""
        if capabilities is None:
            raise NullPointer("None where a set of capabilities is needed: give any iterable of Capability")
        for capability in capabilities:
            if not isinstance(capability, int) or capability not in _NUMBERS:
                raise IllegalArgument(f"{shown(capability)} is not a capability")
            bits |= 1 << capability
        self._bits = bits & ALL

    @classmethod
    def _from_iterable(cls, iterable: Iterable[Capability]) -> CapabilitySet:  # type: ignore[override]
        return cls(iterable)

    def __contains__(self, item: object) -> bool:
        return isinstance(item, int) and 0 <= item < len(Capability) and bool(self._bits >> item & 1)

    def __iter__(self) -> Iterator[Capability]:
        return (capability for capability in Capability if self._bits >> capability & 1)

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __int__(self) -> int:
        return self._bits

    def __eq__(self, other: object) -> bool:
        return self._bits == other._bits if isinstance(other, CapabilitySet) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"CapabilitySet({{{', '.join(capability.name for capability in self)}}})"


# What each derived flag follows from.
DERIVED = {
    "post_interpreter_events": mask(1, 2, 16, 18, 24, 25),
    "hotswap_or_post_breakpoint": mask(9, 19, 37),
    "modify_any_class": mask(19, 26),
    "walk_any_space": mask(0),
    "access_local_variables": mask(14, 18, 19),
    "post_on_exceptions": mask(17, 18, 25),
    "post_method_exit": mask(18, 25),
    "owned_monitor_info": mask(5, 34),
    "clean_up_heap_objects": mask(19),
    "post_breakpoint": mask(19),
    "post_field_access": mask(2),
    "post_field_modification": mask(1),
    "post_method_entry": mask(24),
    "post_frame_pop": mask(18),
    "pop_frame": mask(8),
    "force_early_return": mask(33),
    "get_source_debug_extension": mask(13),
    "maintain_original_method_order": mask(15),
}  # fmt: skip
REDEFINITION = mask(Capability.CAN_REDEFINE_CLASSES, Capability.CAN_RETRANSFORM_CLASSES)


class CapabilityRules:
    """The rule book and its state, for one VM: HotSpot's rules, whatever four disjoint sets it is given.

    `always` can be had in ONLOAD and LIVE, `onload` in ONLOAD only; of the `_solo` ones one environment at a time
    can hold each. What was had once in ONLOAD can be had from then on. Every set is an int.
    """

    __slots__ = (
        "_flags",
        "acquired",
        "always",
        "always_solo",
        "always_solo_remaining",
        "onload",
        "onload_solo",
        "onload_solo_remaining",
    )

    def __init__(self, always: int, onload: int, always_solo: int, onload_solo: int) -> None:
        """ValueError when the sets overlap."""
        if (always | onload | always_solo | onload_solo).bit_count() != sum(
            bits.bit_count() for bits in (always, onload, always_solo, onload_solo)
        ):
            raise ValueError("a capability stands in two of the four sets")
        self.always = always
        self.onload = onload
        self.always_solo = self.always_solo_remaining = always_solo
        self.onload_solo = self.onload_solo_remaining = onload_solo
        self.acquired = 0
        self._flags: dict[str, bool] = dict.fromkeys((*DERIVED, "all_dependencies_are_recorded"), False)
        self.update(Phase.PRIMORDIAL)

    def potential(self, current: int, prohibited: int, phase: int, taken: int = 0) -> int:
        """What an environment that holds `current` and is denied `prohibited` could hold. WrongPhase.

        `taken`: what cannot be had alone now, as another tool has what it needs.
        """
        if phase not in (Phase.ONLOAD, Phase.LIVE):
            raise WrongPhase(f"capabilities are dealt in the phases ONLOAD and LIVE, not in {Phase(phase).name}")
        potential = self.always & ~prohibited | current | self.always_solo_remaining & ~taken
        if phase == Phase.ONLOAD:
            potential |= self.onload | self.onload_solo_remaining & ~taken
        return potential

    def add(self, current: int, prohibited: int, desired: int, phase: int, taken: int = 0) -> int:
        """The new current set. NotAvailable, with nothing changed, when one of `desired` cannot be had. WrongPhase."""
        desired &= WHOLE_BYTES
        absent = desired & ~self.potential(current, prohibited, phase, taken)
        if absent:
            names = ", ".join(capability.name for capability in CapabilitySet(bits=absent))
            raise NotAvailable(f"not available in this VM now: {names or hex(absent)}")
        self.acquired |= desired
        had = desired & self.onload
        self.always |= had
        self.onload &= ~had
        had = desired & self.onload_solo
        self.always_solo |= had
        self.onload_solo &= ~had
        self.always_solo_remaining &= ~desired
        self.onload_solo_remaining &= ~desired
        self.update(phase)
        return current | desired

    def relinquish(self, current: int, undesired: int) -> int:
        """The new current set; what can be held by one at a time is free again."""
        given_back = current & undesired
        self.always_solo_remaining |= self.always_solo & given_back
        self.onload_solo_remaining |= self.onload_solo & given_back
        return current & ~given_back

    @property
    def solo(self) -> int:
        """What one environment at a time can hold."""
        return self.always_solo | self.onload_solo

    def copy(self, current: int, into: int = 0) -> int:
        """What a caller's 16-byte struct holds afterwards that held `into`: the bytes behind the last bit stay."""
        return into & ~WHOLE_BYTES | current

    def dispose(self, current: int) -> int:
        """The new current set of an environment that is disposed of: none."""
        return self.relinquish(current, ALL)

    def recompute(self, always: int, phase: int) -> None:
        """After set-up: what could always be had in the end joins what can be. Nothing is taken away."""
        self.always |= always & ~(self.onload | self.always_solo | self.onload_solo)
        self.update(phase)

    def update(self, phase: int) -> None:
        """Raises the derived flags that follow from what is available; none ever falls."""
        available = self.always | self.always_solo
        for name, causes in DERIVED.items():
            if available & causes:
                self._flags[name] = True
        if phase == Phase.ONLOAD and available & REDEFINITION:
            self._flags["all_dependencies_are_recorded"] = True

    def flags(self) -> dict[str, bool]:
        """What has been made possible so far, by name; a flag alone costs nothing."""
        return dict(self._flags)
