"""The functions about methods. A method is a code object, or, where it is native, the object that calls the C code."""

from __future__ import annotations

from opcode import opmap
from types import BuiltinFunctionType, ClassMethodDescriptorType, CodeType

from vmscope.tool.functions import redefinition
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import introspection
from vmscope.tool.model.introspection import VARARGS, VARKEYWORDS
from vmscope.tool.spec.errors import AbsentInformation, NativeMethod
from vmscope.tool.spec.structs import LineNumberEntry, LocalVariableEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.model.introspection import Method

# The JVM's access flags of a method
PUBLIC, PRIVATE, PROTECTED, STATIC, FINAL = 0x1, 0x2, 0x4, 0x8, 0x10
IS_VARARGS, NATIVE, IS_ABSTRACT, SYNTHETIC = 0x80, 0x100, 0x400, 0x1000

OF_CLASS = (staticmethod, classmethod, ClassMethodDescriptorType, BuiltinFunctionType)  # they get no object
INSTRUCTION = 2  # bytes
HANDLER = opmap["PUSH_EXC_INFO"]
OBJECT, TUPLE, DICT = (introspection.signature(kind) for kind in (object, tuple, dict))


class Methods(Base):
    @function
    def get_method_name(self, method: Method) -> tuple[str, str | None, str | None]:
        """Its name, its signature, and its parameters as Python would write them.

        CPython: co_name; an `object` for each parameter, a `tuple` for `*`, a `dict` for `**`; for a native method
        there is no signature.
        """
        if not isinstance(method, CodeType):
            return method.__name__, None, None
        last = [TUPLE] * bool(method.co_flags & VARARGS) + [DICT] * bool(method.co_flags & VARKEYWORDS)
        plain = method.co_argcount + method.co_kwonlyargcount
        return method.co_name, f"({OBJECT * plain}{''.join(last)}){OBJECT}", as_written(method)

    @function
    def get_method_declaring_class(self, method: Method) -> type | None:
        """The class that it was written in; for a function within a method, that method's.

        CPython: of the classes whose name begins co_qualname, the one with a method that is it or has it in co_consts.
        Differs: None for a function of a module, and for the body of a module or a class.
        """
        return introspection.declaring_class(method)

    @function
    def get_method_modifiers(self, method: Method) -> int:
        """The JVM's access flags: PUBLIC, or PRIVATE 2 for `__name`, or PROTECTED 4 for `_name`; STATIC 8; FINAL 0x10;
        VARARGS 0x80; NATIVE 0x100; ABSTRACT 0x400; SYNTHETIC 0x1000.

        CPython: co_flags, and how it stands in its class: staticmethod, `typing.final`, `abc.abstractmethod`. A class
        method and a function of a module are STATIC too.
        """
        code = isinstance(method, CodeType)
        name = method.co_name if isinstance(method, CodeType) else method.__name__
        return (
            access(name)
            | modifiers_in_class(method)
            | IS_VARARGS * (isinstance(method, CodeType) and bool(method.co_flags & VARARGS))
            | NATIVE * (not code)
            | SYNTHETIC * is_synthetic(method)
        )

    @function
    def get_max_locals(self, method: Method) -> int:
        """How many slots a frame of it has for variables: locals, cells and free variables.

        CPython: co_varnames, co_cellvars, co_freevars.
        """
        return len(introspection.slots(python(method)))

    @function
    def get_arguments_size(self, method: Method) -> int:
        """How many slots its parameters take, with those for `*` and `**`.

        CPython: co_argcount, co_kwonlyargcount, co_flags.
        """
        return len(introspection.parameters(python(method)))

    @function
    def get_line_number_table(self, method: Method) -> list[LineNumberEntry]:
        """A list of `LineNumberEntry` in the order of their locations: at each one a line begins.

        AbsentInformation when no line is recorded. A line may begin more than once.

        CPython: co_lines, without what belongs to no line. What begins a handler, where an exception is caught, belongs
        to none, and counts for the line of its `except`.
        """
        code = python(method)
        table: list[LineNumberEntry] = []
        entered = None  # the handler whose line comes next
        for start, end, line in code.co_lines():
            if line is None:
                at = code.co_code[start:end:INSTRUCTION].rfind(HANDLER)
                entered = None if at < 0 else start + at * INSTRUCTION
                continue
            if not table or table[-1].line_number != line:
                table.append(LineNumberEntry(start if entered is None else entered, line))
            entered = None
        if not table:
            raise AbsentInformation(f"{method!r} has no line numbers")
        return table

    @function
    def get_method_location(self, method: Method) -> tuple[int, int]:
        """Its first and its last location.

        CPython: the offsets of the first and the last instruction of co_code.
        """
        return 0, len(python(method).co_code) - INSTRUCTION

    @function
    def get_local_variable_table(self, method: Method) -> list[LocalVariableEntry]:
        """Its variables by slot, with the part of the code where each may have a value.

        CPython: co_varnames, co_cellvars, co_freevars.
        Differs: CPython's variables are there, though perhaps without a value, from the first to the last instruction.
        """
        code = python(method)
        kinds = {}
        named = introspection.parameters(code)
        if code.co_flags & VARKEYWORDS:
            kinds[named.pop()] = DICT
        if code.co_flags & VARARGS:
            kinds[named.pop()] = TUPLE
        return [
            LocalVariableEntry(0, len(code.co_code), name, kinds.get(name, OBJECT), None, slot)
            for slot, name in enumerate(introspection.slots(code))
        ]

    @function
    def get_bytecodes(self, method: Method) -> bytes:
        """Its instructions.

        CPython: co_code: as compiled, without what the interpreter has specialised or instrumented.
        """
        return python(method).co_code

    @function
    def is_method_native(self, method: Method) -> bool:
        """Whether it is C code.

        CPython: whether it is not a code object.
        """
        return not isinstance(method, CodeType)

    @function
    def is_method_synthetic(self, method: Method) -> bool:
        """Whether the compiler made it up: lambdas, comprehensions, generator expressions, bodies of modules.

        CPython: a co_name in angle brackets.
        """
        return is_synthetic(method)

    @function
    def is_method_obsolete(self, method: Method) -> bool:
        """Whether its class has been redefined since, so that only calls that had begun still run it.

        CPython: code objects that were replaced are remembered while they live.
        """
        return isinstance(method, CodeType) and redefinition.is_obsolete(method)


