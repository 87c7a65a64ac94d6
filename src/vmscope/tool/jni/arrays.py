"""JNI's functions about arrays: a bytearray for bytes, array.array for other numbers, a list for objects.

Those that the program has made are taken as well: whatever lends its memory as numbers of the right kind, and tuples.
"""

from __future__ import annotations

from array import array
from struct import Struct

from vmscope.tool.functions.classes import array_length
from vmscope.tool.jni.base import Group
from vmscope.tool.jni.jni_errors import MisuseError
from vmscope.tool.model import introspection

# array.array's code of a new array
CODES = {"Z": "B", "B": "b", "C": "H", "S": "h", "I": "i", "J": "q", "F": "f", "D": "d"}
# The formats of memory that are taken for an array of this kind
FORMATS = {"Z": "?Bb", "B": "bBc", "C": "Hu", "S": "h", "I": "il", "J": "ql", "F": "f", "D": "d"}
SIZES = {letter: Struct(code).size for letter, code in CODES.items()}
COMMIT, ABORT = 1, 2


class Arrays(Group):
    def get_array_length(self, given: object) -> int:
        count = array_length(given)
        if count < 0:
            raise MisuseError(TypeError, f"a {type(given).__name__} is not an array")
        return count

    # -- objects ----------------------------------------------------------------------------------

    def new_object_array(self, size: int, klass: object, initial: object) -> list[object]:
        return [initial] * not_negative(size)

    def get_object_array_element(self, things: list[object] | tuple[object, ...], place: int) -> object:
        return things[within(things, place)]

    def set_object_array_element(self, things: list[object] | tuple[object, ...], place: int, thing: object) -> None:
        if isinstance(things, tuple):
            raise TypeError("a tuple cannot be changed")
        things[within(things, place)] = thing

    # -- numbers ----------------------------------------------------------------------------------

    def new_array(self, letter: str, size: int) -> object:
        if letter == "B":
            return bytearray(not_negative(size))
        made: array[int] = array(CODES[letter])
        made.frombytes(bytes(not_negative(size) * SIZES[letter]))
        return made

    def get_array_elements(self, letter: str, given: object, is_copy: int) -> int:
        view = memory(letter, given)
        return self.lend(view.tobytes(), given, is_copy)

    def release_array_elements(self, letter: str, given: object, address: int, mode: int) -> None:
        self._release(memory(letter, given), given, address, mode)

    def get_primitive_array_critical(self, given: object, is_copy: int) -> int:
        return self.lend(any_memory(given).tobytes(), given, is_copy)

    def release_primitive_array_critical(self, given: object, address: int, mode: int) -> None:
        self._release(any_memory(given), given, address, mode)

    def _release(self, view: memoryview, given: object, address: int, mode: int) -> None:
        thing, size = self.lent(address)
        if thing is not given:
            raise MisuseError(ValueError, f"{address:#x} was given out for another array")
        if mode not in (0, COMMIT, ABORT):
            raise MisuseError(ValueError, f"{mode} is not a mode")
        try:
            if mode != ABORT:
                put(view, self.jni.read(address, min(size, view.nbytes)))
        finally:
            if mode != COMMIT:
                self.take_back(address)

    def get_array_region(self, letter: str, given: object, start: int, size: int, to: int) -> None:
        self.jni.write(to, part(memory(letter, given), start, size).tobytes())

    def set_array_region(self, letter: str, given: object, start: int, size: int, source: int) -> None:
        view = part(memory(letter, given), start, size)
        put(view, self.jni.read(source, view.nbytes))


def not_negative(size: int) -> int:
    if size < 0:
        raise ValueError(f"an array has no length of {size}")
    return size


def within(things: list[object] | tuple[object, ...], place: int) -> int:
    if not 0 <= place < len(things):
        raise IndexError(f"index {place} of an array of {len(things)}")
    return place


def memory(letter: str, given: object) -> memoryview:
    """Its elements; what is not an array of this kind is the agent's mistake."""
    view = any_memory(given)
    if view.format not in FORMATS[letter] or view.itemsize != SIZES[letter]:
        raise MisuseError(TypeError, f"a {type(given).__name__} of {view.format!r} is not an array of {letter}")
    return view


def any_memory(given: object) -> memoryview:
    try:
        view = memoryview(given)  # type: ignore[arg-type]
    except TypeError:
        view = None
    if view is None or view.ndim != 1 or not view.c_contiguous or not introspection.is_a(view.format, str):
        raise MisuseError(TypeError, f"a {type(given).__name__} is not an array of numbers")
    return view


def part(view: memoryview, start: int, size: int) -> memoryview:
    if start < 0 or size < 0 or start + size > len(view):
        raise IndexError(f"{size} elements from {start} on, of an array of {len(view)}")
    return view[start : start + size]


def put(view: memoryview, data: bytes) -> None:
    """Changes what it begins with. TypeError where it cannot be changed and would be."""
    if not view.readonly:
        view.cast("B")[: len(data)] = data
    elif not view.tobytes().startswith(data):
        raise TypeError("its elements cannot be changed")
