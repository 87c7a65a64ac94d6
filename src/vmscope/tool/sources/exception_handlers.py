"""Where an exception will be caught: read from the exception tables and the handlers' first instructions.

CPython decides when it is there: a handler evaluates its types and compares. Here the types are looked up without
running any code; where that cannot be done (`except choose():`), a handler is taken to catch. A `with` block may
swallow an exception too, which only its `__exit__` knows: it is never taken to catch.
"""

from __future__ import annotations

import dis
from opcode import opmap
from types import CodeType, FrameType, ModuleType

from vmscope.native import handling_frame, variable
from vmscope.native.stacks.exception_handlers import entries
from vmscope.tool.model.frames import OWN, is_own
from vmscope.tool.model.introspection import derives

KEPT = 512  # code objects whose handlers are remembered
STEPS = 200  # handlers looked at in one frame, instructions of one handler
UNKNOWN = object()
SKIPPED = frozenset("NOP EXTENDED_ARG CACHE PUSH_NULL NOT_TAKEN".split())
BEFORE_STAR = frozenset(("COPY", "BUILD_LIST", "SWAP"))  # how `except*` begins
# what needs no `except`: the end of an iterator or of what is awaited, an `async for`, a `throw()` into an `await`
ENDS = frozenset(opmap[name] for name in ("FOR_ITER", "SEND"))
SWALLOWED: dict[str, type[BaseException]] = {"END_ASYNC_FOR": StopAsyncIteration, "CLEANUP_THROW": StopIteration}
SWALLOWING = ENDS | {opmap[name] for name in SWALLOWED if name in opmap}  # 3.11 has not all of them
STATEMENT = opmap["RAISE_VARARGS"]
GENERATORS = 0x20 | 0x80 | 0x100 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR

Table = list[tuple[int, int, int]]  # start, end, target


class Handlers:
    """What of one code object matters here."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # keeps its id from being used again
        self.table: Table = list(entries(code.co_exceptiontable))
        instructions = list(dis.get_instructions(code)) if self.table else []
        self.at = {instruction.offset: index for index, instruction in enumerate(instructions)}
        self.instructions = instructions

    def target(self, offset: int) -> int | None:
        """The handler for what is raised here."""
        for start, end, target in self.table:
            if start <= offset < end:
                return target
        return None

    def after(self, handler: int) -> int | None:
        """The handler for what this one does not catch."""
        index = self.at[handler]
        if self.instructions[index].opname == "PUSH_EXC_INFO":
            return self.target(self.instructions[index + 1].offset)
        for instruction in self.instructions[index : index + STEPS]:
            if instruction.opname in ("RERAISE", "END_ASYNC_FOR", "CLEANUP_THROW"):
                return self.target(instruction.offset)
        return None


_known: dict[int, Handlers] = {}


def handlers_of(code: CodeType) -> Handlers:
    found = _known.get(id(code))
    if found is None:
        if len(_known) >= KEPT:
            _known.clear()
        found = _known[id(code)] = Handlers(code)
    return found


def find(frame: FrameType | None, offset: int, error: BaseException) -> tuple[CodeType | None, int]:
    """The method and location of the handler that will catch what is raised here; None and 0 when there is none.

    A loop that ends by it counts as its handler; what reaches vmscope, as under `vmscope run`, was not caught.
    """
    ending = isinstance(error, StopIteration | StopAsyncIteration)  # which more than handlers catch
    while frame is not None and not is_own(frame.f_code):
        if not ending:
            frame, offset = handling_frame(frame, offset, OWN)
            if frame is None:
                break
        if ends(frame.f_code, offset, error):
            return frame.f_code, offset
        known = handlers_of(frame.f_code)
        target = known.target(offset)
        for _ in range(STEPS):
            if target is None:
                break
            if catches(frame, target, error):
                return frame.f_code, target
            target = known.after(target)
        if becomes_another(frame.f_code, error):
            break
        frame = frame.f_back
        if frame is not None:
            offset = frame.f_lasti
    return None, 0


def ends(code: CodeType, offset: int, error: BaseException) -> bool:
    """Whether it ends, here, nothing but a loop, an `await` or a `yield from`."""
    return isinstance(error, StopIteration) and code.co_code[offset] in ENDS


def becomes_another(code: CodeType, error: BaseException) -> bool:
    """Whether what leaves this method is a RuntimeError instead of it: an iterator's end, out of a generator."""
    flags = 0x200 if isinstance(error, StopAsyncIteration) else GENERATORS if isinstance(error, StopIteration) else 0
    return bool(code.co_flags & flags)


