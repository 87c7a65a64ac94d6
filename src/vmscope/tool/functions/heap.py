"""The functions that walk the heap.

The program goes on meanwhile, between callbacks that are written in Python. What is made while an iteration lasts, or a
walk that has become large, is not met; what was met does not end before the walk does. What a callback raises ends the
walk and goes to the caller. vmscope's own objects are not met, nor what the walk itself makes.
"""

from __future__ import annotations

from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import heap_walks
from vmscope.tool.model.tags import Tagging
from vmscope.tool.spec.heap_types import HeapCallbacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.model.heap_walks import ObjectCallback, ReferenceCallback, RootCallback, StackCallback


class Heap(Tagging):
    @function
    def iterate_through_heap(
        self, heap_filter: int, klass: type | None, callbacks: HeapCallbacks, user_data: object = None
    ) -> None:
        """Calls back for every object, reachable or not: `heap_iteration`, then, where they apply, `primitive_field`,
        `array_primitive_value`, `string_primitive_value`. With a class, for its own objects only, without those of
        derived classes. A callback that answers ABORT ends it. IllegalArgument for callbacks of another type.

        CPython: gc.get_objects(), and what these refer to that the collector does not know, such as str and int.
        Differs: a tuple, and an object that the collector does not know, is not found while only C code refers to it;
        int, float and bool are objects, and also the values of primitive fields.
        """
        heap_walks.iterate(heap_walks.HeapWalk(self.tags, heap_filter, klass, heap_walks.newer(callbacks), user_data))

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
        is visited so. Each object is visited once, and only if the answer to a reference to it was OBJECTS or None.
        Filter and class say for which objects callbacks are called; the others are visited. ABORT ends it.
        IllegalArgument for callbacks of another type.

        CPython: gc.get_referents, `__dict__` of classes, co_consts; the roots are the interpreter's classes, imported
        modules, threads, and the variables of their frames.
        Differs: what only C code keeps alive is reached from no root. To 3.12 a frame that was looked at keeps its
        variables' values until it ends or is looked at again.
        """
        heap_walks.follow(
            heap_walks.HeapWalk(self.tags, heap_filter, klass, heap_walks.newer(callbacks), user_data), initial_object
        )

    @function
    def iterate_over_objects_reachable_from_object(
        self, object: object, object_reference_callback: ReferenceCallback, user_data: object = None
    ) -> None:
        """Calls back for every reference from this object, and from all that is reached so: with kind, class tag, size,
        tag, tag and index of the referrer, `user_data`. The answer is an IterationControl or None.

        CPython: as follow_references.
        """
        asked = heap_walks.older(object_reference=object_reference_callback)
        heap_walks.follow(heap_walks.HeapWalk(self.tags, 0, None, asked, user_data, older=True), object)

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
        asked = heap_walks.older(
            heap_root=heap_root_callback, stack_reference=stack_ref_callback, object_reference=object_ref_callback
        )
        heap_walks.follow(heap_walks.HeapWalk(self.tags, 0, None, asked, user_data, older=True), None)

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
        asked = heap_walks.older(heap_object=callback)
        heap_walks.iterate(heap_walks.HeapWalk(self.tags, object_filter, klass, asked, user_data, older=True))
