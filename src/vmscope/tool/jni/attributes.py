"""JNI's functions about fields: attributes, which are read and set as the program would, with what runs then."""

from __future__ import annotations

from types import ModuleType

from vmscope.tool.functions.fields import declaring
from vmscope.tool.jni import names, text
from vmscope.tool.jni.base import Group
from vmscope.tool.jni.conversions import to_java, to_python
from vmscope.tool.jni.java_classes import Field
from vmscope.tool.jni.jni_errors import MisuseError
from vmscope.tool.model import introspection
from vmscope.tool.spec.errors import InvalidFieldID

TYPE_CHECKING = False
if TYPE_CHECKING:
    Klass = type | ModuleType
    Named = tuple[Klass, str]  # the class that declares it, and its name


class Attributes(Group):
    def get_field_id(self, klass: Klass, name: int, signature: int) -> int:
        """Of what a class declares: annotated, given a value in it, assigned to self by its methods."""
        return self._field_id(klass, name, signature, static=False)

    def get_static_field_id(self, klass: Klass, name: int, signature: int) -> int:
        """Of what a class or a module has a value for."""
        return self._field_id(klass, name, signature, static=True)

    def _field_id(self, klass: Klass, name: int, signature: int, *, static: bool) -> int:
        """The type is not compared: a field of Python's may hold anything. AttributeError, as NoSuchFieldError."""
        shown, kind = (text.decode(self.jni.text(each)) for each in (name, signature))
        owner = owner_of(klass, shown, static=static) if names.is_type(kind) else None
        if owner is None:
            which = "static field" if static else "field"
            raise AttributeError(f"{names.class_name(klass)} has no {which} {shown} of the type {kind}")
        return self.bridge.field_id(owner, shown)

    def get_field(self, letter: str, thing: object, field: Named) -> int | float:
        return to_java(self.jni, letter, getattr(belonging(thing, field), field[1]))

    def set_field(self, letter: str, thing: object, field: Named, value: int | float) -> None:
        setattr(belonging(thing, field), field[1], self._value(letter, value))

    def get_static_field(self, letter: str, klass: Klass, field: Named) -> int | float:
        return to_java(self.jni, letter, getattr(inheriting(klass, field), field[1]))

    def set_static_field(self, letter: str, klass: Klass, field: Named, value: int | float) -> None:
        """Of the class that declares it, though a derived one was given."""
        inheriting(klass, field)
        setattr(field[0], field[1], self._value(letter, value))

    def _value(self, letter: str, value: int | float) -> object:
        return value if letter == "L" else to_python(self.jni, letter, value)

    def from_reflected_field(self, field: object) -> int:
        if not isinstance(field, Field):
            raise MisuseError(TypeError, f"a {type(field).__name__} is not a field")
        return self.bridge.field_id(field.klass, field.name)

    def to_reflected_field(self, klass: Klass, field: Named, static: int) -> Field:
        return Field(*field)


def owner_of(klass: Klass, name: str, *, static: bool) -> Klass | None:
    """The class, or the module, that declares it."""
    if not introspection.is_a(klass, type):
        return klass if static and name in (introspection.own_dict(klass) or {}) else None
    if static:
        return next((base for base in introspection.mro(klass) if name in introspection.namespace(base)), None)
    try:
        return declaring(klass, name)
    except InvalidFieldID:
        return None


def belonging(thing: object, field: Named) -> object:
    """An object, which has to be of the class of the field."""
    klass = field[0]
    if not introspection.is_a(klass, type) or not issubclass(type(thing), klass):
        raise MisuseError(TypeError, f"a {type(thing).__name__} has no field of {names.class_name(klass)}")
    return thing


def inheriting(klass: Klass, field: Named) -> Klass:
    """A class, which has to be the field's or derived from it."""
    if field[0] is not klass and not (introspection.is_a(klass, type) and field[0] in introspection.mro(klass)):
        raise MisuseError(TypeError, f"{names.class_name(klass)} has no field of {names.class_name(field[0])}")
    return klass
