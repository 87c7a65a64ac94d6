"""The heap: which objects there are, what refers to what, and from where all of it is reached.

Nothing here calls code of the program: objects are asked by the interpreter's own functions. The program may run
meanwhile. What is seen of each object is of one moment, what is seen of several is not.
"""

from __future__ import annotations

import gc
import sys
from types import CodeType, FrameType, ModuleType

from vmscope import native, own_threads
from vmscope.tool.functions.classes import array_length, is_interface
from vmscope.tool.functions.modules import class_loader_of, loaded_modules
from vmscope.tool.model import introspection, threads
from vmscope.tool.model.frames import is_own
from vmscope.tool.spec.heap_types import ReferenceKind, StackLocal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from vmscope.tool.model.tags import Tags
    from vmscope.tool.model.threads import Thread

    # kind, index, name where it is known, referee
    Reference = tuple[ReferenceKind, int, str | None, object]
    # kind, place in a frame, object
    Root = tuple[ReferenceKind, StackLocal | None, object]

OF_CODE = "co_consts", "co_names", "co_name", "co_qualname", "co_filename", "co_linetable", "co_exceptiontable"
_NAMES = vars(ModuleType)["__dict__"]
OPTIMIZED = 0x1  # CO_OPTIMIZED: variables stand in slots


def objects(hidden: Container[object] = ()) -> Iterator[object]:
    """Every object that the garbage collector knows, and what these refer to that it does not know: once each."""
    known = native.tracked_objects(None)
    met: set[int] = set()  # made after that, or it would be met
    for thing in known:
        if thing in hidden:
            continue
        yield thing
        todo = [each for each in referents(thing) if is_leaf(each)]
        while todo:
            leaf = todo.pop()
            if id(leaf) not in met and leaf not in hidden:
                met.add(id(leaf))
                yield leaf
                todo += [each for each in parts(leaf) if is_leaf(each)]


def known_ids() -> set[int]:
    """Of all objects that the garbage collector knows; leaves are not among them."""
    return set(map(id, native.tracked_objects(None)))


def is_leaf(thing: object) -> bool:
    """Whether it is found only through what refers to it."""
    return type(thing) in (tuple, frozenset) or not gc.is_tracked(thing)


def parts(thing: object) -> list[object]:
    """What it refers to, also where the collector need not know that."""
    if introspection.is_a(thing, CodeType):
        return [getattr(thing, name) for name in OF_CODE]
    if introspection.is_a(thing, type):
        return list(introspection.namespace(thing).values())
    return referents(thing)


def referents(thing: object) -> list[object]:
    """As gc.get_referents, but of a module its names only. What its C code keeps may have been freed, and is freed once
    more by who holds it: of _asyncio in CPython 3.12 it is a free list, which then has no end."""
    if introspection.is_a(thing, ModuleType):
        return [_NAMES.__get__(thing)]
    return gc.get_referents(thing)


def references(thing: object) -> Iterator[Reference]:
    """Whatever the object refers to; its class first."""
    kind = type(thing)
    yield ReferenceKind.CLASS, -1, "", kind
    if introspection.is_a(thing, type):
        yield from of_class(thing)
    elif kind is CodeType and isinstance(thing, CodeType):
        for index, constant in enumerate((*thing.co_consts, *thing.co_names)):
            yield ReferenceKind.CONSTANT_POOL, index, "", constant
    elif introspection.is_one_of(thing, (tuple, list)):
        yield from of_sequence(thing)
    elif introspection.is_a(thing, dict):
        yield from of_dict(thing)
    else:
        yield from fields(thing, referents(thing))


def fields(thing: object, referees: list[object]) -> Iterator[Reference]:
    """Members of a C struct, attributes; without the class."""
    kind: object = type(thing)
    for index, referee in enumerate(referees):
        if referee is kind:
            kind = None  # it was reported already, but a second reference is the program's
        else:
            yield ReferenceKind.FIELD, index, None, referee


def of_sequence(thing: object) -> Iterator[Reference]:
    """Elements; attributes, where its class derives from tuple or list. It is not asked for its elements: a tuple that
    is just being filled has places without any."""
    referees = gc.get_referents(thing)
    first = max(0, len(referees) - array_length(thing))
    for index, element in enumerate(reversed(referees[first:])):  # they come last, the last one first
        yield ReferenceKind.ARRAY_ELEMENT, index, "", element
    yield from fields(thing, referees[:first])


