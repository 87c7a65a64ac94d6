"""What C callers know as classes: those that Python has, and its modules, whose functions are methods there too.

A module `shop.models` is a class `Lshop/models;` that has no objects: public, final, initialised once its
body has run. Its methods are the functions that were written in it, those behind decorators too, and, of a module of C
code, its functions; its fields are the other names that stand in it. It derives from nothing, is neither an interface
nor an array, and cannot be redefined: a function can, with the class that it is a method of. Modules are loaded
classes, so a debugger finds the function that it wants to stop in.

Every method has such a class: the one that Python's interface gives, else the module whose file the code is in, else
`builtins`, which has the functions that make code out of text.
"""

from __future__ import annotations

import builtins
import marshal
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from vmscope.tool.functions import classes, modules
from vmscope.tool.functions.fields import OBJECT, PROTECTED, is_dunder
from vmscope.tool.model import introspection
from vmscope.tool.spec.errors import AbsentInformation, InvalidFieldID, NotAvailable, UnmodifiableClass
from vmscope.tool.spec.structs import ConstantPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vmscope.tool.environment import Environment
    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.model.introspection import Method
    from vmscope.tool.spec.structs import ClassDefinition

    Class = type | ModuleType

PUBLIC, PRIVATE, STATIC, FINAL, SYNTHETIC = 0x1, 0x2, 0x8, 0x10, 0x1000
VERIFIED, PREPARED, INITIALIZED = 1, 2, 4
FROZEN = "<frozen "  # how the file name of code begins that is in the executable
NATIVE_SIGNATURE = f"({introspection.signature(tuple)}{introspection.signature(dict)}){OBJECT}"

# -- modules --------------------------------------------------------------------------------------


def name_of(module: ModuleType) -> str:
    name = introspection.attribute(module, "__name__")
    return name if isinstance(name, str) else ""


def signature(module: ModuleType) -> str:
    """`Lshop/models;` for shop.models."""
    return f"L{name_of(module).replace('.', '/')};"


def file_of(module: ModuleType) -> str | None:
    """What the code that was written in it has as its file name; None for C code."""
    spec = introspection.attribute(module, "__spec__")
    if spec is not None and introspection.attribute(spec, "origin") == "frozen":
        return f"{FROZEN}{introspection.attribute(spec, 'name')}>"
    file = introspection.attribute(module, "__file__")
    if isinstance(file, str):
        return file if file.endswith(".py") else None
    return "<string>" if name_of(module) == "__main__" else None


def methods(module: ModuleType) -> Iterator[tuple[str, Method]]:
    """Its functions, in the order of their names' definition; each once."""
    file = file_of(module)
    met: set[int] = set()
    for name, value in list((introspection.own_dict(module) or {}).items()):
        for each in behind(module, file, value):
            if id(each) not in met:
                met.add(id(each))
                yield name, each


def behind(module: ModuleType, file: str | None, value: object) -> Iterator[Method]:
    if isinstance(value, BuiltinFunctionType):
        if value.__self__ is module:
            yield value
    elif type(value) is FunctionType or introspection.is_wrapper(value):
        for each in introspection.functions(value):
            if each.__code__.co_filename == file and "." not in each.__code__.co_qualname:
                yield each.__code__


def field_names(module: ModuleType) -> list[str]:
    """What stands in it and is neither a method nor a class nor another module."""
    own = {name for name, _ in methods(module)}
    return [
        name
        for name, value in list((introspection.own_dict(module) or {}).items())
        if name not in own and not introspection.is_one_of(value, (type, ModuleType))
    ]


def get_class_signature(environment: Environment, klass: ModuleType) -> tuple[str, None]:
    return signature(klass), None


def get_class_status(environment: Environment, klass: ModuleType) -> int:
    """Not INITIALIZED while its body runs."""
    spec = introspection.attribute(klass, "__spec__")
    running = spec is not None and introspection.attribute(spec, "_initializing") is True
    return VERIFIED | PREPARED | INITIALIZED * (not running)


def get_source_file_name(environment: Environment, klass: ModuleType) -> str:
    file = introspection.attribute(klass, "__file__")
    if not isinstance(file, str) or not file.endswith(".py"):
        raise AbsentInformation(f"{klass!r} was not written in a file of Python")
    return file


def get_class_modifiers(environment: Environment, klass: ModuleType) -> int:
    private = name_of(klass).rpartition(".")[2].startswith("_") and name_of(klass) != "__main__"
    return (PRIVATE if private else PUBLIC) | FINAL


def get_class_methods(environment: Environment, klass: ModuleType) -> list[Method]:
    return [each for _, each in methods(klass)]


def get_class_fields(environment: Environment, klass: ModuleType) -> list[str]:
    return field_names(klass)


def get_implemented_interfaces(environment: Environment, klass: ModuleType) -> list[type]:
    return []


def is_not(environment: Environment, klass: ModuleType) -> bool:
    """Neither an interface nor an array class nor modifiable."""
    return False


def get_class_loader(environment: Environment, klass: ModuleType) -> object:
    return modules.loader_of(klass)


def get_class_version_numbers(environment: Environment, klass: ModuleType) -> tuple[int, int]:
    if file_of(klass) is None:
        raise AbsentInformation(f"{klass!r} is of C code, and has no class file")
    return 0, classes.bytecode_version()