def python(method: Method) -> CodeType:
    """NativeMethod for one that is not written in Python."""
    if not isinstance(method, CodeType):
        raise NativeMethod(f"{method!r} is C code")
    return method


def is_synthetic(method: Method) -> bool:
    return isinstance(method, CodeType) and method.co_name.startswith("<")


def access(name: str) -> int:
    if not name.startswith("_") or name.endswith("__"):
        return PUBLIC
    return PRIVATE if name.startswith("__") else PROTECTED


def modifiers_in_class(method: Method) -> int:
    """STATIC, FINAL and ABSTRACT."""
    klass = introspection.declaring_class(method)
    if klass is None:
        return STATIC
    for name, each in introspection.methods(klass):
        if introspection.method(each) is method:
            value = introspection.namespace(klass)[name]
            return (
                STATIC * introspection.is_one_of(value, OF_CLASS)
                | FINAL * (introspection.attribute(each, "__final__") is True)
                | IS_ABSTRACT * (introspection.attribute(each, "__isabstractmethod__") is True)
            )
    return STATIC  # a function within a method: it has no object of its own


def as_written(code: CodeType) -> str:
    """Its parameters, `(self, a, /, b, *rest, key, **more)`."""
    names = list(code.co_varnames)
    words = names[: code.co_argcount]
    if code.co_posonlyargcount:
        words.insert(code.co_posonlyargcount, "/")
    place = code.co_argcount + code.co_kwonlyargcount
    keywords = names[code.co_argcount : place]
    if code.co_flags & VARARGS:
        words.append("*" + names[place])
        place += 1
    elif keywords:
        words.append("*")
    words += keywords
    if code.co_flags & VARKEYWORDS:
        words.append("**" + names[place])
    return f"({', '.join(words)})"
