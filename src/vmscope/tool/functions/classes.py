"""The functions about classes and objects as such: signature, status, modifiers, members, hash code, size."""

from __future__ import annotations

import marshal
import sys
from types import FunctionType, MethodDescriptorType

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.functions.fields import field_names
from vmscope.tool.model import introspection
from vmscope.tool.spec.errors import AbsentInformation, ClassNotPrepared
from vmscope.tool.spec.structs import ConstantPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.model.introspection import Method

# JVM TI's class status, and the JVM's access flags of a class
VERIFIED, PREPARED, INITIALIZED, ARRAY = 1, 2, 4, 16
PUBLIC, PRIVATE, FINAL, INTERFACE, IS_ABSTRACT, SYNTHETIC, ENUM = 0x1, 0x2, 0x10, 0x200, 0x400, 0x1000, 0x4000

ARRAYS = list, tuple, bytes, bytearray
LATER_ARRAYS = ("array", "array"), ("_ctypes", "Array")


class Classes(Base):
    @function
    def get_loaded_classes(self) -> list[type]:
        """Every class there is.

        CPython: `object` and, again and again, `__subclasses__` of what was found.
        """
        return introspection.loaded_classes()

    @function
    def is_modifiable_class(self, klass: type) -> bool:
        """Whether it can be redefined: it was made by a class statement, or by C code that lets it be changed.

        CPython: Py_TPFLAGS_HEAPTYPE without Py_TPFLAGS_IMMUTABLETYPE.
        """
        return introspection.changeable(klass)

    @function
    def get_class_signature(self, klass: type) -> tuple[str, str | None]:
        """Its signature, `Lshop/models/Order$Line;` for Order.Line of shop.models; the generic one, `Box[T]`, or None.

        CPython: `__module__` and `__qualname__`; the names of its type parameters.
        Differs: an array class has a name, and so such a signature too.
        """
        own = introspection.namespace(klass)
        variables = own.get("__type_params__") or own.get("__parameters__") or ()
        names = (
            [str(introspection.attribute(each, "__name__")) for each in variables] if type(variables) is tuple else []
        )
        return introspection.signature(klass), f"{introspection.qualname(klass)}[{', '.join(names)}]" if names else None

    @function
    def get_class_status(self, klass: type) -> int:
        """VERIFIED 1, PREPARED 2 and INITIALIZED 4 together, for an array class also ARRAY 16.

        CPython: Py_TPFLAGS_READY; a class is complete when it can be seen at all.
        Differs: for an array class a JVM says ARRAY alone.
        """
        ready = VERIFIED | PREPARED | INITIALIZED if introspection.flags(klass) & introspection.READY else 0
        return ready | ARRAY * is_array(klass)

    @function
    def get_source_file_name(self, klass: type) -> str:
        """The file that it was written in. AbsentInformation for a class of C code.

        CPython: co_filename of a method written in it, else the `__file__` of its module.
        Differs: as the code object has it, which mostly is the whole path.
        """
        found = source_file(klass)
        if found is None:
            raise AbsentInformation(f"{klass!r} was not written in a file of Python")
        return found

    @function
    def get_class_modifiers(self, klass: type) -> int:
        """The JVM's access flags: PUBLIC or PRIVATE 2, FINAL 0x10, INTERFACE 0x200, ABSTRACT 0x400, ENUM 0x4000.

        CPython: private is what begins with an underscore, final what cannot be derived from or is marked
        `typing.final`, abstract what has abstract methods, an enumeration what derives from enum.Enum.
        """
        bits = introspection.flags(klass)
        enumeration = getattr(sys.modules.get("enum"), "Enum", None)
        final = not bits & introspection.BASE or introspection.namespace(klass).get("__final__") is True
        return (
            (PRIVATE if introspection.qualname(klass).rpartition(".")[2].startswith("_") else PUBLIC)
            | FINAL * final
            | INTERFACE * is_interface(klass)
            | IS_ABSTRACT * bool(bits & introspection.ABSTRACT)
            | ENUM * (enumeration is not None and introspection.derives(klass, enumeration))
        )

    @function
    def get_class_methods(self, klass: type) -> list[Method]:
        """Its own methods, without those of its bases, in the order of their definition.

        CPython: the functions in its `__dict__`, also behind static and class methods, properties and decorators; of
        a class of C code, its descriptors.
        """
        return [introspection.method(each) for _, each in introspection.methods(prepared(klass))]

    @function
    def get_class_fields(self, klass: type) -> list[str]:
        """Its own fields, without those of its bases, in the order of their declaration.

        CPython: what is annotated in it, all else in its `__dict__` that is not a method, what its methods assign to
        attributes of self.
        Differs: an attribute that other code sets on an object is not a field of its class.
        """
        return field_names(prepared(klass))

    @function
    def get_implemented_interfaces(self, klass: type) -> list[type]:
        """Those of its direct bases that are interfaces.

        CPython: `__bases__`.
        """
        return [base for base in introspection.bases(prepared(klass)) if is_interface(base)]

    @function
    def is_interface(self, klass: type) -> bool:
        """Whether it is a protocol, or an abstract class that makes no objects ready and has only such bases.

        CPython: `_is_protocol`; Py_TPFLAGS_IS_ABSTRACT, no `__init__`, no `__new__`.
        """
        return is_interface(klass)

    @function
    def is_array_class(self, klass: type) -> bool:
        """Whether its objects are sequences with elements of their own: list, tuple, bytes, bytearray, array.array,
        ctypes arrays, and what derives from these.

        CPython: its bases.
        Differs: such a class has methods, may have fields, and, except those of ctypes, elements of any type.
        """
        return is_array(klass)

    @function
    def get_object_hash_code(self, object: object) -> int:
        """A number that stays the object's own while it lives.

        CPython: object.__hash__, which is made of its address, without asking the object's class.
        """
        return hash_of(object) & 0x7FFF_FFFF

    @function
    def get_class_version_numbers(self, klass: type) -> tuple[int, int]:
        """Minor and major version of its class file. AbsentInformation for a class of C code.

        CPython: 0, and the number of this interpreter's bytecode as a .pyc has it: 3571 for 3.13.
        """
        if not introspection.changeable(klass):
            raise AbsentInformation(f"{klass!r} is of C code, and has no class file")
        return 0, bytecode_version()

    @function
    def get_constant_pool(self, klass: type) -> ConstantPool:
        """The constants and names of its methods. AbsentInformation when none of them is written in Python.

        CPython: co_consts and co_names of each method, in the order of get_class_methods, marshalled.
        Differs: a code object has a pool of its own, and refers to nothing in another's.
        """
        pools = [
            (each.__code__.co_consts, each.__code__.co_names)
            for _, each in introspection.methods(klass)
            if isinstance(each, FunctionType)
        ]
        if not pools:
            raise AbsentInformation(f"{klass!r} has no method written in Python")
        try:
            written = marshal.dumps(tuple(pools))
        except ValueError:
            raise AbsentInformation(f"{klass!r}: a method has constants that no class file can have") from None
        return ConstantPool(sum(len(part) for pool in pools for part in pool), written)

    @function
    def get_object_size(self, object: object) -> int:
        """Bytes of the object itself, without what it refers to.

        CPython: as sys.getsizeof, but a `__sizeof__` written in Python is passed over.
        """
        return size_of(object)


