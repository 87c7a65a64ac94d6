"""Objects of another process's interpreter, read as memory: the names of its threads, and variables in a few words.

The process may change or free them meanwhile, or never have had them: what cannot be is Unreadable.
"""

from __future__ import annotations

import struct

from vmscope.interpreters.memory import WORD, Memory, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MANAGED_DICT, _INLINE_VALUES = 1 << 4, 1 << 2  # tp_flags
_MOST_ITEMS = 100_000  # of a dict
_MOST_LOCALS = 200
_LONGEST_TEXT = 200  # characters of a string
_MOST_DIGITS = 70  # of 30 bits, of a number
_MODULE_DICT = 2 * WORD
_CELL_VALUE = 2 * WORD


class Objects:
    """Reads what stands at an address. Every method raises Unreadable."""

    def __init__(self, memory: Memory, fields: dict[str, int]) -> None:
        self._memory = memory
        self._at = fields
        self._minor = fields["minor"]

    def type_of(self, address: int) -> int:
        return self._memory.word(address + WORD)

    def type_name(self, address: int) -> str:
        return self._memory.text(self._memory.word(self.type_of(address) + self._at["type_name"]))

    # -- values

    def string(self, address: int, limit: int = _LONGEST_TEXT) -> str:
        at = self._at
        head = self._memory.read(address, at["string_ascii"])
        length = int.from_bytes(head[at["string_length"] :][:WORD], "little")
        state = int.from_bytes(head[at["string_state"] :][:4], "little")
        kind = state >> at["string_kind_bit"] & 7
        if not state >> at["string_compact_bit"] & 1 or kind not in (1, 2, 4):
            raise Unreadable(address)
        ascii_only = state >> at["string_ascii_bit"] & 1
        data = self._memory.read(
            address + at["string_ascii" if ascii_only else "string_compact"], min(length, limit) * kind
        )
        if kind == 1:
            text = data.decode("latin-1")
        else:
            text = data.decode("utf-16-le" if kind == 2 else "utf-32-le", "replace")
        return text + "…" if length > limit else text

    def number(self, address: int) -> int | None:
        """An int; None for one that is too long."""
        if self._minor < 12:
            size = int.from_bytes(self._memory.read(address + self._at["long_size"], WORD), "little", signed=True)
            count, sign = abs(size), -1 if size < 0 else 1
        else:
            tag = self._memory.word(address + self._at["long_tag"])
            count, sign = tag >> 3, -1 if tag & 3 == 2 else 1
            count = 0 if tag & 3 == 1 else count
        if count > _MOST_DIGITS:
            return None
        digits = self._memory.read(address + self._at["long_digits"], count * 4)
        value = 0
        for place in range(count):
            value |= int.from_bytes(digits[4 * place :][:4], "little") << 30 * place
        return sign * value

    def size(self, address: int) -> int:
        """Of an object of variable size."""
        return self._memory.word(address + 2 * WORD)

    # -- dicts

    def items(self, address: int) -> Iterator[tuple[int, int]]:
        """The keys and values of a dict."""
        yield from self._entries(
            self._memory.word(address + self._at["dict_keys"]), self._memory.word(address + self._at["dict_values"])
        )

    def _entries(self, keys: int, values: int) -> Iterator[tuple[int, int]]:
        at, read = self._at, self._memory
        log2 = read.read(keys + at["keys_log2_index_bytes"], 1)[0]
        kind = read.read(keys + at["keys_kind"], 1)[0]
        count = read.word(keys + at["keys_count"])
        if log2 > 32 or count > _MOST_ITEMS:
            raise Unreadable(keys)
        begin, width = keys + at["keys_indices"] + (1 << log2), 2 if kind else 3
        words = read.words(begin, width * count) if count else ()
        own = read.words(values + at["values_first"], count) if values and count else ()
        for number in range(count):
            *_, key, value = words[number * width : (number + 1) * width]
            value = own[number] if own else value
            if key and value:
                yield key, value

    def get(self, mapping: int, name: str) -> int:
        """What a dict has under this string; 0: nothing."""
        return self._named(self.items(mapping), name)

    def _named(self, entries: Iterator[tuple[int, int]], name: str) -> int:
        string_type = 0
        for key, value in entries:
            kind = self.type_of(key)
            if not string_type and self.type_name(key) == "str":
                string_type = kind
            if kind == string_type and self.size(key) == len(name) and self.string(key) == name:
                return value
        return 0

    def attribute(self, address: int, name: str) -> int:
        """What an instance has under this name; 0: nothing."""
        kind = self.type_of(address)
        flags = self._memory.word(kind + self._at["type_flags"])
        if not flags & _MANAGED_DICT:
            raise Unreadable(address)
        mapping = self._memory.word(address - 3 * WORD)
        values = 0
        if self._minor == 11:
            values = 0 if mapping else self._memory.word(address - 4 * WORD)
        elif self._minor == 12:
            values = mapping + 1 if mapping & 1 else 0
        elif not mapping and flags & _INLINE_VALUES:
            values = address + self._memory.word(kind + self._at["type_basic_size"])
        if values:
            keys = self._memory.word(kind + self._at["type_cached_keys"])
            return self._named(self._entries(keys, values), name)
        return self.get(mapping, name) if mapping else 0

    # -- what is asked of them

    def thread_names(self, interpreter: int) -> dict[int, str]:
        """What threading calls the interpreter's threads, by ident."""
        modules = self._memory.word(interpreter + self._at["interpreter_modules"])
        module = self.get(modules, "threading") if modules else 0
        active = self.get(self._memory.word(module + _MODULE_DICT), "_active") if module else 0
        names = {}
        for key, value in self.items(active) if active else ():
            try:
                ident, name = self.number(key), self.attribute(value, "_name")
                if ident is not None and name and self.type_name(name) == "str":
                    names[ident] = self.string(name)
            except Unreadable:  # it ends just now
                continue
        return names

    def locals(self, frame: int, code: int) -> list[tuple[str, str]]:
        """The variables of a frame, in a few words each."""
        read, at = self._memory, self._at
        tags = 3 if self._minor >= 14 else 0
        if read.word(frame + at["frame_code"]) & ~tags != code:
            raise Unreadable(frame)
        names = read.word(code + at["code_localsplusnames"])
        count = self.size(names)
        if count > _MOST_LOCALS:
            raise Unreadable(names)
        words = read.words(frame + at["frame_locals"], count) if count else ()
        found = []
        for name, word in zip(read.words(names + at["tuple_items"], count) if count else (), words, strict=True):
            if tags and word & tags == tags:
                found.append((self.string(name), str(word >> 2)))
            elif word & ~tags:
                found.append((self.string(name), self._shown(word & ~tags)))
        if read.word(frame + at["frame_code"]) & ~tags != code:
            raise Unreadable(frame)
        return found

    def _shown(self, address: int) -> str:
        try:
            return self.summary(address)
        except Unreadable:
            return "?"

    def summary(self, address: int, depth: int = 1) -> str:
        """An object in a few words. Nothing of its own is called: of most only the type is known."""
        kind = self.type_name(address)
        if kind == "cell":
            value = self._memory.word(address + _CELL_VALUE)
            return self.summary(value, depth - 1) if value and depth else "?"
        if kind == "NoneType":
            return "None"
        if kind == "bool":
            return str(bool(self.number(address)))
        if kind == "int":
            number = self.number(address)
            return "int, a long one" if number is None else str(number)
        if kind == "float":
            return repr(struct.unpack("<d", self._memory.read(address + self._at["float_value"], WORD))[0])
        if kind == "str":
            return repr(self.string(address))
        if kind in ("list", "tuple", "bytes", "bytearray"):
            return f"{kind} of {self.size(address)}"
        if kind == "dict":
            return f"dict of {self._memory.word(address + self._at['dict_used'])}"
        return f"<{kind} at {address:#x}>"
