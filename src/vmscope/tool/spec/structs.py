"""What functions of the interface give back, or take, in more than one piece: JVM TI's structs under their names."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple


class LineNumberEntry(NamedTuple):
    """From `start_location` to the next entry's the code belongs to `line_number`.

    A location is the offset of an instruction in `co_code`, in bytes; line numbers begin at 1.
    """

    start_location: int
    line_number: int


class LocalVariableEntry(NamedTuple):
    """A variable of a method: it may have a value from `start_location` on, for `length` bytes of code.

    `signature` is that of a class: `Lbuiltins/object;`, for `*` a tuple's, for `**` a dict's. `generic_signature` is
    None. `slot` is what `get_local_object` and its kin take.
    """

    start_location: int
    length: int
    name: str
    signature: str
    generic_signature: str | None
    slot: int


class ConstantPool(NamedTuple):
    """`constants`: the marshalled tuple of all methods' `(co_consts, co_names)`; `entries`: how many there are."""

    entries: int
    constants: bytes


class ClassDefinition(NamedTuple):
    """A class and its new code: marshalled, with or without a .pyc's header, or a code object; of the class's body, or
    of any code around it, such as its module's."""

    klass: type
    class_bytes: bytes | CodeType
