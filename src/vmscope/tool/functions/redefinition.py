"""The functions that change classes: redefine and retransform.

A method's new code is assigned to its functions; frames that run go on with the old one. A class file is marshalled
code, in which the body of the class is found by its name; the body is not run, so nothing but methods changes.
"""

from __future__ import annotations

import dis
import weakref
from collections.abc import Sequence
from types import CodeType, FunctionType

from vmscope import native
from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import class_files, introspection
from vmscope.tool.spec.errors import (
    FailsVerification,
    IllegalArgument,
    InvalidClass,
    NamesDontMatch,
    RedefinitionMethodAdded,
    RedefinitionMethodDeleted,
    RedefinitionMethodModifiersChanged,
    RedefinitionSchemaChanged,
    ToolError,
    UnmodifiableClass,
    shown,
)
from vmscope.tool.spec.structs import ClassDefinition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

Change = tuple[FunctionType, CodeType]
Holders = dict[int, list[FunctionType]]

KINDS = 0x20 | 0x80 | 0x100 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR
STARS = introspection.VARARGS | introspection.VARKEYWORDS

_obsolete: dict[int, weakref.ref[CodeType]] = {}  # by id; code objects compare by their contents
_defined: dict[int, tuple[weakref.ref[type], bytes]] = {}  # by id: the class file last given, before any hook


class Redefinition(Base):
    @function
    def redefine_classes(self, definitions: Sequence[ClassDefinition]) -> None:
        """Gives methods of these classes new code: all, or, when anything is wrong with one, none.

        For each, in this order: IllegalArgument for what is not a ClassDefinition; InvalidClass, NullPointer,
        UnmodifiableClass, InvalidClassFormat, UnsupportedVersion. Then, for each: NamesDontMatch;
        RedefinitionMethodAdded and RedefinitionMethodDeleted, also for other parameters; RedefinitionSchemaChanged for
        other fields; RedefinitionMethodModifiersChanged for a function that becomes a generator or a coroutine, or is
        none any more; FailsVerification for other free variables.

        CPython: `__code__` of the functions, also of those that decorators have hidden; ClassFileLoadHook is sent
        before. Frames that run keep their code, which is then obsolete; its breakpoints go over to the new code, where
        that has an instruction at the same offset, else they are gone.
        Differs: the body of the class is not run, so that defaults, decorators and the values of fields stay as they
        are; lambdas, and functions within functions that exist already, keep their code.
        """
        given = []
        for definition in definitions:
            if not introspection.is_a(definition, tuple) or len(definition) != len(ClassDefinition._fields):
                raise IllegalArgument(f"{shown(definition)} is not a ClassDefinition")
            klass, data = definition
            check(klass)
            given.append((klass, class_files.written(class_files.read(data))))
        self._install([(klass, data, class_files.hooked(self.host, klass, data, again=False)) for klass, data in given])

    @function
    def retransform_classes(self, classes: Sequence[type]) -> None:
        """Sends ClassFileLoadHook for these classes to all environments that can retransform, and gives their methods
        the code that comes out: all, or, when anything is wrong with one, none. Errors as for redefine_classes.

        CPython: it begins with what redefine_classes was given last, else with what the class's loader makes of its
        module. UnmodifiableClass when there is no such loader, or when the file has changed since it was imported.
        Differs: the class file is that of the whole module.
        """
        given = []
        holders = functions_by_code()
        for klass in classes:
            check(klass)
            given.append((klass, first_definition(klass, holders)))
        self._install([(klass, data, class_files.hooked(self.host, klass, data, again=True)) for klass, data in given])

    def _install(self, definitions: list[tuple[type, bytes, bytes]]) -> None:
        """Class, its class file before the hooks, and after them."""
        with self.host.lock:
            changes: list[Change] = []
            holders = functions_by_code()
            for klass, _, data in definitions:
                changes += planned(klass, class_files.read(data), holders)
            successors = {id(function.__code__): code for function, code in changes}
            replaced = assigned(changes)
            for klass, data, _ in definitions:
                _defined[id(klass)] = weakref.ref(klass, forgetting(_defined, id(klass))), data
            for code in replaced:
                self.host.points.move(code, successors[id(code)])
                _obsolete[id(code)] = weakref.ref(code, forgetting(_obsolete, id(code)))
        self.host.changed()


def is_obsolete(code: CodeType) -> bool:
    """Whether this very code object was replaced."""
    found = _obsolete.get(id(code))
    return found is not None and found() is code


def forgetting(known: dict[int, T], key: int) -> Callable[[object], None]:
    """What a weak reference calls that stands in `known`."""

    def forget(_: object) -> None:
        known.pop(key, None)

    return forget


def check(klass: object) -> None:
    if not introspection.is_a(klass, type):
        raise InvalidClass(f"{shown(klass)} is not a class")
    if not introspection.changeable(klass):
        raise UnmodifiableClass(f"{klass!r} cannot be changed")


