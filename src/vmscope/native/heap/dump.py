"""The Python twin of dump.c, slower and larger: it keeps all objects in a list, makes the `__dict__` of each that has
attributes, and other threads run meanwhile. What they make then is not in the dump, and a reference to it is 0.

It names what stands in dictionaries and `__slots__`; members of C structs are among `__referents__`. What is reached
neither from a module nor from a running function counts as kept by C code.
"""

from __future__ import annotations

import gc
import os
import sys
from struct import Struct, pack
from time import monotonic
from types import GetSetDescriptorType, MemberDescriptorType

from vmscope.native.heap import class_histogram
from vmscope.native.heap.hprof import BYTE, DOUBLE, INT, LONG, OBJECT, SIZES, WIDTHS, Hprof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from vmscope.native.attach.listener import Call

__all__ = ["dump_heap"]

MODULE = "<module>"  # the class that stands for a module, as Python calls a module's code
LEGAL = str.maketrans("/;[]", "|,<>")  # what may not stand in a name of the JVM's
MAPPED = {object: "java/lang/Object", type: "java/lang/Class", str: "java/lang/String"}

# What the classes of the interpreter add to their bases': name and type of each field.
Fields = tuple[tuple[str, int], ...]
BUILTIN: dict[type, Fields] = {
    object: (("__size__", LONG), ("__refcount__", INT), ("__referents__", OBJECT)),
    str: (("value", OBJECT), ("coder", BYTE)),
    int: (("value", LONG), ("large", OBJECT)),
    float: (("value", DOUBLE),),
    complex: (("real", DOUBLE), ("imag", DOUBLE)),
    bytes: (("value", OBJECT),),
    bytearray: (("value", OBJECT),),
    list: (("items", OBJECT),),
    tuple: (("items", OBJECT),),
    set: (("items", OBJECT),),
    frozenset: (("items", OBJECT),),
    dict: (("keys", OBJECT), ("values", OBJECT)),
}
TELL = 1.0  # seconds between two words to the client
TELL_EACH = 4096  # objects between two looks at the clock
COMMON = Struct(">BQIQI")
FOLDER = sys._getframe().f_code.co_filename[: -len("native/heap/dump.py")]  # of vmscope's own code
REFERENCE = "java/lang/ref/Reference"
OWN: dict[str, tuple[str, Fields, tuple[tuple[str, int], ...]]] = {  # classes of vmscope's: base, fields, numbers in it
    "[Ljava/lang/Object;": ("", (), ()),
    "[B": ("", (), ()),
    "java/lang/ClassLoader": ("", (), ()),
    "java/lang/Thread": ("", (("name", OBJECT), ("thread", OBJECT), ("ident", LONG), ("native_id", LONG)), ()),
    "java/lang/StringUTF16": ("", (), (("HI_BYTE_SHIFT", 0), ("LO_BYTE_SHIFT", 8))),
    REFERENCE: ("", (("referent", OBJECT),), ()),
    "java/lang/ref/SoftReference": (REFERENCE, (), ()),
    "java/lang/ref/WeakReference": (REFERENCE, (), ()),
    "java/lang/ref/FinalReference": (REFERENCE, (), ()),
    "java/lang/ref/PhantomReference": (REFERENCE, (), ()),
}

_TYPE = type.__dict__
_GETTERS = GetSetDescriptorType, MemberDescriptorType


def dump_heap(fd: int, call: Call | None = None, /) -> tuple[int, int]:
    os.fstat(fd)
    collecting = gc.isenabled()
    gc.disable()
    try:
        dump = HeapDump(fd)
        dump.write(call)
        return dump.objects, dump.written
    finally:
        if collecting:
            gc.enable()


def mro(kind: type) -> tuple[type, ...]:
    found: tuple[type, ...] = _TYPE["__mro__"].__get__(kind) or ()
    return found


def namespace(kind: type) -> dict[object, object]:
    """Its own `__dict__`, the very object."""
    found = gc.get_referents(_TYPE["__dict__"].__get__(kind))
    return found[0] if found and type(found[0]) is dict else {}


def base_of(kind: type) -> type | None:
    found: type | None = _TYPE["__base__"].__get__(kind)
    return found


def is_heap(kind: type) -> bool:
    return bool(_TYPE["__flags__"].__get__(kind) & 1 << 9)


def own_dict(thing: object, kinds: dict[int, object]) -> dict[object, object] | None:
    """Its `__dict__`, which is made if it was not there yet. `kinds`: what gives it, by the id of the class."""
    kind = type(thing)
    if id(kind) not in kinds:
        line = (namespace(each).get("__dict__") for each in mro(kind))
        kinds[id(kind)] = next((each for each in line if type(each) in _GETTERS), None)
    found = kinds[id(kind)]
    if found is None:
        return None
    try:
        own = found.__get__(thing, kind)  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return None
    return own if type(own) is dict else None


