"""What a method's id means to JNI: which attribute of a class, called with arguments of which types."""

from __future__ import annotations

import sys
from threading import Thread
from types import BuiltinFunctionType, ClassMethodDescriptorType, CodeType, FunctionType, ModuleType

from vmscope.tool.functions.methods import DICT, OBJECT, TUPLE
from vmscope.tool.jni import java, names
from vmscope.tool.model import introspection
from vmscope.tool.model.introspection import VARARGS, VARKEYWORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.model.introspection import Method

    Klass = type | ModuleType

CONSTRUCTOR = "<init>"


class CallTarget:
    """`name` of `owner`; `letters` are its parameters' types. `java`: what is not Python's, but the class of Java's."""

    __slots__ = ("canonical", "java", "letters", "name", "owner", "static")

    def __init__(self, owner: Klass, name: str, letters: str, *, static: bool) -> None:
        self.owner = owner
        self.name = name
        self.letters = letters
        self.static = static
        self.canonical: CodeType | None = None  # called with all its parameters, in their slots' order
        self.java: Callable[..., object] | None = None

    def is_of(self, method: Method) -> bool:
        """Whether it is the method itself: a derived class's constructor may be its base's `__init__`."""
        if self.java is not None:
            return False
        if not introspection.is_a(self.owner, type):
            return True
        name = "__init__" if self.name == CONSTRUCTOR else self.name
        return name in introspection.namespace(self.owner) and method is not object.__init__

    def all_of(self, code: CodeType) -> CallTarget:
        """Called with all parameters of its code, which matters where they are not handed over by position alone."""
        if code.co_kwonlyargcount or code.co_flags & (VARARGS | VARKEYWORDS):
            self.canonical = code
        return self

    def is_like(self, other: CallTarget) -> bool:
        """Whether a call of one is a call of the other."""
        return (
            self.owner is other.owner
            and self.canonical is other.canonical
            and (self.name, self.letters, self.static) == (other.name, other.letters, other.static)
        )

    def call(self, function: Callable[..., object], arguments: list[object]) -> object:
        if self.canonical is None:
            return function(*arguments)
        plain, keywords = arguments_of(self.canonical, arguments)
        return function(*plain, **keywords)


def signature(code: CodeType) -> str:
    """As get_method_name makes it."""
    last = [TUPLE] * bool(code.co_flags & VARARGS) + [DICT] * bool(code.co_flags & VARKEYWORDS)
    return f"({OBJECT * (code.co_argcount + code.co_kwonlyargcount)}{''.join(last)}){OBJECT}"


def arguments_of(code: CodeType, given: list[object]) -> tuple[list[object], dict[str, object]]:
    """The last ones of its parameters, in the order of their slots, as a call has them."""
    named = introspection.parameters(code)
    skipped = len(named) - len(given)
    rest = list(given)
    keywords: dict[str, object] = {}
    if code.co_flags & VARKEYWORDS:
        keywords |= rest.pop() or {}  # type: ignore[call-overload]
    more: Any = (rest.pop() or ()) if code.co_flags & VARARGS else ()
    plain = code.co_argcount - skipped
    for place, value in enumerate(rest[plain:], code.co_argcount):
        keywords[named[place]] = value
    return [*rest[:plain], *more], keywords


def find(klass: Klass, name: str, written: str, *, static: bool) -> tuple[CallTarget, Method] | None:
    """A method of this name that can be called so, and what it is to the tool interface; None when there is none."""
    parsed = names.parse(written)
    if parsed is None:
        return None
    target = CallTarget(klass, name, parsed[0], static=static)
    found = constructor(target, written) if name == CONSTRUCTOR else attribute(target, written)
    if found is not None and not static and name == "__init__" and isinstance(found[1], CodeType):
        target.name = CONSTRUCTOR  # one method, by either name
    return found or of_java(target)


def constructor(target: CallTarget, written: str) -> tuple[CallTarget, Method] | None:
    """An object is made by a call of its class."""
    klass = target.owner
    if target.static or not introspection.is_a(klass, type):
        return None
    made = java.of_class(java.CONSTRUCTORS, klass)
    if made is not None:
        target.java = made
        return target, method_of(made)
    for base in introspection.mro(klass):
        own = introspection.namespace(base)
        function = own.get("__init__") if base is not object else None
        if introspection.is_a(function, FunctionType):
            if written == signature(function.__code__):  # with `self`, as the tool interface reports it
                target.letters = target.letters[1:]
                return target.all_of(function.__code__), function.__code__
            return (target, function.__code__) if takes(function, len(target.letters), skipped=1) else None
        if function is not None:
            return target, method_of(function)
    return target, method_of(object.__init__)


