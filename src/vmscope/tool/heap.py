"""The functions that walk the heap.

The program goes on meanwhile. What is made while an iteration lasts, or a walk that has become large, is not met; what
was met does not end before the walk does. What a callback raises ends the walk and goes to the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from vmscope.tool import anatomy, references
from vmscope.tool.calls import function
from vmscope.tool.classes import array_classes, array_length, size_of
from vmscope.tool.errors import IllegalArgument
from vmscope.tool.heap_types import (
    HeapCallbacks,
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
from vmscope.tool.tags import Tag, Tagging, Tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vmscope.tool.threads import Thread

    Info = ReferenceInfo | StackLocal | None
    Answer = int | None
    ObjectCallback = Callable[[int, int, Tag, object], Answer]
    RootCallback = Callable[[RootKind, int, int, Tag, object], Answer]
    StackCallback = Callable[[RootKind, int, int, Tag, int, int, object, int, object], Answer]
    ReferenceCallback = Callable[[ReferenceKind, int, int, Tag, int, int, object], Answer]
    Report = Callable[[ReferenceKind, Info, object, object], int]

ON = VisitControl.OBJECTS
ABORT = VisitControl.ABORT
OLD_ANSWERS = {IterationControl.ABORT: ABORT, IterationControl.CONTINUE: ON, IterationControl.IGNORE: 0}
NO_REFERRER = object()  # a root's
walkers: list[type] = []  # of callbacks in C that go over all objects by themselves
UNBOUNDED = 10_000  # objects a walk may visit before it asks what there is at all


class Heap(Tagging):
    @function
    def iterate_through_heap(
        self, heap_filter: int, klass: type | None, callbacks: HeapCallbacks, user_data: object = None
    ) -> None:
        """Calls back for every object, reachable or not: `heap_iteration`, then, where they apply, `primitive_field`,
        `array_primitive_value`, `string_primitive_value`. With a class, for its own objects only, without those of
        derived classes. A callback that answers ABORT ends it. IllegalArgument for what are no HeapCallbacks.

        CPython: gc.get_objects(), and what these refer to that the collector does not know, such as str and int.
        Differs: a tuple, and an object that the collector does not know, is not found while only C code refers to it;
        int, float and bool are objects, and also the values of primitive fields.
        """
        if type(callbacks.heap_iteration) in walkers and callbacks.only_iterates():
            self._walk(callbacks.heap_iteration, heap_filter, klass, user_data)
            return
        for thing in references.objects():
            if self._filtered(heap_filter, klass, thing):
                continue
            if callbacks.heap_iteration is not None:
                tags, kind = self.tags, type(thing)
                answer = callbacks.heap_iteration(
                    tags.get(kind), size_of(thing), Tag(tags, thing), array_length(thing), user_data
                )
                if control(answer) & ABORT:
                    return
            if self._values(thing, callbacks, user_data) & ABORT:
                return

    @function
    def follow_references(
        self,
        heap_filter: int,
        klass: type | None,
        initial_object: object,
        callbacks: HeapCallbacks,
        user_data: object = None,
    ) -> None:
        """Calls `heap_reference` for every reference from an object, or, with None, from the roots, and from all that
        is visited so; each object is visited once, and only if the answer to a reference to it was OBJECTS or None.
        Filter and class say for which objects callbacks are called; the others are visited. ABORT ends it.
        IllegalArgument for what are no HeapCallbacks.

        CPython: gc.get_referents, `__dict__` of classes, co_consts; the roots are the interpreter's classes, imported
        modules, threads, and the variables of their frames.
        Differs: what only C code keeps alive is reached from no root. To 3.12 a frame that was looked at keeps its
        variables' values until it ends or is looked at again.
        """
        tags = self.tags

        def report(kind: ReferenceKind, info: Info, referrer: object, referee: object) -> int:
            if callbacks.heap_reference is None or self._filtered(heap_filter, klass, referee):
                return ON
            root = referrer is NO_REFERRER
            answer = callbacks.heap_reference(
                kind,
                info,
                tags.get(type(referee)),
                0 if root else tags.get(type(referrer)),
                size_of(referee),
                Tag(tags, referee),
                None if root else Tag(tags, referrer),
                array_length(referee),
                user_data,
            )
            return control(answer)

        def visit(thing: object) -> int:
            if self._filtered(heap_filter, klass, thing):
                return ON
            return self._values(thing, callbacks, user_data)

        walk = Walk(tags, report, visit)
        if initial_object is None:
            walk.from_roots()
        else:
            walk.from_object(initial_object)

    @function
    def iterate_over_objects_reachable_from_object(
        self, object: object, object_reference_callback: ReferenceCallback, user_data: object = None
    ) -> None:
        """Calls back for every reference from this object, and from all that is reached so: with kind, class tag, size,
        tag, tag and index of the referrer, `user_data`. The answer is an IterationControl or None.

        CPython: as follow_references.
        """
        Walk(self.tags, self._old_report(None, None, object_reference_callback, user_data)).from_object(object)

    @function
    def iterate_over_reachable_objects(
        self,
        heap_root_callback: RootCallback | None,
        stack_ref_callback: StackCallback | None,
        object_ref_callback: ReferenceCallback | None,
        user_data: object = None,
    ) -> None:
        """Calls back for every root, for every variable of a thread's frames, for every reference from all that is
        reached so. The answers are an IterationControl or None.

        CPython: as follow_references.
        """
        report = self._old_report(heap_root_callback, stack_ref_callback, object_ref_callback, user_data)
        Walk(self.tags, report).from_roots()

    @function
    def iterate_over_heap(
        self, object_filter: int, heap_object_callback: ObjectCallback, user_data: object = None
    ) -> None:
        """Calls back for every object, reachable or not, with class tag, size, tag, `user_data`: for the tagged ones,
        the others, or all, by ObjectFilter. The answer is an IterationControl or None.

        CPython: as iterate_through_heap.
        """
        self._iterate(None, object_filter, heap_object_callback, user_data)

    @function
    def iterate_over_instances_of_class(
        self, klass: type, object_filter: int, heap_object_callback: ObjectCallback, user_data: object = None
    ) -> None:
        """As iterate_over_heap, for the objects of this class and of those derived from it.

        CPython: as iterate_through_heap.
        """
        self._iterate(klass, object_filter, heap_object_callback, user_data)

    def _iterate(self, klass: type | None, object_filter: int, callback: ObjectCallback, user_data: object) -> None:
        tags = self.tags
        if type(callback) in walkers:
            self._walk(callback, object_filter, klass, user_data)
            return
        for thing in references.objects():
            kind = type(thing)
            if klass is not None and not anatomy.derives(kind, klass):
                continue
            if object_filter != ObjectFilter.EITHER and bool(tags.get(thing)) != (object_filter == ObjectFilter.TAGGED):
                continue
            answer = callback(tags.get(kind), size_of(thing), Tag(tags, thing), user_data)
            if old_control(answer) & ABORT:
                return

    def _walk(self, walker: Any, chosen: int, klass: type | None, user_data: object) -> None:
        """In C. Nothing is made or dies meanwhile but what its callback lets be."""
        walker.walk(self.tags, chosen, klass, array_classes(), user_data)

    def _old_report(
        self,
        root: RootCallback | None,
        stack: StackCallback | None,
        reference: ReferenceCallback | None,
        user_data: object,
    ) -> Report:
        """A Walk's report that calls these."""
        tags = self.tags

        def report(kind: ReferenceKind, info: Info, referrer: object, referee: object) -> int:
            class_tag, size, tag = tags.get(type(referee)), size_of(referee), Tag(tags, referee)
            answer: Answer = None
            if isinstance(info, StackLocal):
                if stack is not None:
                    of, place = info.thread_tag, info
                    answer = stack(
                        RootKind.STACK_LOCAL, class_tag, size, tag, of, place.depth, place.method, place.slot, user_data
                    )
            elif referrer is NO_REFERRER:
                if root is not None:
                    answer = root(RootKind(kind - ReferenceKind.JNI_GLOBAL + 1), class_tag, size, tag, user_data)
            elif reference is not None:
                # The superclass came with the newer functions.
                older = ReferenceKind.CLASS if kind == ReferenceKind.SUPERCLASS else kind
                index = -1 if info is None else info.index
                answer = reference(older, class_tag, size, tag, tags.get(referrer), index, user_data)
            return old_control(answer)

        return report

    def _filtered(self, heap_filter: int, klass: type | None, thing: object) -> bool:
        """Whether no callback is called for it."""
        kind = type(thing)
        if klass is not None and kind is not klass:
            return True
        if not heap_filter:
            return False
        of_object = HeapFilter.TAGGED if self.tags.get(thing) else HeapFilter.UNTAGGED
        of_class = HeapFilter.CLASS_TAGGED if self.tags.get(kind) else HeapFilter.CLASS_UNTAGGED
        return bool(heap_filter & (of_object | of_class))

    def _values(self, thing: object, callbacks: HeapCallbacks, user_data: object) -> int:
        """Calls back for the primitive values in an object."""
        tags, class_tag = self.tags, self.tags.get(type(thing))
        answer: int = ON
        if callbacks.primitive_field is not None:
            for kind, index, name, value in references.references(thing):
                found = primitive(value)
                if found is not None and kind in (ReferenceKind.FIELD, ReferenceKind.STATIC_FIELD):
                    info = ReferenceInfo(index, name, thing, value)
                    answer |= control(
                        callbacks.primitive_field(kind, info, class_tag, Tag(tags, thing), *found, user_data)
                    )
                    if answer & ABORT:
                        return answer
        if callbacks.array_primitive_value is not None and (array := elements(thing)) is not None:
            size = size_of(thing)
            answer |= control(callbacks.array_primitive_value(class_tag, size, Tag(tags, thing), *array, user_data))
        elif callbacks.string_primitive_value is not None and anatomy.is_a(thing, str):
            value = str.__str__(thing)
            tag = Tag(tags, thing)
            answer |= control(callbacks.string_primitive_value(class_tag, size_of(thing), tag, value, user_data))
        return answer