def first_definition(klass: type, holders: Holders) -> bytes:
    """What was defined last, before any hook. UnmodifiableClass when it is not to be had."""
    known = _defined.get(id(klass))
    if known is not None and known[0]() is klass:
        return known[1]
    code = class_files.original(klass)
    if code is None:
        raise UnmodifiableClass(f"the code of {klass!r} is not to be had again from what loaded it")
    try:
        same = all(function.__code__ == new for function, new in planned(klass, code, holders))
    except ToolError:
        same = False
    if not same:
        raise UnmodifiableClass(f"the file of {klass!r} is no longer what was loaded")
    return class_files.written(code)


def planned(klass: type, code: CodeType, holders: Holders) -> list[Change]:
    """What has to be assigned; the error of what cannot be."""
    body = class_files.body(klass, code)
    old, new = by_name(own_functions(klass, holders)), defined(body)
    before = original_body(klass)
    known = old.keys() | (set() if before is None else defined(before).keys())
    if added := new.keys() - known:
        raise RedefinitionMethodAdded(f"{klass!r} has no method {min(added)}, which the class file has")
    if deleted := old.keys() - new.keys():
        raise RedefinitionMethodDeleted(f"the class file has no method {min(deleted)}, which {klass!r} has")
    fields = stored(body) - new.keys()
    had = set(introspection.namespace(klass)) if before is None else stored(before)
    if fields - had or (before is not None and had - fields - known):
        raise RedefinitionSchemaChanged(f"the class file has other fields than {klass!r}")
    changes = []
    for name, versions in old.items():
        if len(versions) > len(new[name]):
            raise RedefinitionMethodDeleted(f"the class file defines {name} less often than {klass!r}")
        for functions, wanted in zip(versions, new[name][-len(versions) :], strict=True):
            for each in functions:
                compare(each, wanted)
                changes.append((each, wanted))
    return changes


def own_functions(klass: type, holders: Holders) -> list[FunctionType]:
    """The functions of the methods written in it; with all copies of them, except a class made within a function, of
    which there may be others with the same code."""
    name = introspection.qualname(klass)
    own = [
        each
        for _, each in introspection.methods(klass)
        if isinstance(each, FunctionType)
        and each.__code__.co_qualname.rpartition(".")[0] == name
        and not each.__code__.co_name.startswith("<")
    ]
    if "<locals>" in name:
        return own
    return own + [copy for each in own for copy in holders.get(id(each.__code__), ()) if copy is not each]


def functions_by_code() -> Holders:
    """Every function there is, by the id of its code."""
    holders: Holders = {}
    for each in native.tracked_objects(FunctionType):
        assert isinstance(each, FunctionType)
        holders.setdefault(id(each.__code__), []).append(each)
    return holders


def by_name(functions: list[FunctionType]) -> dict[str, list[list[FunctionType]]]:
    """By name, in the order of the lines where their code begins; those with the same code together."""
    by_code: dict[int, list[FunctionType]] = {}
    for each in {id(each): each for each in functions}.values():
        by_code.setdefault(id(each.__code__), []).append(each)
    names: dict[str, list[list[FunctionType]]] = {}
    for same in sorted(by_code.values(), key=lambda same: same[0].__code__.co_firstlineno):
        names.setdefault(same[0].__code__.co_name, []).append(same)
    return names


def defined(body: CodeType) -> dict[str, list[CodeType]]:
    names: dict[str, list[CodeType]] = {}
    for code in class_files.functions(body):
        names.setdefault(code.co_name, []).append(code)
    return names


def original_body(klass: type) -> CodeType | None:
    code = class_files.original(klass)
    try:
        return None if code is None else class_files.body(klass, code)
    except NamesDontMatch:
        return None


def stored(body: CodeType) -> set[str]:
    """The names that a class's body assigns to, except those that every class has."""
    names = {str(each.argval) for each in dis.get_instructions(body) if each.opname == "STORE_NAME"}
    return {name for name in names if not (name.startswith("__") and name.endswith("__"))}


def compare(function: FunctionType, new: CodeType) -> None:
    """RedefinitionMethodAdded, RedefinitionMethodModifiersChanged, FailsVerification."""
    old = function.__code__
    if parameters(old) != parameters(new):
        raise RedefinitionMethodAdded(f"{old.co_qualname} has other parameters in the class file: it is another method")
    if old.co_flags & KINDS != new.co_flags & KINDS:
        raise RedefinitionMethodModifiersChanged(f"{old.co_qualname} is of another kind in the class file")
    if old.co_freevars != new.co_freevars:
        raise FailsVerification(
            f"{old.co_qualname} has the free variables {new.co_freevars} in the class file, and not {old.co_freevars}"
        )


def parameters(code: CodeType) -> tuple[object, ...]:
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & STARS
    return *counts, introspection.parameters(code)


def assigned(changes: list[Change]) -> list[CodeType]:
    """Assigns, except what is the same; the code objects that no function has any more. UnmodifiableClass, with
    nothing changed, when an audit hook forbids it."""
    done: list[Change] = []
    try:
        for function, code in changes:
            if function.__code__ != code:
                old, function.__code__ = function.__code__, code
                done.append((function, old))
    except Exception as error:
        for function, code in reversed(done):
            function.__code__ = code
        raise UnmodifiableClass(f"{changes[0][0].__qualname__} and others: {error}") from error
    replaced = {id(code): code for _, code in done}
    in_use = functions_by_code()
    return [code for key, code in replaced.items() if key not in in_use]