def attribute(target: CallTarget, written: str) -> tuple[CallTarget, Method] | None:
    """What the class, or one of its bases, or the module has under this name."""
    base, value = looked_up(target.owner, target.name)
    if base is None or is_static(base, value) != target.static:
        return None
    method = within(base, value)
    if method is None:
        return None
    if isinstance(method, CodeType) and written == signature(method):
        skipped = skipped_of(base, value)
        target.letters = "L" * (len(target.letters) - skipped)
        target.owner = base
        return target.all_of(method), method
    if base is Thread and target.name in java.METHODS[base]:
        return None
    function = outermost(value, len(target.letters))
    if isinstance(function, FunctionType) and not takes(function, len(target.letters), skipped_of(base, value)):
        return None
    target.owner = base
    return target, method


def of_java(target: CallTarget) -> tuple[CallTarget, Method] | None:
    """What a class of Java's has, on what stands for it."""
    klass = target.owner
    table = java.STATIC if target.static else java.METHODS
    for base in introspection.mro(klass) if introspection.is_a(klass, type) else ():
        function = (java.of_class(table, base) or {}).get(target.name)
        if function is not None:
            if isinstance(function, FunctionType) and not takes(function, len(target.letters), not target.static):
                return None
            target.owner = base
            target.java = function
            return target, method_of(function)
    return None


def of_code(code: Method) -> CallTarget | None:
    """For an id that came with an event: the method or function that this is the code of."""
    if not isinstance(code, CodeType):
        return None
    count = len(introspection.parameters(code))
    klass = introspection.declaring_class(code)
    if klass is not None:
        for name, each in introspection.methods(klass):
            if introspection.method(each) is code:
                value = introspection.namespace(klass)[name]
                target = CallTarget(
                    klass, name, "L" * (count - skipped_of(klass, value)), static=is_static(klass, value)
                )
                if name == "__init__":
                    target.name = CONSTRUCTOR
                return target.all_of(code)
        return None
    for module in list(sys.modules.values()):
        if introspection.is_a(module, ModuleType):
            for function in introspection.functions((introspection.own_dict(module) or {}).get(code.co_name)):
                if function.__code__ is code:
                    target = CallTarget(module, code.co_name, "L" * count, static=True)
                    return target.all_of(code)
    return None


def looked_up(klass: Klass, name: str) -> tuple[Klass | None, object]:
    """The class or module that has this attribute, and what stands there."""
    for base in introspection.mro(klass) if introspection.is_a(klass, type) else (klass,):
        own = introspection.namespace(base) if introspection.is_a(base, type) else introspection.own_dict(base) or {}
        if name in own:
            return base, own[name]
    return None, None


def is_static(base: Klass, value: object) -> bool:
    return not introspection.is_a(base, type) or introspection.is_one_of(
        value, (staticmethod, classmethod, BuiltinFunctionType, ClassMethodDescriptorType)
    )


def skipped_of(base: Klass, value: object) -> int:
    """How many parameters JNI does not hand over: the object's own or the class."""
    return int(
        introspection.is_a(base, type) and not introspection.is_one_of(value, (staticmethod, BuiltinFunctionType))
    )


def within(base: Klass, value: object) -> Method | None:
    """What an attribute is to the tool interface; None for what is not a method."""
    if introspection.is_one_of(value, introspection.NATIVE):
        return value  # type: ignore[return-value]
    if introspection.is_one_of(value, (type, ModuleType)):
        return None
    found = list(introspection.functions(value))
    within = introspection.qualname(base) if introspection.is_a(base, type) else ""
    own = [each for each in found if each.__code__.co_qualname.rpartition(".")[0] == within]
    return next((each.__code__ for each in own or found), None)


def outermost(value: object, count: int) -> object:
    """The function that is called: a property's, by how many arguments there are, that of a static or class method."""
    if introspection.is_a(value, property):
        return introspection.attribute(value, "fset" if count else "fget")
    if introspection.is_one_of(value, (staticmethod, classmethod)):
        return introspection.attribute(value, "__func__")
    return value


def takes(function: FunctionType, count: int, skipped: int) -> bool:
    """Whether it can be called with this many arguments by position, after those that are skipped."""
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    keywords = introspection.parameters(code)[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return (
        count + skipped >= required
        and (count + skipped <= code.co_argcount or bool(code.co_flags & VARARGS))
        and set(keywords) <= set(function.__kwdefaults__ or {})
    )


def method_of(function: Callable[..., object]) -> Method:
    return function.__code__ if isinstance(function, FunctionType) else function  # type: ignore[return-value]
