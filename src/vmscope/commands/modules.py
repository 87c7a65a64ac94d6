"""Python.modules: what is imported, of which kind and version, and from where."""

from __future__ import annotations

import sys

from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

_KINDS = {
    "BuiltinImporter": "builtin",
    "FrozenImporter": "frozen",
    "SourceFileLoader": "source",
    "SourcelessFileLoader": "bytecode",
    "ExtensionFileLoader": "extension",
    "NamespaceLoader": "namespace",
    "_NamespaceLoader": "namespace",
    "zipimporter": "zip",
}

ModuleType = type(sys)
_SPEC = sys.modules["_frozen_importlib"].ModuleSpec


class Module:
    """An imported module: nothing of it is called, not even a module's `__getattr__`."""

    __slots__ = ("file", "kind", "loader", "name", "version")

    def __init__(self, name: str, module: object) -> None:
        values: dict[str, object] = {}
        if issubclass(type(module), ModuleType):
            values = object.__getattribute__(module, "__dict__")
        spec = values.get("__spec__")
        self.name = name
        self.loader = _of_spec(spec, "loader") or values.get("__loader__")
        self.file = _text(values.get("__file__")) or _text(_of_spec(spec, "origin"))
        self.version = _text(values.get("__version__"))
        self.kind = _KINDS.get(type_name(self.loader), type_name(self.loader) if self.loader is not None else "-")


def _of_spec(spec: object, name: str) -> object:
    return getattr(spec, name, None) if type(spec) is _SPEC else None


def _text(value: object) -> str:
    return value if type(value) is str else ""


def type_name(thing: object) -> str:
    """Of a loader, which may be the class itself."""
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def modules() -> list[Module]:
    """All, by name."""
    there = sys.modules.copy()
    return [Module(name, there[name]) for name in sorted(name for name in there if type(name) is str)]


def run(out: Output, name: str | None, kind: str | None) -> None:
    found = [
        each
        for each in modules()
        if (name is None or f"{each.name}.".startswith(f"{name}.")) and (kind is None or each.kind == kind)
    ]
    width = max([4, *(len(each.name) for each in found)])
    out.write(f"{'Name':<{width}} {'Kind':<10} {'Version':<12} File\n")
    for each in found:
        out.write(f"{each.name:<{width}} {each.kind:<10} {each.version or '-':<12} {each.file or '-'}\n")
    out.write(f"Total = {len(found)}\n")


COMMANDS = (
    Command(
        "Python.modules",
        "The modules that are imported.",
        run,
        arguments=(
            Argument("name", "Only this one and those in it."),
            Argument("-kind", f"Only those of one kind: {', '.join(dict.fromkeys(_KINDS.values()))}."),
        ),
    ),
)