def of_dict(thing: dict[object, object]) -> Iterator[Reference]:
    """Keys; values, under the names of their keys; attributes, where its class derives from dict."""
    items = list(dict.items(thing))
    for index, (key, value) in enumerate(items):
        yield ReferenceKind.ARRAY_ELEMENT, index, "", key
        if type(key) is str:
            yield ReferenceKind.FIELD, index, key, value
        else:
            yield ReferenceKind.ARRAY_ELEMENT, index, "", value
    if type(thing) is not dict:
        reported = {id(each) for item in items for each in item}
        yield from fields(thing, [each for each in gc.get_referents(thing) if id(each) not in reported])


def of_class(klass: type) -> Iterator[Reference]:
    """Bases, loader, and what stands in its `__dict__`."""
    bases, loader = parts_of_class(klass)
    for index, (kind, base) in enumerate(bases):
        yield kind, index, "", base
    if loader is not None:
        yield ReferenceKind.CLASS_LOADER, -1, "", loader
    for index, (name, value) in enumerate(list(introspection.namespace(klass).items())):
        yield ReferenceKind.STATIC_FIELD, index, name, value


def parts_of_class(klass: type) -> tuple[list[tuple[ReferenceKind, type]], object]:
    """Its bases, and what these are to it; its loader, or None."""
    return [
        (ReferenceKind.INTERFACE if is_interface(base) else ReferenceKind.SUPERCLASS, base)
        for base in introspection.bases(klass)
    ], class_loader_of(klass)


def steps(tags: Tags) -> Iterator[Root | None]:
    """What a walk begins with; None where all that these lead to is visited."""
    for kind, thing in roots():
        yield kind, None, thing
        yield None
    for thread, depth, frame in stacks():
        for thing in held(frame):
            yield ReferenceKind.OTHER, None, thing
        for slot, thing in variables(frame):
            place = StackLocal(tag_of(tags, thread), thread.id, depth, frame.f_code, frame.f_lasti, slot)
            yield ReferenceKind.STACK_LOCAL, place, thing
        yield None


def tag_of(tags: Tags, thread: Thread) -> int:
    """An agent has tagged what it was handed."""
    known = thread, thread.known(), thread.stand_in
    return next((tag for each in known if each is not None and (tag := tags.get(each))), 0)


def roots() -> Iterator[tuple[ReferenceKind, object]]:
    """What is reached without going through another object, except threads' variables: the classes of the
    interpreter, imported modules, `threading`'s threads."""
    for klass in introspection.loaded_classes():
        if not introspection.flags(klass) & introspection.HEAP:
            yield ReferenceKind.SYSTEM_CLASS, klass
    for module in loaded_modules():
        yield ReferenceKind.JNI_GLOBAL, module
    threading = own_threads.threading_module()
    active = None if threading is None else introspection.attribute(threading, "_active")
    if type(active) is dict:
        for thread in list(active.values()):
            yield ReferenceKind.THREAD, thread


def stacks() -> Iterator[tuple[Thread, int, FrameType]]:
    """Each frame of each thread, innermost first, with its depth, except those of vmscope's own code. The current
    thread's begin below those that are just walking."""
    frames = sys._current_frames()
    current = threads.current()
    frames.pop(current.ident, None)  # this generator's: a frame that has itself among its variables never goes
    for thread in threads.living():
        frame = frames.pop(thread.ident, None)
        if thread is current:
            frame = sys._getframe()
            while frame is not None and is_own(frame.f_code):
                frame = frame.f_back
        depth = 0
        while frame is not None:
            if not is_own(frame.f_code):
                yield thread, depth, frame
            depth += 1
            frame = frame.f_back


def variables(frame: FrameType) -> Iterator[tuple[int, object]]:
    """Slot and value of each variable that has one."""
    if not frame.f_code.co_flags & OPTIMIZED:
        return  # a module's or class's body: its names stand in a dictionary of their own
    values = dict(frame.f_locals)
    for slot, name in enumerate(introspection.slots(frame.f_code)):
        if name in values:
            yield slot, values[name]


def held(frame: FrameType) -> Iterator[object]:
    """What else a frame keeps."""
    yield frame.f_code
    yield frame.f_globals
    if not frame.f_code.co_flags & OPTIMIZED and type(frame.f_locals) is dict:
        yield frame.f_locals
