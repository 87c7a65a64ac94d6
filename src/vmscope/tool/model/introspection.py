"""What classes, functions and code objects are made of, seen without running any code of the program.

So no attribute is looked up as the program would: a metaclass, a property or `__getattr__` could be the program's.
"""

from __future__ import annotations

import sys
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeGuard, TypeVar

    NativeMethod = BuiltinFunctionType | MethodDescriptorType | WrapperDescriptorType | ClassMethodDescriptorType
    Method = CodeType | NativeMethod
    T = TypeVar("T")

NATIVE = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
C_ATTRIBUTES = (MemberDescriptorType, GetSetDescriptorType)  # how a C struct's members and `__slots__` are reached
FUNCTION_FLAGS = 0x3  # CO_OPTIMIZED, CO_NEWLOCALS: of a function's code, and not of a class's or module's body
VARARGS, VARKEYWORDS = 0x4, 0x8

# Py_TPFLAGS_*
MANAGED = 1 << 3 | 1 << 4  # weak references, `__dict__`
IMMUTABLE = 1 << 8
HEAP = 1 << 9
BASE = 1 << 10
READY = 1 << 12
COLLECTED = 1 << 14
ABSTRACT = 1 << 20

_TYPE = type.__dict__
_WRAPPED = ("__wrapped__", "__func__", "func", "fget", "fset", "fdel")  # where wrappers keep what they wrap
_NESTING = 64  # how many objects are looked through to find the functions behind one attribute


def is_a(value: object, kind: type[T]) -> TypeGuard[T]:
    """As isinstance, which asks the object itself for its `__class__` where its type does not settle it."""
    return issubclass(type(value), kind)


def is_one_of(value: object, kinds: tuple[type, ...]) -> bool:
    return issubclass(type(value), kinds)


def namespace(klass: type) -> MappingProxyType[str, Any]:
    """Its own `__dict__`."""
    found: MappingProxyType[str, Any] = _TYPE["__dict__"].__get__(klass)
    return found


def flags(klass: type) -> int:
    """Py_TPFLAGS_* of it."""
    return int(_TYPE["__flags__"].__get__(klass))


def bases(klass: type) -> tuple[type, ...]:
    found: tuple[type, ...] = _TYPE["__bases__"].__get__(klass)
    return found


def mro(klass: type) -> tuple[type, ...]:
    found: tuple[type, ...] = _TYPE["__mro__"].__get__(klass) or ()
    return found


def derives(klass: type, base: type) -> bool:
    """As issubclass, which asks the classes of both. So does `in`, as it compares."""
    return type.__subclasscheck__(base, klass)


def qualname(klass: type) -> str:
    return str(_TYPE["__qualname__"].__get__(klass))


def module_name(klass: type) -> str:
    """ "" when the program has put something else there than a name."""
    try:
        name = _TYPE["__module__"].__get__(klass)
    except AttributeError:
        return ""
    return name if isinstance(name, str) else ""


def signature(klass: type) -> str:
    """As the JVM would write it: `Lshop/models/Order$Line;` for Order.Line of the module shop.models."""
    package = module_name(klass).replace(".", "/")
    return f"L{package}{'/' * bool(package)}{qualname(klass).replace('.', '$')};"


def attribute(thing: object, name: str) -> Any:
    """What stands under this name in the object itself, or in its C struct; None for nothing."""
    for klass in mro(type(thing)):
        found = namespace(klass).get(name)
        if is_one_of(found, C_ATTRIBUTES):
            return member(found, thing)
    return (own_dict(thing) or {}).get(name)


def member(descriptor: Any, thing: object) -> Any:
    """What one of C_ATTRIBUTES gives; None when there is no value."""
    try:
        return descriptor.__get__(thing, type(thing))
    except (AttributeError, TypeError, ValueError):
        return None


def own_dict(thing: object) -> dict[str, Any] | None:
    """Its `__dict__`, which is made if it was not there yet; None for what has none."""
    if is_a(thing, type):
        return dict(namespace(thing))
    for klass in mro(type(thing)):
        found = namespace(klass).get("__dict__")
        if is_one_of(found, C_ATTRIBUTES):
            own = member(found, thing)
            return own if type(own) is dict else None
    return None


def module_of(klass: type) -> ModuleType | None:
    """The imported module of its `__module__`."""
    found = sys.modules.get(module_name(klass))
    return found if is_a(found, ModuleType) else None


