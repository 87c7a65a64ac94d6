"""Settings files of the flight recorder (`.jfc`), as the JDK's tools write them: XML, read without its document types.

A file sets values of events. Some of these are controls: what a selection, a text or a flag of the file says, directly
or by way of conditions, and what a client may choose (`gc=high`).
"""

from __future__ import annotations

from collections.abc import Callable

from vmscope.errors import OptionError

MOST = 4 << 20  # bytes of a file; the JDK's have 40 kB
DEEPEST = 32  # elements in one another

Values = dict[str, dict[str, str]]  # by event and setting


class Element:
    """One of XML's, with the text that stands in it."""

    __slots__ = ("attributes", "children", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes, self.text = name, attributes, ""
        self.children: list[Element] = []

    def all(self, name: str) -> list[Element]:
        return [each for each in self.children if each.name == name]

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")


def parse(data: bytes, path: str) -> Element:
    """The root. OptionError for what is not XML, or has a document type: its entities could be of any size."""
    from xml.parsers import expat

    def refuse(*_: object) -> None:
        raise OptionError(f"{path}: a settings file has no document type", path=path)

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > DEEPEST:
            raise OptionError(f"{path}: its elements are nested too deeply", path=path)
        element = Element(name, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def text(data: str) -> None:
        stack[-1].text += data

    stack = [Element("", {})]
    top = stack[0]
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise OptionError(f"{path}: {error}", path=path) from error
    return top.children[0]


class Configuration:
    """What a file says."""

    def __init__(self, root: Element) -> None:
        self._rows = [
            (event.get("name"), setting.get("name"), setting.text.strip(), setting.get("control"))
            for event in root.all("event")
            for setting in event.all("setting")
        ]
        self._controls = [each for control in root.all("control") for each in control.children]
        self._values: dict[str, str] = {}  # of selections, texts and flags
        self.choices: dict[str, dict[str, str]] = {}  # of selections, by the name that a client uses
        for each in self._controls:
            name = each.get("name")
            if each.name == "selection":
                self.choices[name] = {option.get("name"): option.text.strip() for option in each.all("option")}
                self._values[name] = self.choices[name].get(each.get("default"), "")
            elif each.name in ("text", "flag"):
                self._values[name] = each.text.strip()

    def has(self, name: str) -> bool:
        return name in self._values

    def choose(self, name: str, value: str) -> None:
        """OptionError for what a selection does not have."""
        choices = self.choices.get(name)
        self._values[name] = value if choices is None else chosen(value, choices)[1]

    def values(self) -> Values:
        """Each event's settings."""
        controls = dict(self._values)
        for each in self._controls:
            if each.name == "condition":
                holds = all(_holds(inner, controls) for inner in each.children)
                value = each.attributes.get("true" if holds else "false")
                if value is not None:
                    controls[each.get("name")] = value
        found: Values = {}
        for event, setting, text, control in self._rows:
            found.setdefault(event, {})[setting] = controls.get(control, text)
        return found


def chosen(value: str, choices: dict[str, str]) -> tuple[str, str]:
    """The name of a choice and what it means."""
    if value not in choices:
        names = [f"'{name}'" for name in choices]
        raise OptionError(f"Incorrect value '{value}'. Valid values are {', '.join(names[:-1])} and {names[-1]}.")
    return value, choices[value]


_OPERATORS: dict[str, Callable[[list[bool]], bool]] = {
    "and": all,
    "or": any,
    "not": lambda inner: not all(inner),
}


def _holds(element: Element, controls: dict[str, str]) -> bool:
    if element.name == "test":
        return controls.get(element.get("name")) == element.get("value")
    operator = _OPERATORS.get(element.name, all)
    return operator([_holds(inner, controls) for inner in element.children])


def read(path: str) -> Configuration:
    """OSError where there is no such file, OptionError where it is not a settings file."""
    with open(path, "rb") as file:
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise OptionError(f"{path}: a settings file has at most {MOST >> 20} MiB", path=path)
    return Configuration(parse(data, path))
