"""Event types and the types of their values, as data: what stands in the metadata of each chunk, in which order.

A type that the program makes is made with `event_type`, of the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vmscope.flight import metadata as _metadata
from vmscope.flight.catalogue import EVENTS

EVENT = "jdk.jfr.Event"
ANNOTATION = "java.lang.annotation.Annotation"

Annotations = tuple[tuple[str, str], ...]  # type and value; "" where it has none


class Field(NamedTuple):
    """`letter` is how the native encoder is given a value; "" for what only it writes."""

    name: str
    type: str
    letter: str
    pool: bool = False  # the value is a key of the pool of that type
    array: bool = False
    annotations: Annotations = ()


class Type(NamedTuple):
    name: str
    number: int
    fields: tuple[Field, ...] = ()
    parent: str = ""
    simple: bool = False  # readers show the one field in its place
    annotations: Annotations = ()
    category: str = ""


class Kind(NamedTuple):
    type: str
    letter: str
    annotations: Annotations = ()


# How a value is meant, in the table of events: its type, the encoder's letter, what readers show of it.
KINDS: dict[str, Kind] = {
    "boolean": Kind("boolean", "b"),
    "byte": Kind("byte", ""),
    "char": Kind("char", "l"),
    "short": Kind("short", "l"),
    "int": Kind("int", "l"),
    "long": Kind("long", "l"),
    "float": Kind("float", "f"),
    "double": Kind("double", "d"),
    "text": Kind("java.lang.String", "s"),
    "flag": Kind("boolean", "b"),
    "ushort": Kind("short", "l", (("jdk.jfr.Unsigned", ""),)),
    "uint": Kind("int", "l", (("jdk.jfr.Unsigned", ""),)),
    "ulong": Kind("long", "l", (("jdk.jfr.Unsigned", ""),)),
    "bytes": Kind("long", "l", (("jdk.jfr.DataAmount", "BYTES"),)),
    "bitrate": Kind("long", "l", (("jdk.jfr.DataAmount", "BITS"), ("jdk.jfr.Frequency", ""))),
    "hertz": Kind("long", "l", (("jdk.jfr.Frequency", ""),)),
    "rate": Kind("float", "f", (("jdk.jfr.Frequency", ""),)),
    "fraction": Kind("float", "f", (("jdk.jfr.Percentage", ""),)),
    "address": Kind("long", "l", (("jdk.jfr.Unsigned", ""), ("jdk.jfr.MemoryAddress", ""))),
    "ns": Kind("long", "l", (("jdk.jfr.Timespan", "NANOSECONDS"),)),
    "us": Kind("long", "l", (("jdk.jfr.Timespan", "MICROSECONDS"),)),
    "ms": Kind("long", "l", (("jdk.jfr.Timespan", "MILLISECONDS"),)),
    "ticks": Kind("long", "l", (("jdk.jfr.Timespan", "TICKS"),)),
    "moment": Kind("long", "l", (("jdk.jfr.Timestamp", "TICKS"),)),
    "epoch": Kind("long", "l", (("jdk.jfr.Timestamp", "MILLISECONDS_SINCE_EPOCH"),)),
}

# Values that are written once, into a pool of the chunk, and by their key in events.
# A line: the type's name and its fields. `inline:` values have no pool; a type with `=` is shown as its one field.
VALUES = """
    java.lang.Thread osName:text osThreadId:long javaName:text javaThreadId:long group:ThreadGroup virtual:flag
    java.lang.Class classLoader:ClassLoader name:Symbol package:Package modifiers:int hidden:flag
    jdk.types.StackTrace truncated:flag frames:StackFrame[]
    jdk.types.Method type:Class name:Symbol descriptor:Symbol modifiers:int hidden:flag
    jdk.types.Symbol = string:text
    jdk.types.FrameType = description:text
    jdk.types.ThreadState = name:text
    jdk.types.Package name:Symbol module:Module exported:flag
    jdk.types.Module name:Symbol version:Symbol location:Symbol classLoader:ClassLoader
    jdk.types.ClassLoader type:Class name:Symbol
    jdk.types.ThreadGroup parent:ThreadGroup name:text
    jdk.types.OldObject address:address type:Class description:text referrer:Reference
    jdk.types.OldObjectGcRoot description:text system:OldObjectRootSystem type:OldObjectRootType
    jdk.types.OldObjectRootSystem = system:text
    jdk.types.OldObjectRootType = type:text
    jdk.types.OldObjectArray size:int index:int
    jdk.types.OldObjectField name:text modifiers:short
    jdk.types.Reference array:OldObjectArray field:OldObjectField object:OldObject skip:int
"""
STRUCTURES = """
    jdk.types.StackFrame method:Method lineNumber:int bytecodeIndex:int type:FrameType
    jdk.types.VirtualSpace start:address committedEnd:address committedSize:bytes reservedEnd:address
        reservedSize:bytes