def changeable(klass: type) -> bool:
    """Whether its attributes can be set: it was made by a class statement, or by C code that allows it."""
    return flags(klass) & (HEAP | IMMUTABLE) == HEAP


def loaded_classes() -> list[type]:
    """Every class there is, `object` first, each after one of its bases."""
    found: dict[int, type] = {id(object): object}
    order: list[type] = [object]
    derived: type
    for klass in order:
        for derived in type.__subclasses__(klass):
            if id(derived) not in found:
                found[id(derived)] = derived
                order.append(derived)
    return order


# -- methods --------------------------------------------------------------------------------------


def functions(value: object) -> Iterator[FunctionType]:
    """The functions behind an attribute of a class, the outermost first: through static and class methods, properties,
    and whatever decorators have put around them."""
    todo, seen = [value], set[int]()
    while todo and len(seen) < _NESTING:
        each = todo.pop(0)
        if id(each) in seen or each is None:
            continue
        seen.add(id(each))
        if is_a(each, FunctionType):
            yield each
            todo.append(attribute(each, "__wrapped__"))
            todo.extend(filled for cell in each.__closure__ or () if is_wrapper(filled := contents(cell)))
        elif is_wrapper(each):
            todo.extend(attribute(each, name) for name in _WRAPPED)


def is_wrapper(value: object) -> bool:
    """Whether it may have functions behind it. Classes and modules have too many."""
    return not is_one_of(value, (type, ModuleType, str, int, tuple, list, dict, CodeType, *NATIVE))


def contents(cell: object) -> object:
    return attribute(cell, "cell_contents")


def evaluates_annotations(code: CodeType) -> bool:
    """Whether it is of the function that the compiler makes for annotations (3.14), which is not in the source."""
    return code.co_name == "__annotate__" and code.co_posonlyargcount == 1


def methods(klass: type) -> Iterator[tuple[str, FunctionType | NativeMethod]]:
    """Its own methods in the order of their definition, under their attributes' names. A property's are up to three.

    Of a method that is decorated, the one written in the class; what decorates it stands only for those that are not.
    """
    within = qualname(klass)
    for name, value in list(namespace(klass).items()):
        if is_one_of(value, NATIVE):
            yield name, value
            continue
        found = [each for each in functions(value) if not evaluates_annotations(each.__code__)]
        own = [each for each in found if each.__code__.co_qualname.rpartition(".")[0] == within]
        for each in own or [each for each in found if each in unwrapped(value)]:
            yield name, each


def unwrapped(value: object) -> tuple[object, ...]:
    """The functions that an attribute calls: without looking through decorators."""
    if is_a(value, property):
        return attribute(value, "fget"), attribute(value, "fset"), attribute(value, "fdel")
    if is_one_of(value, (staticmethod, classmethod)):
        return (attribute(value, "__func__"),)
    return (value,)


def method(function: FunctionType | NativeMethod) -> Method:
    """Its id: the code object of what is written in Python."""
    return function.__code__ if isinstance(function, FunctionType) else function


def nested(code: CodeType) -> Iterator[CodeType]:
    """It and all code objects within it, an outer one before those within."""
    todo = [code]
    while todo:
        each = todo.pop()
        yield each
        todo.extend(reversed([within for within in each.co_consts if isinstance(within, CodeType)]))


def declaring_class(of: Method) -> type | None:
    """The class that the method, or for a nested function the method around it, was written in; None for a function of
    a module and for the body of a class or a module."""
    if not isinstance(of, CodeType):
        owner: object = of.__self__ if isinstance(of, BuiltinFunctionType) else of.__objclass__
        if isinstance(owner, ModuleType) or owner is None:
            return None
        return owner if isinstance(owner, type) else type(owner)
    if "." not in of.co_qualname:
        return None
    candidates = [klass for klass in loaded_classes() if of.co_qualname.startswith(qualname(klass) + ".")]
    for klass in sorted(candidates, key=lambda klass: -len(qualname(klass))):
        for _, function in methods(klass):
            if isinstance(function, FunctionType) and any(each is of for each in nested(function.__code__)):
                return klass
    return None


def parameters(code: CodeType) -> list[str]:
    """The names of a call's parameters in the order of their slots: `*` and `**` ones last, without the stars."""
    count = (
        code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)
    )
    return list(code.co_varnames[:count])


def slots(code: CodeType) -> tuple[str, ...]:
    """The names of a frame's variables by slot: locals, then cells that are not parameters, then free variables."""
    cells = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
    return code.co_varnames + cells + code.co_freevars
