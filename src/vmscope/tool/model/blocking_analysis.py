"""What a frame waits for and what it has, by its code alone: which of its variables and of its stack to look at.

Code at one instruction says where the lock of each `with` block around it stands, and, where it calls, by which names
it came to what it calls. Nothing of the program runs to find that out.
"""

from __future__ import annotations

import sys
from itertools import chain
from opcode import HAVE_ARGUMENT, opmap, stack_effect
from types import BuiltinMethodType, CellType, GetSetDescriptorType, MemberDescriptorType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

GLOBALS = -1  # in place of a slot: the frame's globals
BLOCKING = frozenset(
    ("acquire", "acquire_lock", "__enter__", "_acquire_restore", "get", "join")
)  # of what is written in C
FURTHEST = 24  # code units between a call and the name of what is called
MOST_SLOTS = 32
VERSION = sys.version_info[:2]


def codes(*names: str) -> frozenset[int]:
    return frozenset(opmap[name] for name in names if name in opmap)


EXTENDED = opmap["EXTENDED_ARG"]
CALLS = codes("CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL")  # which in 3.11 may call already
PREPARED = codes("PRECALL", "KW_NAMES")  # 3.11 and 3.12: parts of the call
NULLS = codes("PUSH_NULL")
WITH_NAMES = codes("CALL_KW")  # the names of the last arguments are on top of them
WITH_TUPLE = codes("CALL_FUNCTION_EX")
ENTERS = codes("BEFORE_WITH")
SPECIAL = codes("LOAD_SPECIAL")  # from 3.14 on: of __exit__, then of __enter__, which is called
BETWEEN = 4  # instructions, between what is entered and the second of them
HANDLERS = opmap["PUSH_EXC_INFO"], opmap["WITH_EXCEPT_START"]
LOCAL = codes("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF")
PAIRS = codes(
    "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"
)  # the second is on top
GLOBAL = codes("LOAD_GLOBAL")
NAMED = codes("LOAD_NAME")
ATTRIBUTE = codes("LOAD_ATTR", "LOAD_METHOD")
METHOD = codes("LOAD_METHOD")  # 3.11
SHIFTED = VERSION >= (3, 12)  # an attribute's number is the argument without its lowest bit

_missing = object()
_of_module: Any = vars(ModuleType)["__dict__"]


class ValueSource:
    """How code came to an object: a variable, or a global name, and the attributes on from there."""

    __slots__ = ("at", "attributes", "method", "slot")

    def __init__(self, slot: int, attributes: tuple[str, ...]) -> None:
        self.slot = slot
        self.method = False  # it is what is called, whose object is meant
        self.attributes = attributes  # the first is the global's name
        self.at = 0  # where the plan's slots have this one

    def find(self, kept: tuple[object, ...]) -> object:
        """None where it is no longer there, or cannot be known without running what the program has written."""
        thing = kept[self.at]
        names = self.attributes
        if self.slot == GLOBALS and thing is not None:
            thing, names = thing.get(names[0]), names[1:]  # type: ignore[attr-defined]
        elif type(thing) is CellType:
            try:
                thing = thing.cell_contents
            except ValueError:  # it is empty
                return None
        for name in names:
            thing = attribute(thing, name)
        if self.method:
            bound = type(thing) is BuiltinMethodType and thing.__name__ in BLOCKING
            thing = thing.__self__ if bound else None  # type: ignore[attr-defined]
        return thing


class Block:
    """A `with` block that is being run: where its exit stands, and what it was entered with."""

    __slots__ = ("at", "source")

    def __init__(self, at: int, source: ValueSource | None) -> None:
        self.at = at
        self.source = source


class FramePlan:
    """What to keep of a frame at one instruction, and what that is."""

    __slots__ = ("blocks", "own", "slots", "wait", "waits")

    waits: bool  # it is at what may wait for a lock

    def __init__(self, code: CodeType, offset: int, innermost: bool, own: bool) -> None:
        slots: list[int] = []
        text = code.co_code
        self.own = own  # the first argument is kept, as the first of the slots
        if own:
            slots.append(0)
        self.blocks: list[Block] = []  # the outermost first
        for slot, begin in reversed([*around(code, text, offset)]):
            if len(slots) < MOST_SLOTS - 2:
                slots.append(slot)
                self.blocks.append(Block(len(slots) - 1, self._kept(slots, entered(code, text, begin))))
        self.waits, source = called(code, text, offset) if innermost else (False, None)
        self.wait = self._kept(slots, source)
        self.slots = tuple(slots)

    def _kept(self, slots: list[int], source: ValueSource | None) -> ValueSource | None:
        if source is not None:
            source.at = len(slots)
            slots.append(source.slot)
        return source


# -- the exception table