def get_constant_pool(environment: Environment, klass: ModuleType) -> ConstantPool:
    pools = [(each.co_consts, each.co_names) for _, each in methods(klass) if isinstance(each, CodeType)]
    if not pools:
        raise AbsentInformation(f"{klass!r} has no function written in Python")
    try:
        written = marshal.dumps(tuple(pools))
    except ValueError:
        raise AbsentInformation(f"{klass!r}: a function has constants that no class file can have") from None
    return ConstantPool(sum(len(part) for pool in pools for part in pool), written)


def get_source_debug_extension(environment: Environment, klass: ModuleType) -> None:
    raise NotAvailable("a code object has no room for a debug extension")


def declared(klass: ModuleType, field: str) -> str:
    if field not in (introspection.own_dict(klass) or {}):
        raise InvalidFieldID(f"{klass!r} has no field {field!r}")
    return field


def get_field_name(environment: Environment, klass: ModuleType, field: str) -> tuple[str, str, None]:
    return declared(klass, field), OBJECT, None


def get_field_declaring_class(environment: Environment, klass: ModuleType, field: str) -> ModuleType:
    declared(klass, field)
    return klass


def get_field_modifiers(environment: Environment, klass: ModuleType, field: str) -> int:
    declared(klass, field)
    private = field.startswith("_") and not is_dunder(field)
    return (PROTECTED if private else PUBLIC) | STATIC | SYNTHETIC * is_dunder(field)


def is_field_synthetic(environment: Environment, klass: ModuleType, field: str) -> bool:
    return is_dunder(declared(klass, field))


def watch(environment: Environment, klass: ModuleType, field: str) -> None:
    raise UnmodifiableClass(f"{klass!r} is a module: its names cannot be watched")


def no_objects(environment: Environment, klass: ModuleType, *rest: object) -> None:
    """Nothing is an object of it, so that no callback is called."""


def no_objects_of(environment: Environment, heap_filter: int, klass: ModuleType, *rest: object) -> None:
    """As no_objects."""


# What is called where a module is given as a class.
OF_MODULE: dict[str, Callable[..., object]] = {
    "get_class_signature": get_class_signature,
    "get_class_status": get_class_status,
    "get_source_file_name": get_source_file_name,
    "get_class_modifiers": get_class_modifiers,
    "get_class_methods": get_class_methods,
    "get_class_fields": get_class_fields,
    "get_implemented_interfaces": get_implemented_interfaces,
    "is_interface": is_not,
    "is_array_class": is_not,
    "is_modifiable_class": is_not,
    "get_class_loader": get_class_loader,
    "get_class_version_numbers": get_class_version_numbers,
    "get_constant_pool": get_constant_pool,
    "get_source_debug_extension": get_source_debug_extension,
    "get_field_name": get_field_name,
    "get_field_declaring_class": get_field_declaring_class,
    "get_field_modifiers": get_field_modifiers,
    "is_field_synthetic": is_field_synthetic,
    "set_field_access_watch": watch,
    "clear_field_access_watch": watch,
    "set_field_modification_watch": watch,
    "clear_field_modification_watch": watch,
    "iterate_over_instances_of_class": no_objects,
    "iterate_through_heap": no_objects_of,
    "follow_references": no_objects_of,
}

# -- classes and modules together -----------------------------------------------------------------


def get_loaded_classes(bridge: NativeAgentBridge, environment: Environment) -> list[Class]:
    return [*environment.get_loaded_classes(), *modules.loaded_modules()]


def get_class_loader_classes(
    bridge: NativeAgentBridge, environment: Environment, initiating_loader: object
) -> list[Class]:
    own = [each for each in modules.loaded_modules() if modules.loader_of(each) is initiating_loader]
    return [*environment.get_class_loader_classes(initiating_loader), *own]


def get_method_declaring_class(bridge: NativeAgentBridge, environment: Environment, method: Method) -> Class:
    return introspection.declaring_class(method) or module_of(method)


def get_method_name(
    bridge: NativeAgentBridge, environment: Environment, method: Method
) -> tuple[str, str, str | None]:  # fmt: skip
    """A native method has a signature too: it takes whatever it is given."""
    name, written, generic = environment.get_method_name(method)
    return name, written or NATIVE_SIGNATURE, generic


def redefine_classes(
    bridge: NativeAgentBridge, environment: Environment, definitions: Sequence[ClassDefinition]
) -> None:
    refuse_modules([each.klass for each in definitions])
    environment.redefine_classes(definitions)


def retransform_classes(bridge: NativeAgentBridge, environment: Environment, classes: Sequence[type]) -> None:
    refuse_modules(classes)
    environment.retransform_classes(classes)


def refuse_modules(those: Sequence[object]) -> None:
    for each in those:
        if introspection.is_a(each, ModuleType):
            raise UnmodifiableClass(f"{each!r} is a module: it cannot be redefined")


def module_of(method: Method) -> ModuleType:
    """The module that a method of no class was written in."""
    if not isinstance(method, CodeType):
        owner = getattr(method, "__self__", None)
        named = sys.modules.get(str(introspection.attribute(method, "__module__")))
        return next((each for each in (owner, named) if introspection.is_a(each, ModuleType)), builtins)
    for module in modules.loaded_modules():
        if file_of(module) == method.co_filename:
            return module
    return builtins


OWN: dict[str, Callable[..., object]] = {
    "get_loaded_classes": get_loaded_classes,
    "get_class_loader_classes": get_class_loader_classes,
    "get_method_declaring_class": get_method_declaring_class,
    "get_method_name": get_method_name,
    "redefine_classes": redefine_classes,
    "retransform_classes": retransform_classes,
}
