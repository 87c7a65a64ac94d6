"""Walks of the heap: what is asked for, and who carries it out, the extension or its twin in Python."""

from __future__ import annotations

from vmscope import native
from vmscope.tool.functions.classes import array_classes
from vmscope.tool.model import heap_walk_twin, references
from vmscope.tool.model.frames import OWN
from vmscope.tool.model.tags import Holder, Tag, Tags
from vmscope.tool.spec.heap_types import HeapCallbacks, PrimitiveType, ReferenceInfo, ReferenceKind, RootKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Answer = int | None
    ObjectCallback = Callable[[int, int, Tag, object], Answer]
    RootCallback = Callable[[RootKind, int, int, Tag, object], Answer]
    StackCallback = Callable[[RootKind, int, int, Tag, int, int, object, int, object], Answer]
    ReferenceCallback = Callable[[ReferenceKind, int, int, Tag, int, int, object], Answer]

IN_C = hasattr(native, "iterate_heap")
UNBOUNDED = 10_000  # objects a walk may visit before it asks what there is at all

# An agent's callbacks, in the order that both implementations have them in; each may be None.
NEWER = ("heap_iteration", "heap_reference", "primitive_field", "array_primitive_value", "string_primitive_value")
OLDER = ("heap_object", "heap_root", "stack_reference", "object_reference")


class HeapWalk:
    """One walk. `chosen` is a HeapFilter, with `older` an ObjectFilter."""

    __slots__ = ("callbacks", "chosen", "klass", "older", "tags", "user_data")

    def __init__(
        self,
        tags: Tags,
        chosen: int,
        klass: type | None,
        callbacks: tuple[Any, ...],
        user_data: object,
        *,
        older: bool = False,
    ) -> None:
        self.tags = tags
        self.chosen = chosen
        self.klass = klass
        self.callbacks = callbacks
        self.user_data = user_data
        self.older = older


def newer(callbacks: HeapCallbacks) -> tuple[Any, ...]:
    return *(getattr(callbacks, name) for name in NEWER), *[None] * len(OLDER)


def older(**callbacks: object) -> tuple[Any, ...]:
    return *[None] * len(NEWER), *map(callbacks.get, OLDER)


def iterate(asked: HeapWalk) -> None:
    """Over all objects."""
    if IN_C:
        native.iterate_heap(COMMON, own(asked))
    else:
        native.without_allocation_events(heap_walk_twin.iterate, asked)


def follow(asked: HeapWalk, start: object) -> None:
    """Along references, from an object, or with None from the roots."""
    if IN_C:
        roots = None if start is not None else references.steps(asked.tags)
        native.follow_heap(COMMON, own(asked), start, roots)
    else:
        native.without_allocation_events(heap_walk_twin.follow, asked, start, UNBOUNDED)


def own(asked: HeapWalk) -> tuple[object, ...]:
    """What the extension needs of one walk."""
    tags, klass, data = asked.tags, asked.klass, asked.user_data
    return tags, tags.by_id, array_classes(), asked.callbacks, asked.chosen, klass, asked.older, UNBOUNDED, data


def by_number(members: type[ReferenceKind] | type[RootKind]) -> tuple[object, ...]:
    known = {int(each): each for each in members}
    return tuple(known.get(number) for number in range(max(known) + 1))


# What it needs of all: the objects that callbacks in Python are given, and what is asked of Python.
COMMON = (
    Tag,
    Holder,
    ReferenceInfo,
    by_number(ReferenceKind),
    by_number(RootKind),
    {int(each): each for each in PrimitiveType},
    heap_walk_twin.control,
    heap_walk_twin.old_control,
    references.parts_of_class,
    OWN,
)
