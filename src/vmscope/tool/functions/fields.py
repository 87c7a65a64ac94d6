"""The functions about fields. A field is an attribute's name; which class it is a field of follows from the class."""

from __future__ import annotations

import builtins
import dis
from types import FunctionType, GenericAlias, UnionType

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import introspection
from vmscope.tool.spec.errors import InvalidFieldID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLIC, PRIVATE, PROTECTED, STATIC, FINAL, SYNTHETIC = 0x1, 0x2, 0x4, 0x8, 0x10, 0x1000
OBJECT = introspection.signature(object)

# What the compiler and the making of a class put into its `__dict__`, and is not in the source.
MADE = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __annotate__ __annotate_func__ "
    "__annotations_cache__ __conditional_annotations__ __static_attributes__ __firstlineno__ __type_params__ "
    "__parameters__ __orig_bases__ __abstractmethods__ _abc_impl __static_annotations__ __classdictcell__".split()
)


class Fields(Base):
    @function
    def get_field_name(self, klass: type, field: str) -> tuple[str, str, str | None]:
        """Its name, its type's signature, and, where it is more than the name of a class, its annotation as written.

        CPython: `__annotations__`, which are not evaluated; `Lbuiltins/object;` where they name no class.
        """
        annotation = annotated(declaring(klass, field)).get(field)
        return field, *described(annotation, klass)

    @function
    def get_field_declaring_class(self, klass: type, field: str) -> type:
        """The class, this or one of its bases, that declares it.

        CPython: the first one of the method resolution order.
        """
        return declaring(klass, field)

    @function
    def get_field_modifiers(self, klass: type, field: str) -> int:
        """The JVM's access flags: PUBLIC, or PRIVATE 2 for `__name`, or PROTECTED 4 for `_name`; STATIC 8; FINAL 0x10;
        SYNTHETIC 0x1000.

        CPython: static is what the class's own `__dict__` has a value for, final what is annotated so.
        """
        found = declaring(klass, field)
        own = introspection.namespace(found)
        static = field in own and not introspection.is_one_of(own[field], introspection.C_ATTRIBUTES)
        written = described(annotated(found).get(field), found)[1] or ""
        if field.startswith(mangled("__", found)):
            access = PRIVATE
        else:
            access = PROTECTED if field.startswith("_") and not is_dunder(field) else PUBLIC
        final = written.removeprefix("typing.").startswith("Final")
        return access | STATIC * static | FINAL * final | SYNTHETIC * is_synthetic(field)

    @function
    def is_field_synthetic(self, klass: type, field: str) -> bool:
        """Whether it was generated.

        CPython: names like `__module__` and `__weakref__`, which every class gets.
        """
        declaring(klass, field)
        return is_synthetic(field)


def is_synthetic(field: str) -> bool:
    return field in MADE


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def mangled(name: str, klass: type) -> str:
    """`_Order__lines` for `__lines` in a class Order."""
    owner = introspection.qualname(klass).rpartition(".")[2].lstrip("_")
    return f"_{owner}{name}" if owner else name


def declaring(klass: type, field: str) -> type:
    """The first class of the method resolution order that has this field. InvalidFieldID."""
    for base in introspection.mro(klass):
        if field in field_names(base):
            return base
    raise InvalidFieldID(f"{klass!r} has no field {field!r}")


def field_names(klass: type) -> list[str]:
    """Its own: annotated, in its `__dict__`, or assigned to self by its methods."""
    methods = {name for name, _ in introspection.methods(klass)}
    names = dict.fromkeys(each for each in annotated(klass))
    names |= dict.fromkeys(name for name in list(introspection.namespace(klass)) if name not in methods)
    names |= dict.fromkeys(name for name in assigned(klass) if name not in methods)
    return list(names)


def annotated(klass: type) -> Mapping[str, object]:
    """Its own, as they stand there: evaluated, or as text."""
    own = introspection.namespace(klass)
    found = own.get("__annotations__")
    if type(found) is dict:
        return found
    for evaluate in introspection.functions(
        own.get("__annotate_func__")
    ):  # since 3.14; typing wraps those of its classes
        if is_compiled(evaluate, klass):
            return unevaluated(evaluate, klass)
    found = own.get("__annotations_cache__")
    return found if type(found) is dict else {}


def is_compiled(evaluate: FunctionType, klass: type) -> bool:
    """Whether the compiler made this function for the class's annotations, and not the program."""
    code = evaluate.__code__
    return (
        introspection.evaluates_annotations(code)
        and code.co_qualname == f"{introspection.qualname(klass)}.__annotate__"
    )


def unevaluated(evaluate: FunctionType, klass: type) -> Mapping[str, object]:
    """The texts of annotations that were not evaluated. All names in them stand for texts, so nothing of the program
    runs; but annotationlib calls the function itself first, to see what it can, and that would evaluate them."""
    import annotationlib  # type: ignore[import-not-found]  # since 3.14

    class Uncalled:
        def __getattr__(self, name: str) -> object:
            return getattr(evaluate, name)

        def __call__(self, format: int) -> dict[str, object]:
            if format == annotationlib.Format.STRING:
                raise NotImplementedError
            return {}

    try:
        texts: dict[str, object] = annotationlib.call_annotate_function(
            Uncalled(), annotationlib.Format.STRING, owner=klass
        )
    except Exception:  # an annotation may be what texts cannot be calculated with
        texts = {}
    return texts


def assigned(klass: type) -> list[str]:
    """The attributes of self that its methods assign to."""
    known = introspection.namespace(klass).get("__static_attributes__")  # since 3.13
    names = sorted(known) if type(known) is tuple else []
    if known is None:
        for _, each in introspection.methods(klass):
            if isinstance(each, FunctionType) and each.__code__.co_argcount:
                names += stored(each)
    return [name if not name.startswith("__") or is_dunder(name) else mangled(name, klass) for name in names]


def stored(method: FunctionType) -> list[str]:
    """The attributes that it sets on its first parameter."""
    names, before = [], ""
    for instruction in dis.get_instructions(method.__code__):
        if instruction.opname == "STORE_ATTR" and before == method.__code__.co_varnames[0]:
            names.append(str(instruction.argval))
        if instruction.opname != "EXTENDED_ARG":
            before = str(instruction.argval) if instruction.opname in ("LOAD_FAST", "LOAD_DEREF") else ""
    return names


def described(annotation: object, klass: type) -> tuple[str, str | None]:
    """The signature of the class that an annotation names, and its text where that says more."""
    if introspection.is_a(annotation, type):
        return introspection.signature(annotation), None
    if introspection.is_a(annotation, str):
        for module in (introspection.module_of(klass), builtins):
            found = None if module is None else introspection.attribute(module, annotation)
            if introspection.is_a(found, type):
                return introspection.signature(found), None
        return OBJECT, annotation
    if (
        introspection.is_one_of(annotation, (GenericAlias, UnionType))
        or introspection.module_name(type(annotation)) == "typing"
    ):
        return OBJECT, repr(annotation)
    return OBJECT, None
