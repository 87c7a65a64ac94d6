"""Names and signatures as JNI writes them, and the classes and modules of Python that they stand for.

`shop/models/Order$Line` is Order.Line of the module shop.models, `shop/models` the module itself, whose functions are
static methods. The names in `java_classes.CLASSES` stand for Python's own classes.
"""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

from vmscope import own_threads
from vmscope.tool.jni.java_classes import CLASSES
from vmscope.tool.model import introspection

PRIMITIVES = "ZBCSIJFD"
MOST_PARAMETERS = 255


def find_class(name: str) -> type | ModuleType:
    """Imports the module, where it can be found. ImportError, as NoClassDefFoundError. `Lshop/Basket;` will do too."""
    if name.startswith("L") and name.endswith(";"):
        name = name[1:-1]
    found = CLASSES.get(name)
    if found is not None:
        return found
    if name.startswith("["):
        return array_class(name)
    if not name or ";" in name or "." in name or "[" in name or not all(name.split("/")):
        raise ImportError(f"{name!r} is not a class's name: they are written shop/models/Order$Line")
    package, _, last = name.rpartition("/")
    if package:
        module = imported(package.replace("/", "."))
        klass = None if module is None else within(module, last)
        if klass is not None:
            return klass
    module = imported(name.replace("/", "."))
    if module is None:
        raise ImportError(f"no class or module is called {name}", name=name.replace("/", "."))
    return module


def imported(name: str) -> ModuleType | None:
    """Imported now, if it has not been. None when there is none of this name; what it raises goes on."""
    found = sys.modules.get(name)
    if found is None:
        try:
            with own_threads.ProgramsCode():
                __import__(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                return None
            raise
        found = sys.modules.get(name)
    return found if introspection.is_a(found, ModuleType) else None


def within(module: ModuleType, name: str) -> type | None:
    """The class that a module has under this name, `Order$Line` for one in a class."""
    found: object = module
    for part in name.split("$"):
        found = (
            introspection.namespace(found).get(part)
            if introspection.is_a(found, type)
            else introspection.attribute(found, part)
        )
    return found if introspection.is_a(found, type) else None


def array_class(name: str) -> type:
    """`[B` is a bytearray, arrays of other numbers are array.array, all others a list."""
    element = name.lstrip("[")
    right = element in PRIMITIVES if len(element) == 1 else element.startswith("L") and element.endswith(";")
    if not right or ";" in element[:-1]:
        raise ImportError(f"{name!r} is not an array's name")
    if len(name) > 2:
        if len(element) > 1:
            find_class(element[1:-1])
        return list
    if name[1] == "B":
        return bytearray
    from array import array

    return array


def class_name(klass: type | ModuleType) -> str:
    """As `Class.getName` has it, `shop.models.Order$Line`."""
    if introspection.is_a(klass, type):
        return introspection.signature(klass)[1:-1].replace("/", ".").removeprefix(f"{builtins.__name__}.")
    return str(introspection.attribute(klass, "__name__"))


def parse(signature: str) -> tuple[str, str] | None:
    """The letters of a method's parameters, L for every reference, and that of its result; None for what is none."""
    if not signature.startswith("("):
        return None
    letters, place = "", 1
    while signature[place : place + 1] != ")":
        end = _type_end(signature, place)
        if end is None or len(letters) == MOST_PARAMETERS:
            return None
        letters += _letter(signature[place])
        place = end
    result = signature[place + 1 :]
    if result != "V" and _type_end(signature, place + 1) != len(signature):
        return None
    return letters, _letter(result[0])


def is_type(signature: str) -> bool:
    """Whether it is a field's."""
    return _type_end(signature, 0) == len(signature)


def _letter(first: str) -> str:
    return "L" if first == "[" else first


def _type_end(signature: str, place: int) -> int | None:
    """Where the type that begins there ends; None when none does."""
    while signature[place : place + 1] == "[":
        place += 1
    first = signature[place : place + 1]
    if first == "L":
        end = signature.find(";", place)
        return end + 1 if end > place + 1 else None
    return place + 1 if first and first in PRIMITIVES else None
