"""The Python twin of class_histogram.c. Other threads run meanwhile, so what it finds is not of one moment.

Before 3.13 a look at a running function's variables leaves a copy of them in its frame: until the next look, or the
function's end, what they had lives on.
"""

from __future__ import annotations

import gc
import sys
from types import CodeType, MethodDescriptorType, ModuleType

__all__ = ["count_objects"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_TYPE = type.__dict__
_CODE = (
    "co_consts",
    "co_names",
    "co_filename",
    "co_name",
    "co_qualname",
    "co_linetable",
    "co_exceptiontable",
)
_NAMES = vars(ModuleType)["__dict__"]
_GC_HEADER = sys.getsizeof([]) - [].__sizeof__()
_MANAGED = 1 << 3 | 1 << 4 if sys.version_info >= (3, 12) else 1 << 4  # Py_TPFLAGS_MANAGED_*
_OPTIMIZED = 1  # CO_OPTIMIZED: variables stand in slots
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_READY = 1 << 12  # Py_TPFLAGS_READY
_COLLECTED = 1 << 14  # Py_TPFLAGS_HAVE_GC


def count_objects() -> list[tuple[type, int, int]]:
    found: dict[int, tuple[type, int, int]] = {}  # by id: a metaclass may have its own idea of equal classes
    for thing in objects():
        kind, count, size = found.get(id(type(thing)), (type(thing), 0, 0))
        found[id(kind)] = kind, count + 1, size + size_of(thing)
    return list(found.values())


def objects() -> Iterator[object]:
    """What the garbage collector knows, and what that and running functions refer to: once each."""
    todo: list[object] = [sys.modules]
    frames = sys._current_frames()
    while frames:  # none is left in a variable, which would keep it, and all below it
        todo += variables(frames.popitem()[1])
    known = gc.get_objects()
    met = {id(known), *map(id, known)}
    yield from known
    for thing in known:
        todo += references(thing)
        while todo:
            each = todo.pop()
            if id(each) not in met:
                met.add(id(each))
                yield each
                todo += references(each)


def variables(frame: FrameType | None) -> Iterator[object]:
    while frame is not None:
        yield from variables_of(frame)
        frame = frame.f_back


def variables_of(frame: FrameType) -> Iterator[object]:
    """What a running function has: its code, globals, and the values of its variables."""
    yield from (frame.f_code, frame.f_globals)
    if frame.f_code.co_flags & _OPTIMIZED and frame.f_code is not objects.__code__:
        yield from list(frame.f_locals.values())


def references(thing: object) -> list[object]:
    """All that it refers to, also what the collector need not know."""
    kind = type(thing)
    # Of a module its names only: what its C code keeps may be free already (CPython 3.12's _asyncio keeps such a list).
    found = [_NAMES.__get__(thing)] if issubclass(kind, ModuleType) else gc.get_referents(thing)
    if issubclass(kind, dict):
        found += list(dict(thing))  # type: ignore[call-overload]
    elif kind is CodeType:
        found += [getattr(thing, name) for name in _CODE]
    elif issubclass(kind, type):
        if _TYPE["__flags__"].__get__(thing) & _HEAP:
            found += [_TYPE["__name__"].__get__(thing), _TYPE["__qualname__"].__get__(thing)]
        else:
            found += gc.get_referents(_TYPE["__dict__"].__get__(thing))
            found += [bases_of(thing), *(_TYPE[name].__get__(thing) for name in ("__mro__", "__base__"))]  # type: ignore[arg-type]
    elif kind is range:
        found += [thing.start, thing.stop, thing.step]  # type: ignore[attr-defined]
    return found


def bases_of(kind: type) -> tuple[type, ...]:
    """None of a class of C code that has not been made ready; CPython 3.11 would crash."""
    found: tuple[type, ...] = ()
    if _TYPE["__flags__"].__get__(kind) & _READY:
        found = _TYPE["__bases__"].__get__(kind)
    return found


def size_of(thing: object) -> int:
    """As sys.getsizeof has it, except a `__sizeof__` that is written in Python, which is passed over."""
    kind = type(thing)
    flags = _TYPE["__flags__"].__get__(kind)
    header = (_GC_HEADER if flags & _COLLECTED else 0) + (16 if flags & _MANAGED else 0)
    if issubclass(kind, type) and not _TYPE["__flags__"].__get__(thing) & _HEAP and sys.version_info >= (3, 13):
        header = 0
    for klass in _TYPE["__mro__"].__get__(kind):
        found = _TYPE["__dict__"].__get__(klass).get("__sizeof__")
        if type(found) is MethodDescriptorType:
            return int(found(thing)) + header
    return header
