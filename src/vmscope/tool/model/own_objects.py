"""Which of the objects are vmscope's own, so that no walk reports them: the twin of native/heap/own_objects.c.

Its classes, modules, functions and their objects are, and the names of its modules. The twin does not look for what
else only these refer to, such as their lists and dictionaries.
"""

from __future__ import annotations

import sys
import weakref
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType

from vmscope.tool.model import introspection
from vmscope.tool.model.frames import is_own

PACKAGE = "vmscope"


class Ours:
    def __init__(self) -> None:
        modules = [each for each in list(sys.modules.values()) if is_ours(each)]
        self._names = {id(found) for each in modules if (found := introspection.own_dict(each)) is not None}

    def __contains__(self, thing: object) -> bool:
        return id(thing) in self._names or is_ours(thing)


def is_ours(thing: object) -> bool:
    """By itself."""
    kind = type(thing)
    if introspection.flags(kind) & introspection.HEAP and is_our_name(introspection.module_name(kind)):
        return True
    if kind is FunctionType and isinstance(thing, FunctionType):
        return is_own(thing.__code__) or is_our_name(thing.__module__)
    if kind is CodeType and isinstance(thing, CodeType):
        return is_own(thing)
    if introspection.is_a(thing, type):
        return bool(introspection.flags(thing) & introspection.HEAP) and is_our_name(introspection.module_name(thing))
    if introspection.is_a(thing, ModuleType):
        return is_our_name(introspection.attribute(thing, "__name__"))
    if kind is BuiltinFunctionType and isinstance(thing, BuiltinFunctionType):
        return is_our_name(thing.__module__)
    if kind is MethodType and isinstance(thing, MethodType):
        return is_ours(thing.__func__)
    if kind is FrameType and isinstance(thing, FrameType):
        return is_own(thing.f_code)
    if kind is weakref.ref and isinstance(thing, weakref.ref):
        referent = thing()
        return referent is not None and type(referent) is not weakref.ref and is_ours(referent)
    return False


def is_our_name(module: object) -> bool:
    return type(module) is str and (module == PACKAGE or module.startswith(PACKAGE + "."))