hash_of: Callable[[object], int] = object.__hash__


def prepared(klass: type) -> type:
    if not introspection.flags(klass) & introspection.READY:
        raise ClassNotPrepared(f"{klass!r} is not ready yet")
    return klass


def is_interface(klass: type) -> bool:
    own = introspection.namespace(klass)
    if own.get("_is_protocol") is True:
        return True
    return (
        bool(introspection.flags(klass) & introspection.ABSTRACT)
        and not {"__init__", "__new__"} & own.keys()
        and all(is_plain(base) or is_interface(base) for base in introspection.bases(klass))
    )


def is_plain(klass: type) -> bool:
    return klass is object or (introspection.module_name(klass), introspection.qualname(klass)) in (
        ("abc", "ABC"),
        ("typing", "Generic"),
        ("typing", "Protocol"),
    )


def is_array(klass: type) -> bool:
    return issubclass(klass, array_classes())


def array_classes() -> tuple[Any, ...]:
    """Those whose modules are imported."""
    modules = [(sys.modules.get(module), name) for module, name in LATER_ARRAYS]
    return *ARRAYS, *(getattr(module, name) for module, name in modules if module is not None)


def array_length(thing: object) -> int:
    """How many elements it has; -1 for what is of no array class. A derived class's own `__len__` is not asked."""
    for base in array_classes():
        if issubclass(type(thing), base):
            return int(base.__len__(thing))
    return -1


def source_file(klass: type) -> str | None:
    """The file of Python that it was written in; None when there is none."""
    if not introspection.changeable(klass):
        return None
    within = introspection.qualname(klass)
    for _, each in introspection.methods(klass):
        if isinstance(each, FunctionType) and each.__code__.co_qualname.rpartition(".")[0] == within:
            return each.__code__.co_filename
    module = introspection.module_of(klass)
    name = None if module is None else introspection.attribute(module, "__file__")
    return name if isinstance(name, str) and name.endswith(".py") else None


def bytecode_version() -> int:
    from importlib.util import MAGIC_NUMBER

    return int.from_bytes(MAGIC_NUMBER[:2], "little")


def size_of(thing: object) -> int:
    """As sys.getsizeof has it, without calling code of the program: a `__sizeof__` in Python is passed over."""
    first = True
    for klass in introspection.mro(type(thing)):
        found = introspection.namespace(klass).get("__sizeof__")
        if isinstance(found, MethodDescriptorType):
            return sys.getsizeof(thing) if first else int(found(thing)) + header_size(type(thing))
        first = first and found is None
    return 0


class _Plain:
    pass


GC_HEADER = sys.getsizeof([]) - [].__sizeof__()
DICT_HEADER = sys.getsizeof(_Plain()) - _Plain().__sizeof__() - GC_HEADER  # of objects whose `__dict__` is made later


def header_size(klass: type) -> int:
    """Bytes in front of an object of this class, as sys.getsizeof counts them."""
    bits = introspection.flags(klass)
    return GC_HEADER * bool(bits & introspection.COLLECTED) + DICT_HEADER * bool(bits & introspection.MANAGED)