def swallows(code: CodeType, location: int) -> bool:
    """Whether the handler here is the interpreter's own: the end of a loop, an `await` or a `yield from`."""
    return code.co_code[location] in SWALLOWING


def by_statement(error: BaseException) -> bool:
    """Whether a `raise` of the program threw it, and not C code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] == STATEMENT


def catches(frame: FrameType, handler: int, error: BaseException) -> bool:
    """Whether the handler at this offset is an `except` for it."""
    known = handlers_of(frame.f_code)
    index = known.at.get(handler)
    if index is None:
        return False
    if known.instructions[index].opname in SWALLOWED:
        return isinstance(error, SWALLOWED[known.instructions[index].opname])
    if known.instructions[index].opname != "PUSH_EXC_INFO":
        return False
    stack: list[object] = []
    first = True
    for _ in range(STEPS):
        index += 1
        instruction = known.instructions[index]
        name = instruction.opname
        if name in SKIPPED or name in BEFORE_STAR:
            continue
        if name == "POP_TOP" and first:
            return True  # `except:`
        first = False
        if name == "CHECK_EXC_MATCH":
            if matches(error, stack.pop() if stack else UNKNOWN):
                return True
        elif name.startswith("POP_JUMP") and name.endswith("FALSE"):
            index = known.at[instruction.argval] - 1
            stack.clear()
        elif name == "CHECK_EG_MATCH":
            return True
        elif name == "LOAD_ATTR" and stack:
            stack.append(attribute(stack.pop(), instruction.argval))
        elif name == "BUILD_TUPLE":
            count = instruction.argval
            stack[len(stack) - count :] = [tuple(stack[len(stack) - count :])]
        elif name.startswith("LOAD_"):
            stack.append(loaded(frame, name, instruction.argval))
        elif name == "CALL":
            stack[:] = [UNKNOWN]
        else:
            return False
    return False


def loaded(frame: FrameType, name: str, key: object) -> object:
    """What a LOAD_ instruction puts on the stack, as far as no code has to run for it."""
    if name == "LOAD_CONST":
        return key
    if not isinstance(key, str):
        return UNKNOWN
    if name.startswith(("LOAD_FAST", "LOAD_DEREF")):
        try:
            return variable(frame, key)
        except NameError:
            return UNKNOWN
    local = [frame.f_locals] if name == "LOAD_NAME" else []  # of a module or a class: no copy
    for space in (*local, frame.f_globals, frame.f_builtins):
        if key in space:
            return space[key]
    return UNKNOWN


def attribute(owner: object, name: str) -> object:
    """An attribute of a module or a class; no descriptor and no `__getattr__` is run."""
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, UNKNOWN)
    if isinstance(owner, type):
        for base in type.__dict__["__mro__"].__get__(owner):
            if name in vars(base):
                found: object = vars(base)[name]
                return found
    return UNKNOWN


def matches(error: BaseException, kinds: object) -> bool:
    """As CPython compares: by the class's bases, or those of any class in a tuple."""
    if kinds is UNKNOWN:
        return True
    if isinstance(kinds, tuple):
        return any(matches(error, kind) for kind in kinds)
    return isinstance(kinds, type) and derives(type(error), kinds)
