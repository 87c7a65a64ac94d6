"""A reader of HPROF 1.0.2 files, written from the format's public description: strict, and of no code of vmscope's.

Every record must be as long as it says, each name, class, serial number and object that is referred to must be there.
Names of classes keep the JVM's rules (JVMS 4.2): no part is empty or has one of `.;[`, and no class is also a package.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

MAGIC = b"JAVA PROFILE 1.0.2\0"
SIZES = {2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}
FORMATS = {2: "Q", 4: "?", 5: "H", 6: "f", 7: "d", 8: "b", 9: "h", 10: "i", 11: "q"}

ROOTS = {
    0xFF: ("unknown", 0),
    0x01: ("JNI global", 8),
    0x02: ("JNI local", 8),
    0x03: ("Java frame", 8),
    0x04: ("native stack", 4),
    0x05: ("sticky class", 0),
    0x06: ("thread block", 4),
    0x07: ("monitor", 0),
    0x08: ("thread", 8),
}


class Class:
    """A class: `statics` by name, `fields` as (name, type), its own only; `bytes` of an instance."""

    def __init__(self, id: int, base: int, size: int) -> None:
        self.id = id
        self.base = base
        self.bytes = size
        self.name = ""
        self.statics: dict[str, object] = {}
        self.static_types: dict[str, int] = {}
        self.fields: list[tuple[str, int]] = []


class Dump:
    """A whole file. Instances are kept as (class id, bytes), arrays as lists or bytes."""

    def __init__(self, data: bytes) -> None:
        assert data.startswith(MAGIC)
        assert struct.unpack_from(">I", data, len(MAGIC)) == (8,)
        self.data = data
        self.made = struct.unpack_from(">Q", data, len(MAGIC) + 4)[0]
        self.names: dict[int, str] = {}
        self.loaded: dict[int, tuple[int, int]] = {}  # class id: serial, name
        self.frames: dict[int, tuple[str, str, str, int]] = {}  # method, file, class, line
        self.traces: dict[int, tuple[int, list[int]]] = {}  # thread, frames
        self.classes: dict[int, Class] = {}
        self.instances: dict[int, tuple[int, int, int]] = {}  # class, where, length
        self.arrays: dict[
            int, tuple[int, int, int]
        ] = {}  # element type, or class of an array of objects; where, length
        self.object_arrays: set[int] = set()
        self.roots: list[tuple[str, int, tuple[int, ...]]] = []
        self.ended = False
        self._named: dict[str, list[Class]] = {}
        self._records()
        self._resolve()

    def _records(self) -> None:
        at, data, traced = len(MAGIC) + 12, self.data, []
        while at < len(data):
            tag, _, length = struct.unpack_from(">BII", data, at)
            at += 9
            end = at + length
            assert end <= len(data), f"a record at {at} ends beyond the file"
            assert not self.ended, "a record after the end"
            if tag == 0x01:
                (id,) = struct.unpack_from(">Q", data, at)
                assert id not in self.names, f"two names {id:#x}"
                self.names[id] = data[at + 8 : end].decode()
            elif tag == 0x02:
                assert length == 24
                serial, id, trace, name = struct.unpack_from(">IQIQ", data, at)
                assert id not in self.loaded
                traced.append(trace)
                self.loaded[id] = serial, name
            elif tag == 0x04:
                assert length == 40
                id, method, signature, file, serial, line = struct.unpack_from(">QQQQIi", data, at)
                assert signature in self.names
                names = {each[0]: each[1] for each in self.loaded.values()}
                kind = self.names[names[serial]].replace("/", ".")
                self.frames[id] = self.names[method], self.names[file], kind, line
            elif tag == 0x05:
                serial, thread, count = struct.unpack_from(">III", data, at)
                assert length == 12 + 8 * count
                self.traces[serial] = thread, list(struct.unpack_from(f">{count}Q", data, at + 12))
                assert [frame for frame in self.traces[serial][1] if frame not in self.frames] == []
            elif tag == 0x1C:
                self._segment(at, end)
            elif tag == 0x2C:
                self.ended = True
                assert length == 0
            else:
                raise AssertionError(f"a record {tag:#x} at {at}")
            at = end
        assert [trace for trace in traced if trace not in self.traces] == []

    def _segment(self, at: int, end: int) -> None:
        data = self.data
        while at < end:
            tag = data[at]
            at += 1
            (id,) = struct.unpack_from(">Q", data, at)
            at += 8
            if tag in ROOTS:
                kind, more = ROOTS[tag]
                self.roots.append((kind, id, struct.unpack_from(f">{more // 4}I", data, at)))
                at += more
                continue
            assert id, "an object without an id"
            assert not self._has(id), f"two objects {id:#x}"
            (trace,) = struct.unpack_from(">I", data, at)
            assert trace in self.traces
            at += 4
            if tag == 0x20:
                at = self._class(id, at)
            elif tag == 0x21:
                kind, length = struct.unpack_from(">QI", data, at)
                at += 12
                self.instances[id] = kind, at, length
                at += length
            elif tag == 0x22:
                count, kind = struct.unpack_from(">IQ", data, at)
                at += 12
                self.arrays[id] = kind, at, count
                self.object_arrays.add(id)
                at += 8 * count
            elif tag == 0x23:
                count, element = struct.unpack_from(">IB", data, at)
                at += 5
                self.arrays[id] = element, at, count
                at += SIZES[element] * count
            else:
                raise AssertionError(f"a part {tag:#x} at {at}")
        assert at == end, "a part ends beyond its segment"

    def _class(self, id: int, at: int) -> int:
        base, loader, signers, domain, one, two, size, constants, statics = struct.unpack_from(
            ">QQQQQQIHH", self.data, at
        )
        assert (loader, signers, domain, one, two, constants) == (0, 0, 0, 0, 0, 0)
        at += 6 * 8 + 8
        self.classes[id] = found = Class(id, base, size)
        for _ in range(statics):
            name, kind = struct.unpack_from(">QB", self.data, at)
            assert self.names[name] not in found.statics
            found.static_types[self.names[name]] = kind
            found.statics[self.names[name]] = struct.unpack_from(f">{FORMATS[kind]}", self.data, at + 9)[0]
            at += 9 + SIZES[kind]
        (fields,) = struct.unpack_from(">H", self.data, at)
        at += 2
        for _ in range(fields):
            name, kind = struct.unpack_from(">QB", self.data, at)
            found.fields.append((self.names[name], kind))
            at += 9
        return at

    def _resolve(self) -> None:
        """Nothing dangles."""
        assert self.ended, "no end"
        for id, found in self.classes.items():
            assert id in self.loaded, f"class {id:#x} is not loaded"
            found.name = self.names[self.loaded[id][1]].replace("/", ".")
            assert found.base == 0 or found.base in self.classes
            for name, kind in found.static_types.items():
                if kind == 2:
                    self._there(found.statics[name], f"static {name} of {found.name}")
        assert set(self.loaded) == set(self.classes)
        for each in self.classes.values():
            self._named.setdefault(each.name, []).append(each)
        self._check_names()
        assert len({serial for serial, _ in self.loaded.values()}) == len(self.loaded)
        for id, (kind, _, length) in self.instances.items():
            assert kind in self.classes, f"object {id:#x} has no class"
            assert length == sum(SIZES[type] for _, type in self.fields(kind)) == self.classes[kind].bytes
            for name, value in self.references(id):
                self._there(value, f"{name} of a {self.classes[kind].name}")
        for id in self.object_arrays:
            assert self.arrays[id][0] in self.classes
            for value in self.elements(id):
                self._there(value, "an element of an array")
        threads = {more[0]: more[1] for kind, _, more in self.roots if kind == "thread"}
        for root, id, more in self.roots:
            self._there(id, f"root {root}")
            if root == "thread":
                assert self.traces[more[1]][0] == more[0]
            if root == "Java frame":
                assert more[1] < len(self.traces[threads[more[0]]][1])

    def _check_names(self) -> None:
        names = [self.names[name] for _, name in self.loaded.values()]
        parts = [name.split("/") for name in names if not name.startswith("[")]
        assert [each for each in parts if not all(each) or set("".join(each)) & set(".;[")] == []
        packages = {"/".join(each[:end]) for each in parts for end in range(1, len(each))}
        assert packages.intersection(names) == set(), "a class is also a package"

    def _has(self, id: object) -> bool:
        return id in self.instances or id in self.arrays or id in self.classes

    def _there(self, id: object, what: str) -> None:
        assert id == 0 or self._has(id), f"{what} dangles"

    # -- questions

    def line(self, kind: int) -> Iterator[Class]:
        """The class and those it is derived from."""
        while kind:
            yield self.classes[kind]
            kind = self.classes[kind].base

    def fields(self, kind: int) -> list[tuple[str, int]]:
        """All of an instance of it, in their order."""
        return [field for each in self.line(kind) for field in each.fields]

    def values(self, id: int) -> list[tuple[str, int, object]]:
        """Name, type and value of each field of an instance; a name may come twice, the derived class's first."""
        kind, at, _ = self.instances[id]
        found = []
        for name, type in self.fields(kind):
            found.append((name, type, struct.unpack_from(f">{FORMATS[type]}", self.data, at)[0]))
            at += SIZES[type]
        return found

    def fields_of(self, id: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, _, value in self.values(id):
            found.setdefault(name, value)
        return found

    def references(self, id: int) -> Iterator[tuple[str, int]]:
        for name, type, value in self.values(id):
            if type == 2 and isinstance(value, int):
                yield name, value

    def elements(self, id: int) -> list[int]:
        _, at, length = self.arrays[id]
        return list(struct.unpack_from(f">{length}Q", self.data, at))

    def raw(self, id: int) -> bytes:
        """The bytes of an array of bytes."""
        element, at, length = self.arrays[id]
        assert element == 8
        return self.data[at : at + length]

    def class_of(self, id: int) -> Class:
        return self.classes[self.instances[id][0]]

    def counts(self) -> Counter[str]:
        """Instances by the name of their class; classes by that of theirs."""
        found = Counter(self.classes[kind].name for kind, _, _ in self.instances.values())
        for each in self.classes.values():
            metaclass = each.statics.get("__class__")
            if isinstance(metaclass, int):
                found[self.classes[metaclass].name] += 1
        return found

    def text(self, id: int) -> str:
        """Of an instance of String, decoded as the class says."""
        fields = self.fields_of(id)
        value, coder = fields["value"], fields["coder"]
        assert isinstance(value, int)
        if coder == self.named("java.lang.String").statics["LATIN1"]:
            return self.raw(value).decode("latin-1")
        assert coder == self.named("java.lang.String").statics["UTF16"]
        high = self.named("java.lang.StringUTF16").statics["HI_BYTE_SHIFT"]
        return self.raw(value).decode("utf-16-be" if high else "utf-16-le", "surrogatepass")

    def named(self, name: str) -> Class:
        """The one class of this name."""
        [found] = self._named[name]
        return found

    def number(self, id: int) -> int:
        fields = self.fields_of(id)
        value, large = fields["value"], fields["large"]
        assert isinstance(value, int)
        assert isinstance(large, int)
        return int.from_bytes(self.raw(large), "big", signed=True) if large else value

    def items(self, id: int, field: str = "items") -> list[int]:
        array = self.fields_of(id)[field]
        assert isinstance(array, int)
        return self.elements(array) if array else []

    def mapping(self, id: int) -> dict[str, int]:
        """Of a dict with texts as keys."""
        return dict(zip(map(self.text, self.items(id, "keys")), self.items(id, "values"), strict=True))

    def reachable(self) -> set[int]:
        """The ids of all that is reached from the roots."""
        todo = [id for _, id, _ in self.roots]
        met = set(todo)
        while todo:
            id = todo.pop()
            if id in self.instances:
                found = [self.instances[id][0], *(value for _, value in self.references(id))]
            elif id in self.object_arrays:
                found = self.elements(id)
            elif id in self.classes:
                each = self.classes[id]
                statics = [each.statics[name] for name, kind in each.static_types.items() if kind == 2]
                found = [each.base, *(value for value in statics if isinstance(value, int))]
            else:
                continue
            for other in found:
                if other and other not in met:
                    met.add(other)
                    todo.append(other)
        return met
