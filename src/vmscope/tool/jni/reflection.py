"""JNI's functions about classes as such."""

from __future__ import annotations

from struct import Struct
from types import ModuleType

from vmscope.tool.functions.classes import is_interface
from vmscope.tool.jni import names, text
from vmscope.tool.jni.base import Group
from vmscope.tool.model import introspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    Klass = type | ModuleType

ERROR = -1
NAME_AND_SIGNATURE = Struct("PP")  # what a JNINativeMethod begins with


class Reflection(Group):
    def find_class(self, name: int) -> Klass:
        return names.find_class(text.decode(self.jni.text(name)))

    def define_class(self, name: int, loader: object, data: int, size: int) -> None:
        """ValueError, as ClassFormatError: a class of Python is made by running a class statement."""
        shown = text.decode(self.jni.text(name)) if name else "a class"
        raise ValueError(f"DefineClass: {shown} cannot be made from a class file: CPython runs no bytecode of a JVM")

    def get_superclass(self, klass: Klass) -> type | None:
        """The first base; None for an interface, `object` and a module."""
        if not introspection.is_a(klass, type) or is_interface(klass):
            return None
        return next(iter(introspection.bases(klass)), None)

    def is_assignable_from(self, klass: Klass, to: Klass) -> bool:
        if introspection.is_a(klass, type) and introspection.is_a(to, type):
            return issubclass(klass, to)
        return klass is to

    def is_instance_of(self, thing: object, klass: Klass) -> bool:
        """Null is of every class."""
        return thing is None or (introspection.is_a(klass, type) and isinstance(thing, klass))

    def get_module(self, klass: Klass) -> ModuleType | None:
        return introspection.module_of(klass) if introspection.is_a(klass, type) else klass  # type: ignore[return-value]

    def register_natives(self, klass: Klass, methods: int, count: int) -> int:
        """AttributeError, as NoSuchMethodError: no method of Python is declared native."""
        if count <= 0:
            return 0
        name, signature = NAME_AND_SIGNATURE.unpack(self.jni.read(methods, NAME_AND_SIGNATURE.size))
        shown = f"{names.class_name(klass)}.{text.decode(self.jni.text(name))}{text.decode(self.jni.text(signature))}"
        self.jni.throw(AttributeError(f"RegisterNatives: {shown}: no method of CPython is declared native"))
        return ERROR

    def unregister_natives(self, klass: Klass) -> int:
        return 0