def slots(kind: type) -> list[tuple[str, MemberDescriptorType]]:
    """The `__slots__` of a class of Python code."""
    if not is_heap(kind):
        return []
    return [(str(name), each) for name, each in namespace(kind).items() if type(each) is MemberDescriptorType]


class HeapDump(Hprof):
    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.objects = 0
        self.fields: dict[int, list[tuple[str, int, MemberDescriptorType | None]]] = {}  # of a class, its own
        self.ours: dict[str, int] = {}
        self.frames: list[tuple[int, FrameType, int, int, int]] = []  # ident, frame, thread, depth, class
        self.threads: dict[int, int] = {}
        self.there: dict[int, object] = {}
        self.dicts: dict[int, object] = {}
        self.taken = packages(*MAPPED.values(), *OWN) | set(MAPPED.values()) | set(OWN)  # names that no class may have

    def id(self, thing: object) -> int:
        """0 for what has been made since."""
        return id(thing) if id(thing) in self.there else 0

    # -- all of it

    def write(self, call: Call | None) -> None:
        self.find()
        for name in OWN:
            self.ours[name] = self.new() if self.ours else self.array_class
            self.load(self.ours[name], name)
        classes = [thing for thing in self.there.values() if issubclass(type(thing), type)]
        threads = [(ident, list(frames_of(top))) for ident, top in sys._current_frames().items()]
        threads = [thread for thread in threads if not is_own(thread[1])]
        self.taken |= packages(*map(full_name, classes))  # type: ignore[arg-type]
        self.taken |= packages(*{name_of_module(frame) for _, frames in threads for frame in frames})
        for kind in classes:
            self.declare(kind)  # type: ignore[arg-type]
        self.stacks(threads)
        for name, (base, fields, numbers) in OWN.items():
            statics = [(self.name(each), INT, value) for each, value in numbers]
            inherited = OWN[base][1] if base else ()
            own = [(each, kind, None) for each, kind in fields]
            size = sum(SIZES[kind] for _, kind in (*fields, *inherited, *BUILTIN[object]))
            self.describe(self.ours[name], self.ours[base] if base else id(object), size, statics, own)
            self.part(pack(">BQ", 0x05, self.ours[name]))
        for kind in classes:
            self.klass(kind)  # type: ignore[arg-type]
        told = monotonic()
        for visited, thing in enumerate(self.there.values()):
            if not issubclass(type(thing), type):
                self.instance(thing)
            if call is not None and visited % TELL_EACH == 0 and monotonic() - told > TELL:
                told = monotonic()
                share = f"{visited * 100 // len(self.there)}%"
                call.write(f"#{share}: {self.objects} objects, {self.written} bytes\n".encode())
                call.flush()
        self.roots()
        self.record(0x2C, b"")
        self.flush()

    def find(self) -> None:
        """Every object; from here on all of them stay."""
        there = self.there
        for thing in class_histogram.objects():
            there[id(thing)] = thing
        kept = [each for each in self.__dict__.values() if type(each) in (dict, list, set, bytearray)]
        own = {id(self), id(self.__dict__), id(kept), *map(id, kept)}
        classes: dict[int, type] = {id(object): object}
        todo: list[type] = [object]
        while todo:
            kind = todo.pop()
            for each in (kind, *mro(kind), namespace(kind)):
                there.setdefault(id(each), each)
            derived: list[type] = type.__subclasses__(kind)
            todo += [each for each in derived if id(each) not in classes]
            classes.update((id(each), each) for each in derived)
        for thing in list(there.values()):
            if not issubclass(type(thing), type) and (attributes := own_dict(thing, self.dicts)) is not None:
                there.setdefault(id(attributes), attributes)
        for key in own:
            there.pop(key, None)

    # -- classes

    def declare(self, kind: type) -> None:
        found: list[tuple[str, int, MemberDescriptorType | None]]
        found = [(name, each, None) for name, each in BUILTIN.get(kind, ())]
        found += [(name, OBJECT, slot) for name, slot in slots(kind)]
        base = base_of(kind)
        if has_dict(kind) and not (base and has_dict(base)):
            found.append(("__dict__", OBJECT, None))
        self.fields[id(kind)] = found
        for name, _, _ in found:
            self.name(name)
        for key in list(namespace(kind)):
            if type(key) is str:
                self.name(key)
        self.load(id(kind), MAPPED.get(kind) or self.settle(full_name(kind)))

    def settle(self, name: str) -> str:
        while name in self.taken:
            name += "$"
        return name

    def all_fields(self, kind: type) -> list[tuple[str, int, MemberDescriptorType | None]]:
        found: list[tuple[str, int, MemberDescriptorType | None]] = []
        each: type | None = kind
        while each is not None:
            found += self.fields[id(each)]
            each = base_of(each)
        return found

    def klass(self, kind: type) -> None:
        own = namespace(kind)
        references = [each for each in class_histogram.references(kind) if id(each) in self.there]
        fixed: list[tuple[str, int, int]] = [
            ("__size__", LONG, class_histogram.size_of(kind)),
            ("__refcount__", INT, references_to(kind)),
            ("__class__", OBJECT, id(type(kind))),
            ("__dict__", OBJECT, self.id(own)),
            ("__bases__", OBJECT, self.id(class_histogram.bases_of(kind))),
            ("__mro__", OBJECT, self.id(mro(kind))),
        ]
        for name, _, _ in fixed:
            self.name(name)
        statics = [(self.name(name), each, value) for name, each, value in fixed]
        statics.append((self.name("__referents__"), OBJECT, self.array(id(kind) | 4, map(self.id, references))))
        if kind is str:
            statics += [(self.name("LATIN1"), BYTE, 0), (self.name("UTF16"), BYTE, 1)]
        taken = {name for name, _, _ in fixed} | {"__referents__"}
        for key, value in list(own.items())[:65000]:
            if type(key) is str and key not in taken:
                statics.append((self.name(key), OBJECT, self.id(value)))
        base = base_of(kind)
        size = sum(SIZES[each] for _, each, _ in self.all_fields(kind))
        self.describe(id(kind), id(base) if base else 0, size, statics, self.fields[id(kind)])
        self.objects += 1

    # -- objects

    def contents(self, thing: object) -> tuple[dict[str, int | float], list[object]]:
        """The values of a builtin class's own fields, and what these refer to."""
        first, second = id(thing) | 1, id(thing) | 2
        kind = type(thing)
        if issubclass(kind, str):
            text = str.__str__(thing)
            try:
                return {"value": self.raw(first, text.encode("latin-1")), "coder": 0}, []
            except UnicodeEncodeError:
                return {"value": self.raw(first, text.encode("utf-16-le", "surrogatepass")), "coder": 1}, []
        if issubclass(kind, int):
            number = int.__int__(thing)  # type: ignore[arg-type]
            if -(1 << 63) <= number < 1 << 63:
                return {"value": number, "large": 0}, []
            return {
                "value": 0,
                "large": self.raw(first, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)),
            }, []
        if issubclass(kind, float):
            return {"value": float.__float__(thing)}, []  # type: ignore[arg-type]
        if issubclass(kind, complex):
            value = complex.__complex__(thing)  # type: ignore[arg-type]
            return {"real": value.real, "imag": value.imag}, []
        if issubclass(kind, (bytes, bytearray)):
            return {"value": self.raw(first, bytes(memoryview(thing)))}, []  # type: ignore[arg-type]
        if issubclass(kind, dict):
            pairs: list[tuple[object, object]] = list(dict.items(thing))  # type: ignore[arg-type]
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
            found = {"keys": self.array(first, map(self.id, keys)), "values": self.array(second, map(self.id, values))}
            return dict(found), [*keys, *values]
        for base in (list, tuple, set, frozenset):
            if issubclass(kind, base):
                items: list[object] = list(base.__iter__(thing))  # type: ignore[arg-type]
                return {"items": self.array(first, map(self.id, items))}, items
        return {}, []

    def instance(self, thing: object) -> None:
        kind = type(thing)
        known: dict[str, int | float]
        known, named = self.contents(thing)
        own = own_dict(thing, self.dicts)
        values: list[int | float] = []
        if own is not None:
            named += [own, *own.values()]  # the object may have them as well
        fields = self.all_fields(kind)
        for name, _, slot in fields:
            if slot is not None:
                value = member(slot, thing)
                named.append(value)
                values.append(0 if value is MISSING else self.id(value))
            elif name == "__dict__":
                values.append(0 if own is None else self.id(own))
            elif name == "__size__":
                values.append(class_histogram.size_of(thing))
            elif name == "__refcount__":
                values.append(references_to(thing))
            elif name == "__referents__":
                values.append(self.array(id(thing) | 4, self.rest(thing, named)))
            else:
                values.append(known.get(name, 0))
        body = pack(f">{''.join(WIDTHS[each] for _, each, _ in fields)}", *values)
        self.part(COMMON.pack(0x21, id(thing), 1, id(kind), len(body)), body)
        self.objects += 1

    def rest(self, thing: object, named: Iterable[object]) -> list[int]:
        """What is in no field."""
        taken: dict[int, int] = {id(type(thing)): 1}
        for each in named:
            taken[id(each)] = taken.get(id(each), 0) + 1
        left = []
        for each in class_histogram.references(thing):
            if taken.get(id(each)):
                taken[id(each)] -= 1
            elif id(each) in self.there:
                left.append(id(each))
        return left

    # -- roots

    def stacks(self, threads: list[tuple[int, list[FrameType]]]) -> None:
        self.record(0x05, pack(">III", 1, 0, 0))
        modules: dict[str, int] = {}
        empty = self.name("")
        for number, (ident, stack) in enumerate(threads, 1):
            self.threads[ident] = number
            frames = []
            for depth, frame in enumerate(stack):
                module = name_of_module(frame)
                if module not in modules:
                    modules[module] = self.new()
                    self.load(modules[module], self.settle(module))
                code = frame.f_code
                method, file, id = self.name(code.co_qualname), self.name(code.co_filename), self.new()
                serial = self.loads[modules[module]]
                self.record(0x04, pack(">QQQQIi", id, method, empty, file, serial, frame.f_lineno or 0))
                frames.append(id)
                self.frames.append((ident, frame, number, depth, modules[module]))
            body = pack(f">III{len(frames)}Q", 1 + number, number, len(frames), *frames)
            self.record(0x05, body)
        size = sum(SIZES[kind] for _, kind in BUILTIN[object])
        for each in modules.values():
            self.describe(each, id_of_object(), size, (), ())

    def roots(self) -> None:
        roots: list[object] = [sys.modules]
        threading = sys.modules.get("threading")
        active = {} if threading is None else dict(threading._active)
        for ident, number in self.threads.items():
            thread = active.get(ident)
            own = (own_dict(thread, self.dicts) or {}) if thread is not None else {}
            native_id = own.get("_native_id")
            body = pack(
                ">QQqqqiQ",
                self.id(own.get("_name")),
                self.id(thread) if thread is not None else 0,
                ident,
                native_id if isinstance(native_id, int) else 0,
                0,
                0,
                0,
            )
            instance = self.new()
            self.part(COMMON.pack(0x21, instance, 1, self.ours["java/lang/Thread"], len(body)), body)
            self.part(pack(">BQII", 0x08, instance, number, 1 + number))
        for _, frame, number, depth, _ in self.frames:
            for value in class_histogram.variables_of(frame):
                if self.id(value):
                    self.part(pack(">BQII", 0x03, id(value), number, depth))
                    roots.append(value)
        for thing in self.there.values():
            if issubclass(type(thing), type) and not is_heap(thing):  # type: ignore[arg-type]
                self.part(pack(">BQ", 0x05, id(thing)))
                roots.append(thing)
        self.part(pack(">BQQ", 0x01, id(sys.modules), id(sys.modules)))
        met: set[int] = set()
        self.follow(roots, met)
        for thing in self.there.values():
            if id(thing) not in met:
                self.part(pack(">BQQ", 0x01, id(thing), id(thing)))
                self.follow([thing], met)

    def follow(self, todo: list[object], met: set[int]) -> None:
        while todo:
            thing = todo.pop()
            if id(thing) in self.there and id(thing) not in met:
                met.add(id(thing))
                todo += class_histogram.references(thing)
                todo.append(type(thing))


