"""Walks of the heap in Python: the twin of native/jvmti/heap_walk.c, without what that sees of one moment."""

from __future__ import annotations

import sys

from vmscope.tool.functions.classes import array_length, size_of
from vmscope.tool.model import introspection, references
from vmscope.tool.model.own_objects import Ours
from vmscope.tool.model.tags import Tag
from vmscope.tool.spec.errors import IllegalArgument
from vmscope.tool.spec.heap_types import (
    HeapFilter,
    IterationControl,
    ObjectFilter,
    PrimitiveType,
    ReferenceInfo,
    ReferenceKind,
    RootKind,
    StackLocal,
    VisitControl,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.model.heap_walks import HeapWalk

    Info = ReferenceInfo | StackLocal | None

ON = VisitControl.OBJECTS
ABORT = VisitControl.ABORT
OLD_ANSWERS = {IterationControl.ABORT: ABORT, IterationControl.CONTINUE: ON, IterationControl.IGNORE: 0}
NO_REFERRER = object()  # a root's


def iterate(asked: HeapWalk) -> None:
    callbacks = Callbacks(asked)
    ours = Ours()
    for thing in references.objects(ours):
        if callbacks.one(thing) & ABORT or callbacks.values(thing) & ABORT:
            return


def follow(asked: HeapWalk, start: object, unbounded: int) -> None:
    walk = Walk(Callbacks(asked), unbounded)
    if start is None:
        walk.from_roots(asked)
    else:
        walk.from_object(start)


class Callbacks:
    """How an agent's callbacks are called."""

    def __init__(self, asked: HeapWalk) -> None:
        self._asked = asked
        (
            self._iteration,
            self._reference,
            self._field,
            self._array,
            self._string,
            self._object,
            self._root,
            self._stack,
            self._object_reference,
        ) = asked.callbacks

    def one(self, thing: object) -> int:
        asked, tags, kind = self._asked, self._asked.tags, type(thing)
        if self._filtered(thing):
            return ON
        facts = tags.get(kind), size_of(thing), Tag(tags, thing)
        if asked.older:
            return old_control(self._object(*facts, asked.user_data))
        if self._iteration is None:
            return ON
        return control(self._iteration(*facts, array_length(thing), asked.user_data))

    def reference(self, kind: ReferenceKind, info: Info, referrer: object, referee: object) -> int:
        if self._asked.older:
            return self._older(kind, info, referrer, referee)
        if self._reference is None or self._filtered(referee):
            return ON
        tags, root = self._asked.tags, referrer is NO_REFERRER
        answer = self._reference(
            kind,
            info,
            tags.get(type(referee)),
            0 if root else tags.get(type(referrer)),
            size_of(referee),
            Tag(tags, referee),
            None if root else Tag(tags, referrer),
            array_length(referee),
            self._asked.user_data,
        )
        return control(answer)

    def _older(self, kind: ReferenceKind, info: Info, referrer: object, referee: object) -> int:
        tags, data = self._asked.tags, self._asked.user_data
        class_tag, size, tag = tags.get(type(referee)), size_of(referee), Tag(tags, referee)
        answer: int | None = None
        if isinstance(info, StackLocal):
            if self._stack is not None:
                of, place = info.thread_tag, info
                answer = self._stack(
                    RootKind.STACK_LOCAL, class_tag, size, tag, of, place.depth, place.method, place.slot, data
                )
        elif referrer is NO_REFERRER:
            if self._root is not None:
                answer = self._root(RootKind(kind - ReferenceKind.JNI_GLOBAL + 1), class_tag, size, tag, data)
        elif self._object_reference is not None:
            # The superclass came with the newer functions.
            older = ReferenceKind.CLASS if kind == ReferenceKind.SUPERCLASS else kind
            index = -1 if info is None else info.index
            answer = self._object_reference(older, class_tag, size, tag, tags.get(referrer), index, data)
        return old_control(answer)

    def _filtered(self, thing: object) -> bool:
        """Whether no callback is called for it."""
        kind, klass, chosen, tags = type(thing), self._asked.klass, self._asked.chosen, self._asked.tags
        if self._asked.older:
            if klass is not None and not introspection.derives(kind, klass):
                return True
            return chosen != ObjectFilter.EITHER and bool(tags.get(thing)) != (chosen == ObjectFilter.TAGGED)
        if klass is not None and kind is not klass:
            return True
        if not chosen:
            return False
        of_object = HeapFilter.TAGGED if tags.get(thing) else HeapFilter.UNTAGGED
        of_class = HeapFilter.CLASS_TAGGED if tags.get(kind) else HeapFilter.CLASS_UNTAGGED
        return bool(chosen & (of_object | of_class))

    def values(self, thing: object) -> int:
        """Calls back for the primitive values in an object."""
        if not (self._field or self._array or self._string) or self._filtered(thing):
            return ON
        tags, data = self._asked.tags, self._asked.user_data
        class_tag = tags.get(type(thing))
        answer: int = ON
        if self._field is not None:
            for kind, index, name, value in references.references(thing):
                found = primitive(value)
                if found is not None and kind in (ReferenceKind.FIELD, ReferenceKind.STATIC_FIELD):
                    info = ReferenceInfo(index, name, thing, value)
                    answer |= control(self._field(kind, info, class_tag, Tag(tags, thing), *found, data))
                    if answer & ABORT:
                        return answer
        if self._array is not None and (array := elements(thing)) is not None:
            answer |= control(self._array(class_tag, size_of(thing), Tag(tags, thing), *array, data))
        elif self._string is not None and introspection.is_a(thing, str):
            value = str.__str__(thing)
            answer |= control(self._string(class_tag, size_of(thing), Tag(tags, thing), value, data))
        return answer


class Walk:
    """One walk along references: each object is visited once."""

    def __init__(self, callbacks: Callbacks, unbounded: int) -> None:
        self._callbacks = callbacks
        self._unbounded = unbounded
        self._ours = Ours()
        # By id; they live until the walk ends, so that no id is used again. What stands for no referrer is not one.
        self._visited: dict[int, object] = {id(NO_REFERRER): NO_REFERRER}
        self._todo: list[object] = []
        self._bound: set[int] | None = None  # once it is a large one: the ids of what may still be visited

    def from_object(self, thing: object) -> None:
        self._visited[id(thing)] = thing
        self._todo.append(thing)
        self._go_on()

    def from_roots(self, asked: HeapWalk) -> None:
        for root in references.steps(asked.tags):
            if root is None:
                if self._go_on():
                    return
            elif self._met(root[0], root[1], NO_REFERRER, root[2]):
                return

    def _go_on(self) -> bool:
        """Visits what was met. True when a callback wants no more."""
        while self._todo:
            thing = self._todo.pop()
            if self._callbacks.values(thing) & ABORT:
                return True
            for kind, index, name, referee in references.references(thing):
                if self._met(kind, ReferenceInfo(index, name, thing, referee), thing, referee):
                    return True
        return False

    def _met(self, kind: ReferenceKind, info: Info, referrer: object, referee: object) -> bool:
        if referee in self._ours:
            return False
        answer = self._callbacks.reference(kind, info, referrer, referee)
        if answer & ON and id(referee) not in self._visited and self._within(referee):
            self._visited[id(referee)] = referee
            self._todo.append(referee)
        return bool(answer & ABORT)

    def _within(self, thing: object) -> bool:
        """Whether a walk that has become large still goes there: not to what is made meanwhile, or a thread that makes
        objects faster than they are visited would keep it from ending."""
        if self._bound is None:
            if len(self._visited) < self._unbounded:
                return True
            self._bound = references.known_ids()
        return id(thing) in self._bound or references.is_leaf(thing)


def control(answer: object) -> int:
    """A callback's VisitControl."""
    if answer is None:
        return ON
    if not isinstance(answer, int):
        raise IllegalArgument(f"a heap callback answers a VisitControl or None, not {answer!r}")
    return answer


def old_control(answer: object) -> int:
    """A callback's IterationControl, as VisitControl."""
    if answer is None:
        return ON
    if answer not in OLD_ANSWERS:
        raise IllegalArgument(f"a heap callback answers an IterationControl or None, not {answer!r}")
    return OLD_ANSWERS[answer]  # type: ignore[index]


def primitive(value: object) -> tuple[bool | int | float, PrimitiveType] | None:
    """A value that C has a type for, with that."""
    if type(value) is bool:
        return value, PrimitiveType.BOOLEAN
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value, PrimitiveType.LONG
    if type(value) is float:
        return value, PrimitiveType.DOUBLE
    return None


ELEMENTS = {
    **dict.fromkeys("bB", PrimitiveType.BYTE),
    **dict.fromkeys("uw", PrimitiveType.CHAR),
    **dict.fromkeys("hH", PrimitiveType.SHORT),
    **dict.fromkeys("iI", PrimitiveType.INT),
    **dict.fromkeys("lLqQ", PrimitiveType.LONG),
    "f": PrimitiveType.FLOAT,
    "d": PrimitiveType.DOUBLE,
}  # by array.array's type code


def elements(thing: object) -> tuple[int, PrimitiveType, bytes] | None:
    """Count, type and memory of an array of primitive values."""
    if introspection.is_a(thing, bytes):
        return bytes.__len__(thing), PrimitiveType.BYTE, bytes.__getitem__(thing, slice(None))
    if introspection.is_a(thing, bytearray):
        return bytearray.__len__(thing), PrimitiveType.BYTE, bytes(bytearray.__getitem__(thing, slice(None)))
    array = sys.modules.get("array")
    if array is not None and issubclass(type(thing), array.array):
        kind = array.array.typecode.__get__(thing)
        return array.array.__len__(thing), ELEMENTS[kind], array.array.tobytes(thing)
    return None
