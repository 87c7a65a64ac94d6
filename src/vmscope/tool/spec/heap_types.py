"""What heap functions take and give: JVM TI's filters, kinds and answers by number, and the callbacks."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from types import CodeType
from typing import NamedTuple

from vmscope.tool.model import introspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.model.tags import Tag

    # class tag, size, tag, length, user data
    HeapIteration = Callable[[int, int, Tag, int, object], int | None]
    # kind, info, class tag, class tag of the referrer, size, tag, tag of the referrer (None: a root), length, user data
    HeapReference = Callable[
        ["ReferenceKind", "ReferenceInfo | StackLocal | None", int, int, int, Tag, Tag | None, int, object], int | None
    ]
    # kind, info, class tag, tag, value, type, user data
    PrimitiveField = Callable[
        ["ReferenceKind", "ReferenceInfo", int, Tag, bool | int | float, "PrimitiveType", object], int | None
    ]
    # class tag, size, tag, count, type, elements in memory's order, user data
    ArrayPrimitiveValue = Callable[[int, int, Tag, int, "PrimitiveType", bytes, object], int | None]
    # class tag, size, tag, value, user data
    StringPrimitiveValue = Callable[[int, int, Tag, str, object], int | None]


class HeapFilter(IntFlag):
    """Which objects no callback is called for."""

    TAGGED = 0x4
    UNTAGGED = 0x8
    CLASS_TAGGED = 0x10
    CLASS_UNTAGGED = 0x20


class ObjectFilter(IntEnum):
    """Which objects a callback of iterate_over_heap is called for."""

    TAGGED = 1
    UNTAGGED = 2
    EITHER = 3


class VisitControl(IntFlag):
    """What a heap callback answers; None is OBJECTS: go on, and visit this object."""

    NOTHING = 0
    OBJECTS = 0x100
    ABORT = 0x8000


class IterationControl(IntEnum):
    """What a callback of the iterate_over functions answers; None is CONTINUE. IGNORE: not into this object."""

    ABORT = 0
    CONTINUE = 1
    IGNORE = 2


class ReferenceKind(IntEnum):
    """What refers to an object: from 21 on, a root."""

    CLASS = 1
    FIELD = 2
    ARRAY_ELEMENT = 3
    CLASS_LOADER = 4
    SIGNERS = 5
    PROTECTION_DOMAIN = 6
    INTERFACE = 7
    STATIC_FIELD = 8
    CONSTANT_POOL = 9
    SUPERCLASS = 10
    JNI_GLOBAL = 21
    SYSTEM_CLASS = 22
    MONITOR = 23
    STACK_LOCAL = 24
    JNI_LOCAL = 25
    THREAD = 26
    OTHER = 27


class RootKind(IntEnum):
    """The roots of iterate_over_reachable_objects: those of ReferenceKind, less 20."""

    JNI_GLOBAL = 1
    SYSTEM_CLASS = 2
    MONITOR = 3
    STACK_LOCAL = 4
    JNI_LOCAL = 5
    THREAD = 6
    OTHER = 7


class PrimitiveType(IntEnum):
    """What a value is in C: the letter of its signature."""

    BOOLEAN = ord("Z")
    BYTE = ord("B")
    CHAR = ord("C")
    SHORT = ord("S")
    INT = ord("I")
    LONG = ord("J")
    FLOAT = ord("F")
    DOUBLE = ord("D")


class ReferenceInfo:
    """Where in the referrer a reference stands: `index`, and `name`, where it has one, else ""."""

    __slots__ = ("_known", "_referee", "_referrer", "index")

    def __init__(self, index: int, known: str | None, referrer: object, referee: object) -> None:
        self.index = index
        self._known = known
        self._referrer = referrer
        self._referee = referee

    @property
    def name(self) -> str:
        """Looked up when it is asked for: that makes an object's `__dict__`, which most never need."""
        if self._known is None:
            own = {} if introspection.is_a(self._referrer, dict) else introspection.own_dict(self._referrer) or {}
            self._known = next((name for name, value in list(own.items()) if value is self._referee), "")
        return self._known

    def __repr__(self) -> str:
        return f"<ReferenceInfo {self.index} {self.name!r}>"


class StackLocal(NamedTuple):
    """A thread's variable: the tag and the id of the thread, the frame's depth, method and location, the slot."""

    thread_tag: int
    thread_id: int
    depth: int
    method: CodeType
    location: int
    slot: int


class HeapCallbacks:
    """The callbacks of follow_references and iterate_through_heap; each may be None. They are given, after what the
    field's type above says, the caller's `user_data`, and answer a VisitControl or None."""

    __slots__ = (
        "array_primitive_value",
        "heap_iteration",
        "heap_reference",
        "primitive_field",
        "string_primitive_value",
    )

    def __init__(
        self,
        *,
        heap_iteration: HeapIteration | None = None,
        heap_reference: HeapReference | None = None,
        primitive_field: PrimitiveField | None = None,
        array_primitive_value: ArrayPrimitiveValue | None = None,
        string_primitive_value: StringPrimitiveValue | None = None,
    ) -> None:
        self.heap_iteration = heap_iteration
        self.heap_reference = heap_reference
        self.primitive_field = primitive_field
        self.array_primitive_value = array_primitive_value
        self.string_primitive_value = string_primitive_value