"""
ANNOTATIONS: dict[str, str] = {  # with the type of its value
    "jdk.jfr.Label": "text",
    "jdk.jfr.Category": "text[]",
    "jdk.jfr.ContentType": "",
    "jdk.jfr.Timestamp": "text",
    "jdk.jfr.Timespan": "text",
    "jdk.jfr.DataAmount": "text",
    "jdk.jfr.Unsigned": "",
    "jdk.jfr.MemoryAddress": "",
    "jdk.jfr.Percentage": "",
    "jdk.jfr.Frequency": "",
}
# All others say how a value is shown.
NO_CONTENT = {
    "jdk.jfr.Label",
    "jdk.jfr.Category",
    "jdk.jfr.ContentType",
}
PRIMITIVES = ("boolean", "byte", "char", "short", "int", "long", "float", "double", "java.lang.String")
# What is written most has numbers of one byte.
FREQUENT = ("jdk.ExecutionSample", "jdk.NativeMethodSample", "vmscope.WaitSample", "vmscope.GILWait")

START = Field("startTime", "long", "", annotations=(("jdk.jfr.Timestamp", "TICKS"),))
COMMON: dict[str, Field] = {
    "duration": Field("duration", "long", "D", annotations=(("jdk.jfr.Timespan", "TICKS"),)),
    "eventThread": Field("eventThread", "java.lang.Thread", "T", pool=True),
    "stackTrace": Field("stackTrace", "jdk.types.StackTrace", "K", pool=True),
}


def _lines(table: str) -> Iterator[list[str]]:
    """The words of each type; a line that is indented further belongs to the one before."""
    words: list[str] = []
    lines = [line for line in table.splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    for line in lines:
        if len(line) - len(line.lstrip()) == indent and words:
            yield words
            words = []
        words += line.split()
    yield words


POOLED = {words[0].rpartition(".")[2]: words[0] for words in _lines(VALUES)}
INLINE = {words[0].rpartition(".")[2]: words[0] for words in _lines(STRUCTURES)}
LETTERS = {"Class": "c", "Thread": "t"}


def _field(word: str) -> Field:
    name, _, kind = word.partition(":")
    if not kind:
        return COMMON[name]
    array = kind.endswith("[]")
    kind = kind.removesuffix("[]")
    if kind in KINDS:
        known = KINDS[kind]
        return Field(name, known.type, known.letter, False, array, known.annotations)
    if kind in POOLED:
        return Field(name, POOLED[kind], LETTERS.get(kind, "l"), pool=True)
    return Field(name, INLINE[kind], "" if array else _letters(INLINE[kind]), array=array)


def _letters(structure: str) -> str:
    """A structure without a pool is written field by field."""
    return next("".join(_field(w).letter for w in words[1:]) for words in _lines(STRUCTURES) if words[0] == structure)


def label(name: str) -> str:
    """`jdk.GCHeapSummary`: GC Heap Summary. Some views show this alone."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]", name.rpartition(".")[2])) or name


def event_type(name: str, number: int, fields: Iterable[str], category: str) -> Type:
    """`fields` are words as in the table of events."""
    annotations = (("jdk.jfr.Label", label(name)), ("jdk.jfr.Category", category))
    return Type(name, number, (START, *map(_field, fields)), EVENT, annotations=annotations, category=category)


def _values() -> Iterator[Type]:
    number = 4
    for name in PRIMITIVES:
        yield Type(name, number)
        number += 1
    for words in (*_lines(VALUES), *_lines(STRUCTURES)):
        simple = words[1] == "="
        yield Type(words[0], number, tuple(map(_field, words[2 if simple else 1 :])), simple=simple)
        number += 1
    for name, value in ANNOTATIONS.items():
        content: Annotations = () if name in NO_CONTENT else (("jdk.jfr.ContentType", ""),)
        yield Type(name, number, (_field(f"value:{value}"),) if value else (), ANNOTATION, annotations=content)
        number += 1


def _events(first: int) -> Iterator[Type]:
    rows = [(category, words) for category, table in EVENTS.items() for words in _lines(table)]
    rows.sort(key=lambda row: row[1][0] not in FREQUENT)
    for number, (category, words) in enumerate(rows, first):
        yield event_type(words[0], number, words[1:], category)


VALUE_TYPES: dict[str, Type] = {type_.name: type_ for type_ in _values()}
EVENT_TYPES: dict[str, Type] = {type_.name: type_ for type_ in _events(4 + len(VALUE_TYPES))}
NUMBERS: dict[str, int] = {name: type_.number for name, type_ in (VALUE_TYPES | EVENT_TYPES).items()}


def encoder_format(type_: Type) -> str:
    """The `fields` of the native encoder: a letter a value, `startTime` left out."""
    return "".join(field.letter for field in type_.fields[1:])


FORMATS: dict[str, str] = {name: encoder_format(type_) for name, type_ in EVENT_TYPES.items()}


def _annotations(annotations: Annotations) -> Iterator[_metadata.Element]:
    for name, value in annotations:
        attributes = {"class": str(NUMBERS[name])}
        if value:
            attributes["value-0" if name == "jdk.jfr.Category" else "value"] = value
        yield _metadata.Element("annotation", attributes, [])


def _element(type_: Type) -> _metadata.Element:
    attributes = {"id": str(type_.number), "name": type_.name}
    if type_.parent:
        attributes["superType"] = type_.parent
    if type_.simple:
        attributes["simpleType"] = "true"
    element = _metadata.Element("class", attributes, list(_annotations(type_.annotations)))
    for field in type_.fields:
        values = {"name": field.name, "class": str(NUMBERS[field.type])}
        if field.pool:
            values["constantPool"] = "true"
        if field.array:
            values["dimension"] = "1"
        element.children.append(_metadata.Element("field", values, list(_annotations(field.annotations))))
    return element


def metadata(more: Iterable[Type] = ()) -> bytes:
    """The metadata event of a chunk. `more`: types of the program's."""
    return _metadata.encode(map(_element, (*VALUE_TYPES.values(), *EVENT_TYPES.values(), *more)))
