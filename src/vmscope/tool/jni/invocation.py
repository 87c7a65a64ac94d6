"""JNI's functions that find and call methods, and make objects."""

from __future__ import annotations

from functools import partial
from types import CodeType, FunctionType, ModuleType

from vmscope.tool.jni import conversions, java, names, targets, text
from vmscope.tool.jni.base import Group
from vmscope.tool.jni.jni_errors import MisuseError
from vmscope.tool.jni.targets import CONSTRUCTOR, CallTarget
from vmscope.tool.model import introspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.model.introspection import Method

    Klass = type | ModuleType


class Invocation(Group):
    def __init__(self, bridge: NativeAgentBridge) -> None:
        super().__init__(bridge)
        # by the class's id(), which stays its own, as the target keeps it: a class may have a hash of its own, or none
        self._ids: dict[tuple[int, str, str, bool, str | None], tuple[int, CallTarget]] = {}
        self._targets: dict[int, CallTarget] = {}
        # what a library means by an id, where that is another target than the first one's: by id and the library's file
        self._asked: dict[tuple[int, str | None], CallTarget] = {}
        self._varying: set[int] = set()  # of which there are such

    def get_method_id(self, klass: Klass, name: int, signature: int) -> int:
        return self._method_id(klass, name, signature, static=False)

    def get_static_method_id(self, klass: Klass, name: int, signature: int) -> int:
        return self._method_id(klass, name, signature, static=True)

    def _method_id(self, klass: Klass, name: int, signature: int, *, static: bool) -> int:
        """The same for each class that inherits the method. AttributeError, as NoSuchMethodError."""
        called, written = (text.decode(self.jni.text(each)) for each in (name, signature))
        found = targets.find(klass, called, written, static=static)
        if found is None:
            which = "static method" if static else "method"
            raise AttributeError(f"{names.class_name(klass)} has no {which} {called}{written}")
        target, method = found
        library = self.jni.caller()
        key = id(target.owner), called, written, static, library
        known = self._ids.get(key)
        if known is None:
            known = self._ids.setdefault(key, (self._number(method, target, library), target))
        return known[0]

    def _number(self, method: Method, target: CallTarget, library: str | None) -> int:
        """The method's one id, which events and frames have too, with what this library means by it. Another one only
        for what the same library cannot mean by it as well: calls with arguments of other types than it asked for
        first."""
        if target.is_of(method):
            number = self.jni.method_id(method)
            first = self._targets.setdefault(number, target)
            if self._asked.setdefault((number, library), target).is_like(target):
                if not first.is_like(target):
                    self._varying.add(number)
                    self.jni.vary_method(number)
                return number
        number = self.jni.new_method_id(method)
        self._targets[number] = target  # before another thread can be given it
        return number

    def target(self, method: int) -> CallTarget:
        """What an id means: to the library that calls, if it asked for it, else as it was asked for first. One that
        came with an event is what its code is the code of."""
        found = self._asked.get((method, self.jni.caller())) if method in self._varying else None
        found = found or self._targets.get(method)
        if found is None:
            try:
                of = self.jni.method(method)
            except LookupError:
                raise MisuseError(AttributeError, f"{method:#x} is not a method id") from None
            found = targets.of_code(of)  # type: ignore[arg-type]
            if found is None:
                raise MisuseError(AttributeError, f"{of!r} can only be called by an id of GetMethodID's")
            if len(found.letters) > names.MOST_PARAMETERS:
                raise MisuseError(TypeError, f"{found.name} has more than {names.MOST_PARAMETERS} parameters")
            self._targets[method] = found
        return found

    def types(self, method: int) -> str | None:
        """Of its parameters; None for what cannot be called, as the call itself will tell."""
        try:
            return self.target(method).letters
        except MisuseError:
            return None

    # -- calls ------------------------------------------------------------------------------------

    def call_method(self, letter: str, thing: object, method: int, values: int) -> int | float:
        target = self._of_object(thing, method)
        arguments = conversions.read(self.jni, target.letters, values)
        if target.name == CONSTRUCTOR:
            return self._initialise(letter, type(thing), thing, target, arguments)
        function: Callable[..., object]
        if target.java is not None and not overridden(type(thing), target):
            result = target.java(thing, *arguments)
        elif introspection.is_a(targets.looked_up(type(thing), target.name)[1], property):
            result = self._property(type(thing), thing, target, arguments)
        else:
            function = getattr(thing, target.name)
            result = target.call(function, arguments)
        return conversions.to_java(self.jni, letter, result)

    def call_nonvirtual_method(self, letter: str, thing: object, klass: Klass, method: int, values: int) -> int | float:
        """The method of this class, though the object's own may have another."""
        target = self._of_object(thing, method)
        if not introspection.is_a(klass, type) or not issubclass(type(thing), klass):
            raise MisuseError(TypeError, f"a {type(thing).__name__} is not of class {names.class_name(klass)}")
        arguments = conversions.read(self.jni, target.letters, values)
        if target.name == CONSTRUCTOR:
            return self._initialise(letter, klass, thing, target, arguments)
        if target.java is not None:
            result = target.java(thing, *arguments)
        else:
            value: Any = targets.looked_up(klass, target.name)[1]
            if introspection.is_a(value, property):
                result = self._property(klass, thing, target, arguments)
            else:
                bind: Any = getattr(type(value), "__get__", None)
                result = target.call(value if bind is None else bind(value, thing, type(thing)), arguments)
        return conversions.to_java(self.jni, letter, result)

    def call_static_method(self, letter: str, klass: Klass, method: int, values: int) -> int | float:
        target = self.target(method)
        if not target.static:
            raise MisuseError(TypeError, f"{target.name} is not a static method")
        owner = target.owner
        if klass is not owner and not (introspection.is_a(klass, type) and owner in introspection.mro(klass)):
            raise MisuseError(TypeError, f"{names.class_name(klass)} has no method of {names.class_name(owner)}")
        arguments = conversions.read(self.jni, target.letters, values)
        function = target.java or getattr(klass, target.name)
        return conversions.to_java(self.jni, letter, target.call(function, arguments))

    def _of_object(self, thing: object, method: int) -> CallTarget:
        target = self.target(method)
        if target.static:
            raise MisuseError(TypeError, f"{target.name} is a static method")
        owner = target.owner
        is_class = owner is type and introspection.is_a(thing, ModuleType)  # a jclass as well
        if not is_class and not (introspection.is_a(owner, type) and issubclass(type(thing), owner)):
            raise MisuseError(TypeError, f"a {type(thing).__name__} has no method of {names.class_name(owner)}")
        return target

    def _property(self, klass: type, thing: object, target: CallTarget, arguments: list[object]) -> object:
        function = targets.outermost(targets.looked_up(klass, target.name)[1], len(arguments))
        if not isinstance(function, FunctionType):
            raise AttributeError(f"{target.name} of {names.class_name(klass)} cannot be called so")
        return function(thing, *arguments)

    # -- objects ----------------------------------------------------------------------------------

    def new_object(self, klass: Klass, method: int, values: int) -> object:
        target = self.target(method)
        if target.name != CONSTRUCTOR or not introspection.is_a(klass, type):
            raise MisuseError(TypeError, f"{target.name} makes no object of {names.class_name(klass)}")
        if target.owner not in introspection.mro(klass):
            raise MisuseError(TypeError, f"{names.class_name(klass)} has no constructor of another class")
        arguments = conversions.read(self.jni, target.letters, values)
        return target.call(target.java or klass, arguments)

    def alloc_object(self, klass: Klass) -> object:
        """Without `__init__`. TypeError, as InstantiationException, for what makes no objects."""
        if not introspection.is_a(klass, type):
            raise TypeError(f"{names.class_name(klass)} is a module")
        made = java.of_class(java.CONSTRUCTORS, klass)
        new: Any = klass.__new__
        return made() if made is not None else new(klass)

    def _initialise(
        self, letter: str, klass: type, thing: object, target: CallTarget, arguments: list[object]
    ) -> int | float:
        """Of an object that AllocObject has made."""
        if target.java is None:
            target.call(partial(klass.__init__, thing), arguments)  # type: ignore[misc]
        return conversions.to_java(self.jni, letter, None)

    # -- reflection -------------------------------------------------------------------------------

    def from_reflected_method(self, function: object) -> int:
        """Of a function, a method, or a code object."""
        found = next(introspection.functions(function), None)
        if introspection.is_a(function, CodeType):
            return self.jni.method_id(function)
        if found is None:
            raise MisuseError(TypeError, f"a {type(function).__name__} is not a method")
        return self.jni.method_id(found.__code__)

    def to_reflected_method(self, klass: Klass, method: int, static: int) -> object:
        """The function that stands in the class."""
        target = self.target(method)
        if target.java is not None or target.name == CONSTRUCTOR:
            return target.java or target.owner
        return getattr(klass, target.name)


def overridden(klass: type, target: CallTarget) -> bool:
    """Whether a class has a method of its own instead of Java's."""
    base, value = targets.looked_up(klass, target.name)
    return base is not None and base is not target.owner and targets.within(base, value) is not None
