"""What an `except` clause does with the exception that it catches, read from its instructions."""

from __future__ import annotations

import builtins
import dis
from dis import Instruction
from types import CodeType, FrameType

REPORTS = frozenset(("exception", "exc_info", "print_exc", "format_exc", "print_exception", "capture_exception"))
NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_DEREF")
SKIPPED = ("NOP", "CACHE", "EXTENDED_ARG", "NOT_TAKEN", "PUSH_NULL")
ENDS = ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_TOP", "RERAISE")  # of what makes a clause's types
UNKNOWN = object()
KEPT = 1024  # handlers that are remembered

_known: dict[tuple[int, int], tuple[CodeType, list[Clause]]] = {}  # by the code's id, which the value keeps its own


class Clause:
    """One `except`: the instructions that make its types, None for a bare one; its line; whether it swallows."""

    __slots__ = ("line", "swallows", "types")

    def __init__(self, types: list[Instruction] | None, line: int | None, body: list[Instruction]) -> None:
        self.types = types
        self.line = line
        self.swallows = (body[0].opname if body else "") == "POP_TOP" and not any(map(looks, body))


def looks(each: Instruction) -> bool:
    """Whether it raises, or calls what reports the current exception."""
    return each.opname == "RAISE_VARARGS" or (isinstance(each.argval, str) and each.argval in REPORTS)


def catching(frame: FrameType, handler: int, exception: BaseException) -> Clause | None:
    """The clause of the frame's handler at this offset that catches it; None where that cannot be read."""
    for clause in clauses(frame.f_code, handler):
        if clause.types is None or matches(exception, evaluate(frame, clause.types)):
            return clause
    return None


def clauses(code: CodeType, handler: int) -> list[Clause]:
    """Those of the handler that begins at this offset, in their order."""
    found = _known.get((id(code), handler))
    if found is None:
        if len(_known) >= KEPT:
            _known.clear()
        found = _known[id(code), handler] = code, read(code, handler)
    return found[1]


def read(code: CodeType, handler: int) -> list[Clause]:
    """Each clause with types ends where its test jumps to; a bare one at the end of the handler."""
    found: list[Clause] = []
    all_ = [each for each in dis.get_instructions(code) if each.opname not in SKIPPED]
    at = next((index for index, each in enumerate(all_) if each.offset > handler), len(all_))
    while at < len(all_):
        test = next((index for index in range(at, len(all_)) if all_[index].opname in ENDS), len(all_) - 1)
        if all_[test].opname == "CHECK_EXC_MATCH" and test + 1 < len(all_):
            target = all_[test + 1].argval
            after = next((index for index in range(test, len(all_)) if all_[index].offset >= target), len(all_))
            found.append(Clause(all_[at:test], line(all_[at]), all_[test + 2 : after]))
            at = after
        else:
            if all_[test].opname == "POP_TOP" and test == at:
                end = next((index for index in range(at, len(all_)) if all_[index].opname == "RERAISE"), len(all_))
                found.append(Clause(None, line(all_[at]), all_[at:end]))
            break
    return found


def line(instruction: Instruction) -> int | None:
    return None if instruction.positions is None else instruction.positions.lineno


def evaluate(frame: FrameType, instructions: list[Instruction]) -> object:
    """The types that they make, as far as no code has to run for it."""
    stack: list[object] = []
    for each in instructions:
        name = each.opname
        if name in NAMES:
            stack.append(lookup(frame, each.argval))
        elif name == "LOAD_ATTR" and stack:
            owner = stack.pop()
            stack.append(UNKNOWN if owner is UNKNOWN else vars(owner).get(each.argval, UNKNOWN))
        elif name == "BUILD_TUPLE" and len(stack) >= each.argval:
            stack[len(stack) - each.argval :] = [tuple(stack[len(stack) - each.argval :])]
    return stack[-1] if stack else UNKNOWN


def lookup(frame: FrameType, name: str) -> object:
    for space in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in space:
            return space[name]
    return UNKNOWN


def matches(exception: BaseException, kinds: object) -> bool:
    """A clause matches where this cannot be decided."""
    if isinstance(kinds, tuple):
        return any(matches(exception, kind) for kind in kinds)
    return kinds is UNKNOWN or (isinstance(kinds, type) and kinds in type(exception).__mro__)