class Walk:
    """One walk along references. `report` is called for each, and answers ON when its object is to be visited; `visit`
    for each object that is, once."""

    def __init__(self, tags: Tags, report: Report, visit: Callable[[object], int] = lambda thing: ON) -> None:
        self._tags = tags
        self._report = report
        self._visit = visit
        # By id; they live until the walk ends, so that no id is used again. What stands for no referrer is not one.
        self._visited: dict[int, object] = {id(NO_REFERRER): NO_REFERRER}
        self._todo: list[object] = []
        self._bound: set[int] | None = None  # once it is a large one: the ids of what may still be visited

    def from_object(self, thing: object) -> None:
        self._visited[id(thing)] = thing
        self._todo.append(thing)
        self._go_on()

    def from_roots(self) -> None:
        for kind, thing in references.roots():
            if self._met(kind, None, NO_REFERRER, thing) or self._go_on():
                return
        for thread, depth, frame in references.stacks():
            for thing in references.held(frame):
                if self._met(ReferenceKind.OTHER, None, NO_REFERRER, thing):
                    return
            for slot, thing in references.variables(frame):
                local = self._local(thread, depth, frame.f_code, frame.f_lasti, slot)
                if self._met(ReferenceKind.STACK_LOCAL, local, NO_REFERRER, thing):
                    return
            if self._go_on():
                return

    def _local(self, thread: Thread, *place: object) -> StackLocal:
        known = (thread, thread.known(), thread.stand_in)  # an agent has tagged what it was handed
        tag = next((tag for each in known if each is not None and (tag := self._tags.get(each))), 0)
        return StackLocal(tag, thread.id, *place)  # type: ignore[arg-type]

    def _go_on(self) -> bool:
        """Visits what was met. True when a callback wants no more."""
        while self._todo:
            thing = self._todo.pop()
            if self._visit(thing) & ABORT:
                return True
            for kind, index, name, referee in references.references(thing):
                if self._met(kind, ReferenceInfo(index, name, thing, referee), thing, referee):
                    return True
        return False

    def _met(self, kind: ReferenceKind, info: Info, referrer: object, referee: object) -> bool:
        answer = self._report(kind, info, referrer, referee)
        if answer & ON and id(referee) not in self._visited and self._within(referee):
            self._visited[id(referee)] = referee
            self._todo.append(referee)
        return bool(answer & ABORT)

    def _within(self, thing: object) -> bool:
        """Whether a walk that has become large still goes there: not to what is made meanwhile, or a thread that makes
        objects faster than they are visited would keep it from ending."""
        if self._bound is None:
            if len(self._visited) < UNBOUNDED:
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
    if anatomy.is_a(thing, bytes):
        return bytes.__len__(thing), PrimitiveType.BYTE, bytes.__getitem__(thing, slice(None))
    if anatomy.is_a(thing, bytearray):
        return bytearray.__len__(thing), PrimitiveType.BYTE, bytes(bytearray.__getitem__(thing, slice(None)))
    array = sys.modules.get("array")
    if array is not None and issubclass(type(thing), array.array):
        kind = array.array.typecode.__get__(thing)
        return array.array.__len__(thing), ELEMENTS[kind], array.array.tobytes(thing)
    return None
