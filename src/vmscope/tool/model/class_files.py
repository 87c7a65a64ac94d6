"""Class files: here, marshalled code. How they are read, whose they are, and how agents' hooks change them."""

from __future__ import annotations

import marshal
from importlib.util import MAGIC_NUMBER
from types import CodeType

from vmscope.tool.functions.modules import class_loader_of
from vmscope.tool.model import introspection, threads
from vmscope.tool.spec.errors import InvalidClassFormat, NamesDontMatch, NullPointer, UnsupportedVersion
from vmscope.tool.spec.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.tool.host import Host

PYC_MARK = b"\r\n"  # ends the magic number of each version
PYC_HEADER = 16


def written(code: CodeType) -> bytes:
    """InvalidClassFormat for a code object with constants that no file can have."""
    try:
        return marshal.dumps(code)
    except ValueError as error:
        raise InvalidClassFormat(f"{code!r} cannot be marshalled: {error}") from None


def read(data: object) -> CodeType:
    """The code in a class file, which may have a .pyc's header. NullPointer, InvalidClassFormat, UnsupportedVersion."""
    if data is None:
        raise NullPointer("None as class_bytes")
    if isinstance(data, CodeType):
        return data
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidClassFormat(f"class_bytes is a {type(data).__name__}, and neither bytes nor a code object")
    content = bytes(data)
    if content[2:4] == PYC_MARK:
        if content[:4] != MAGIC_NUMBER:
            raise UnsupportedVersion("the class file was compiled by another version of Python")
        content = content[PYC_HEADER:]
    try:
        code = marshal.loads(content)
    except (ValueError, EOFError, TypeError) as error:
        raise InvalidClassFormat(f"the class file cannot be read: {error}") from None
    if not isinstance(code, CodeType):
        raise InvalidClassFormat(f"the class file holds a {type(code).__name__}, and no code")
    return code


def original(klass: type) -> CodeType | None:
    """What its loader makes of its module now; None where there is none to ask."""
    get_code = getattr(class_loader_of(klass), "get_code", None)
    if get_code is None:
        return None
    try:
        code = get_code(introspection.module_name(klass))
    except (ImportError, OSError, SyntaxError):  # the file is gone, or no longer what it was
        return None
    return code if isinstance(code, CodeType) else None


def body(klass: type, code: CodeType) -> CodeType:
    """The class's body in this code: the last one under its name. NamesDontMatch."""
    name = introspection.qualname(klass)
    found = [
        each
        for each in introspection.nested(code)
        if each.co_qualname == name and not each.co_flags & introspection.FUNCTION_FLAGS
    ]
    if not found:
        raise NamesDontMatch(f"the class file has no class {name}")
    return found[-1]


def functions(within: CodeType) -> Iterator[CodeType]:
    """The functions that a class's body defines, in the order of their definition; lambdas and the like are not."""
    for each in within.co_consts:
        if not isinstance(each, CodeType):
            continue
        if each.co_name.startswith("<generic"):  # the scope of type parameters, around what has them
            yield from functions(each)
        elif each.co_flags & introspection.FUNCTION_FLAGS == introspection.FUNCTION_FLAGS and not (
            each.co_name.startswith("<") or introspection.evaluates_annotations(each)
        ):
            yield each


def hooked(host: Host, klass: type, data: bytes, *, again: bool) -> bytes:
    """What the hooks make of it: those of environments that cannot retransform first, and only with a new definition;
    then those of the others. Each sees what the one before made. A callback gives the new bytes back, or None."""
    return through_hooks(host, klass, class_loader_of(klass), introspection.signature(klass)[1:-1], data, again=again)


def through_hooks(host: Host, klass: type | None, loader: object, name: str, data: bytes, *, again: bool) -> bytes:
    """As `hooked`, of a class or, while a module is loaded, of the module of this name."""
    thread = threads.current()
    for capable in (True,) if again else (False, True):
        for environment in host.environments:
            if bool(environment.retransformable) is capable and environment.wants(Event.CLASS_FILE_LOAD_HOOK, thread):
                made = environment.deliver(Event.CLASS_FILE_LOAD_HOOK, (klass, loader, name, None, data))
                if isinstance(made, bytes | bytearray | memoryview):
                    data = bytes(made)
                elif made is not None:
                    wrong = TypeError(f"a class file load hook gives bytes or None, not a {type(made).__name__}")
                    environment.failed(Event.CLASS_FILE_LOAD_HOOK, wrong)
    return data
