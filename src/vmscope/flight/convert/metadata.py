"""What types a chunk has: each chunk describes its own, so that a reader needs to know none beforehand."""

from __future__ import annotations

from vmscope.flight.convert.encoding import Integers, PooledString, boolean, composite, fixed, varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vmscope.flight.convert.encoding import Read

STRING = "java.lang.String"
NUMBERS = {"boolean": 8, "byte": 8, "char": 16, "short": 16, "int": 32, "long": 64, "float": 32, "double": 64}

_DEEPEST = 32  # of elements, and of values within values


class Element:
    """A node of the tree that the types are written as."""

    __slots__ = ("attributes", "children", "name")

    def __init__(self, name: str, attributes: dict[str, str], children: list[Element]) -> None:
        self.name = name
        self.attributes = attributes
        self.children = children

    def all(self, name: str) -> Iterator[Element]:
        """The children of this name."""
        return (child for child in self.children if child.name == name)

    def number(self, name: str) -> int:
        """An attribute as a number. ValueError."""
        text = self.attributes.get(name, "0")
        if not text.removeprefix("-").isdecimal() or len(text) > 20:
            raise ValueError(f"<{self.name} {name}={text[:40]!r}>, which is not a number")
        return int(text)


class Field:
    """A field of a type: its values are of `type`; `pooled` ones are keys of that type's pool."""

    __slots__ = ("annotations", "array", "index", "name", "pooled", "type")

    def __init__(self, element: Element, index: int, type: Type, annotations: dict[str, list[str]]) -> None:
        self.name = element.attributes.get("name", "")
        self.index = index
        self.type = type
        self.pooled = element.attributes.get("constantPool") == "true"
        self.array = element.number("dimension") > 0
        self.annotations = annotations


class Type:
    """A type: of an event, of a value, or a number's."""

    __slots__ = ("annotations", "bits", "fields", "id", "name", "read", "simple", "super", "width")

    def __init__(self, element: Element) -> None:
        self.id = element.number("id")
        self.name = element.attributes.get("name", "")
        self.super = element.attributes.get("superType", "")
        self.simple = element.attributes.get("simpleType") == "true"
        self.fields: dict[str, Field] = {}
        self.annotations: dict[str, list[str]] = {}
        self.bits = NUMBERS.get(self.name, 0)
        self.read: Read | None = None  # of a value, once one is wanted
        self.width = 0  # of how many varints a value with fields consists; 0: of something else


class Types:
    """All types of a chunk, by number and by name."""

    __slots__ = ("_integers", "by_id", "by_name")

    def __init__(self, data: bytes, at: int, integers: Integers) -> None:
        """From a metadata event's strings on. Raises ValueError, IndexError."""
        self._integers = integers
        root = _tree(data, at, integers)
        elements = [element for part in root.all("metadata") for element in part.all("class")]
        self.by_id: dict[int, Type] = {}
        self.by_name: dict[str, Type] = {}
        for element in elements:
            type = Type(element)
            if type.id in self.by_id:
                raise ValueError(f"two types of the number {type.id}")
            self.by_id[type.id] = self.by_name[type.name] = type
        for element in elements:
            self._describe(self.by_id[element.number("id")], element)

    def _describe(self, type: Type, element: Element) -> None:
        type.annotations = self._annotations(element)
        for index, child in enumerate(element.all("field")):
            of = self.by_id.get(child.number("class"))
            if of is None:
                raise ValueError(f"a field of {type.name} is of the type {child.number('class')}, which is missing")
            field = Field(child, index, of, self._annotations(child))
            if field.name in type.fields:
                raise ValueError(f"{type.name} has two fields {field.name!r}")
            type.fields[field.name] = field

    def _annotations(self, element: Element) -> dict[str, list[str]]:
        """Name of the annotation's type, and its values."""
        found = {}
        for each in element.all("annotation"):
            type = self.by_id.get(each.number("class"))
            if type is not None:
                found[type.name] = [value for key, value in each.attributes.items() if key.startswith("value")]
        return found

    # -- readers

    def reader(self, type: Type, depth: int = 0) -> Read:
        """What reads a value of a type. ValueError where no value can be."""
        if type.read is None:
            type.read, type.width = self._make_reader(type, depth)
        return type.read

    def _make_reader(self, type: Type, depth: int) -> tuple[Read, int]:
        integers = self._integers
        numbers: dict[str, Read] = {
            "boolean": boolean, "byte": fixed(">b"), "char": integers.char, "short": integers.short,
            "int": integers.int, "long": integers.long, "float": fixed(">f"), "double": fixed(">d"),
            STRING: integers.string,
        }  # fmt: skip
        if type.name in numbers:
            return numbers[type.name], 0
        if not type.fields:
            raise ValueError(f"the type {type.name} has no fields, and so no values")
        if depth > _DEEPEST:
            raise ValueError(f"values of the type {type.name} have values within values without an end")
        return composite([self._field_reader(field, depth + 1) for field in type.fields.values()])

    def _field_reader(self, field: Field, depth: int) -> Read:
        one = self._integers.long if field.pooled else self.reader(field.type, depth)
        if not field.array:
            return one
        if one is varint:
            return self._integers.array_of_numbers
        width = field.type.width
        return self._integers.array_of_rows(width) if width else self._integers.array(one)

    def pools_of(self, names: Callable[[str], bool]) -> set[int]:
        """The types whose pools are needed for values of those types, and of the types of their fields."""
        todo = [type for type in self.by_id.values() if names(type.name)]
        seen: set[int] = set()
        pooled: set[int] = set()
        while todo:
            for field in todo.pop().fields.values():
                if field.pooled or field.type.name == STRING:
                    pooled.add(field.type.id)
                if field.type.id not in seen:
                    seen.add(field.type.id)
                    todo.append(field.type)
        return pooled


def _tree(data: bytes, at: int, integers: Integers) -> Element:
    count, at = integers.count(data, at)
    strings: list[str] = []
    for _ in range(count):
        text, at = integers.string(data, at)
        if isinstance(text, PooledString):
            raise ValueError("a string of the types stands in a pool")
        strings.append(str(text or ""))

    def word(at: int) -> tuple[str, int]:
        index, at = integers.integer(data, at)
        if not 0 <= index < len(strings):
            raise ValueError(f"the string {index} of {len(strings)}")
        return strings[index], at

    def element(at: int, depth: int) -> tuple[Element, int]:
        if depth > _DEEPEST:
            raise ValueError("elements within elements without an end")
        name, at = word(at)
        count, at = integers.count(data, at)
        attributes = {}
        for _ in range(count):
            key, at = word(at)
            attributes[key], at = word(at)
        count, at = integers.count(data, at)
        children = []
        for _ in range(count):
            child, at = element(at, depth + 1)
            children.append(child)
        return Element(name, attributes, children), at

    return element(at, 0)[0]