def entries(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """(begin, end, handler, depth): offsets, and how much of the stack a handler leaves."""
    data = iter(code.co_exceptiontable)

    def number() -> int:
        byte = next(data)
        value = byte & 63
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    try:
        while True:
            begin = 2 * number()
            length, handler, depth = 2 * number(), 2 * number(), number() >> 1
            yield begin, begin + length, handler, depth
    except StopIteration:
        return


def around(code: CodeType, text: bytes, offset: int) -> Iterator[tuple[int, int]]:
    """Of each `with` block around an instruction, the innermost first: the slot of its exit, and where it begins."""
    if not code.co_exceptiontable:
        return
    table = [*entries(code)]
    base = len({*code.co_varnames, *code.co_cellvars, *code.co_freevars})
    seen: set[int] = set()
    while True:
        found = next(((handler, depth) for begin, end, handler, depth in table if begin <= offset < end), None)
        if found is None or found[0] in seen:
            return
        offset, depth = found  # the handler is within the blocks that are around its own
        seen.add(offset)
        if (text[offset], text[offset + 2]) == HANDLERS:
            yield base + depth - 1, min(begin for begin, _, handler, _ in table if handler == offset)


# -- what an expression was


def backwards(text: bytes, offset: int) -> Iterator[tuple[int, int]]:
    """(operation, argument) of what stands before this offset, the last first."""
    at = offset - 2
    least = max(0, offset - 2 * FURTHEST * 5)
    while at >= least:
        operation, argument = text[at], text[at + 1]
        at -= 2
        shift = 8
        while at >= 0 and text[at] == EXTENDED:
            argument |= text[at + 1] << shift
            shift += 8
            at -= 2
        if operation:  # not a CACHE
            yield operation, argument


def entered(code: CodeType, text: bytes, begin: int) -> ValueSource | None:
    """What the `with` block that begins here was entered with."""
    before = backwards(text, begin)
    operation, _ = next(before, (0, 0))
    if operation in CALLS and next(before, (0, 0))[0] in SPECIAL:
        return special(code, before)
    return expression(code, before) if operation in ENTERS else None


def special(code: CodeType, before: Iterator[tuple[int, int]]) -> ValueSource | None:
    """What is entered, by what stands before the look-up of its `__enter__`."""
    for _ in range(BETWEEN):
        next(before, None)
    return expression(code, before)


def called(code: CodeType, text: bytes, offset: int) -> tuple[bool, ValueSource | None]:
    """Whether a thread can wait for a lock at this instruction, which enters it or calls a method of its; for what."""
    offset = whole(text, offset)
    operation, count = text[offset], text[offset + 1]
    before = backwards(text, offset)
    if operation in ENTERS:
        return True, expression(code, before)
    if operation not in CALLS:
        return False, None
    above = 1 + (count & 1) if operation in WITH_TUPLE else count + (operation in WITH_NAMES)
    depth, within = 0, True  # from where the call finds the stack; still within what belongs to the call
    for operation, argument in before:
        if within and operation in PREPARED:
            continue
        if within and operation in SPECIAL:
            return True, special(code, before)
        within = False
        if depth == -above:  # what is called is on top here: this has put it there
            if operation in ATTRIBUTE:
                name = attribute_name(code, operation, argument)
                if name in BLOCKING:
                    return True, expression(code, before)
            source = expression(code, before if operation in NULLS else chain(((operation, argument),), before))
            if source is not None:
                source.method = True
            return False, source
        depth -= stack_effect(operation, argument if operation >= HAVE_ARGUMENT else None, jump=False)
        if depth < -above:
            break
    return False, None


def whole(text: bytes, offset: int) -> int:
    """The instruction that a place within its caches belongs to."""
    while offset > 0 and text[offset] == 0:
        offset -= 2
    return offset


def attribute_name(code: CodeType, operation: int, argument: int) -> str:
    number = argument >> 1 if SHIFTED and operation not in METHOD else argument
    return code.co_names[number] if number < len(code.co_names) else ""


def expression(code: CodeType, before: Iterator[tuple[int, int]]) -> ValueSource | None:
    """A variable and its attributes; None for what is made otherwise."""
    names: list[str] = []
    for operation, argument in before:
        if operation in ATTRIBUTE:
            names.append(attribute_name(code, operation, argument))
        elif operation in LOCAL:
            return ValueSource(argument, tuple(reversed(names)))
        elif operation in PAIRS:
            return ValueSource(argument & 15, tuple(reversed(names)))
        elif operation in GLOBAL or operation in NAMED:
            names.append(code.co_names[argument >> 1 if operation in GLOBAL else argument])
            return ValueSource(GLOBALS, tuple(reversed(names)))
        else:
            return None
    return None


def attribute(thing: object, name: str) -> object:
    """What stands in an object, or in its class, under this name; None for nothing, and for what code of the program
    would have to tell."""
    kind = type(thing)
    found = in_classes(kind, name)
    if isinstance_exactly(found, MemberDescriptorType):
        try:
            return found.__get__(thing, kind)  # type: ignore[attr-defined]
        except AttributeError:
            return None
    if issubclass(kind, type) and found is _missing:
        found = in_classes(thing, name)  # type: ignore[arg-type]
        return None if found is _missing else found
    if found is _missing:  # in no class: so nothing of theirs is asked
        try:
            return object.__getattribute__(thing, name)
        except AttributeError:
            return None
    return (namespace(thing) or {}).get(name, found)


def in_classes(kind: type, name: str) -> object:
    for each in type.__dict__["__mro__"].__get__(kind):
        names = type.__dict__["__dict__"].__get__(each)
        if name in names:
            return names[name]
    return _missing


def namespace(thing: object) -> dict[str, object] | None:
    """An object's own dictionary, past whatever its class says that it is."""
    kind = type(thing)
    if issubclass(kind, ModuleType):
        names = _of_module.__get__(thing)
        return names if type(names) is dict else None
    found = in_classes(kind, "__dict__")
    if not isinstance_exactly(found, GetSetDescriptorType) or issubclass(kind, type):
        return None
    names = found.__get__(thing, kind)  # type: ignore[attr-defined]
    return names if type(names) is dict else None


def isinstance_exactly(thing: object, kind: type) -> bool:
    return type(thing) is kind