MISSING = object()


def member(slot: MemberDescriptorType, thing: object) -> object:
    try:
        return slot.__get__(thing, type(thing))
    except AttributeError:
        return MISSING


def id_of_object() -> int:
    return id(object)


def references_to(thing: object) -> int:
    """Without those of the twin: its table's, and its calls'."""
    return max(1, min(sys.getrefcount(thing) - 4, (1 << 31) - 1))


def has_dict(kind: type) -> bool:
    return bool(_TYPE["__dictoffset__"].__get__(kind))


def full_name(kind: type) -> str:
    """`module/Outer$Inner`; of the builtins without their module."""
    try:
        module = _TYPE["__module__"].__get__(kind)
    except AttributeError:
        module = ""
    return spell("" if module == "builtins" else module, str(_TYPE["__qualname__"].__get__(kind)))


def name_of_module(frame: FrameType) -> str:
    """Of the class that stands for the module whose code a frame runs."""
    return spell(dict.get(frame.f_globals, "__name__"), MODULE)


def spell(module: object, qualified: str) -> str:
    """A class's name by the JVM's rules, in which no part is empty."""
    parts = str.translate(module, LEGAL).split(".") if isinstance(module, str) else []
    last = str.translate(qualified, LEGAL).replace(".", "$") or "?"
    return "/".join([*filter(None, parts), last])


def packages(*names: str) -> set[str]:
    """Of all these classes."""
    return {name[:end] for name in names for end, each in enumerate(name) if each == "/"}


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """The innermost first, without the twin's."""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_own(stack: list[FrameType]) -> bool:
    """Whether a thread executes nothing but vmscope's code."""
    return all(frame.f_code.co_filename.startswith(FOLDER) for frame in stack)
