"""The documentation knows every counter, VM option and sub-command, as the code's own tables have them."""

from __future__ import annotations

import re
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodDescriptorType, ModuleType

import pytest

import vmscope
from vmscope import commands, tool
from vmscope.cli import COMMANDS
from vmscope.commands.operations import OPERATIONS
from vmscope.commands.registry import TABLE
from vmscope.counters.catalogue import CATALOGUE
from vmscope.flags import FLAGS
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.events import EVENTS
from vmscope.tool.spec.functions import BY_METHOD

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("counters.md", [row[0] for row in CATALOGUE]),
        ("options.md", [row[0] for row in FLAGS]),
        ("diagnostic-commands.md", [*TABLE, *OPERATIONS]),
        ("tool-functions.md", [f"\n## {name}\n" for name in BY_METHOD]),
        ("tool-capabilities.md", [name.lower() for name in Capability.__members__]),
        ("tool-events.md", [row[1] for row in EVENTS]),
    ],
    ids=["counters", "options", "diagnostic commands", "functions", "capabilities", "events"],
)
def test_a_page_names_each(page: str, names: list[str]) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [name for name in names if name not in text] == []


def test_each_sub_command_has_a_page_with_an_example() -> None:
    folder = ROOT / "docs" / "commands"
    present = {name for name, _ in COMMANDS if (ROOT / "src" / "vmscope" / "cli" / f"{name}.py").exists()}
    assert {path.stem for path in folder.glob("*.md")} - {"index"} == present
    assert [name for name in present if "$ vmscope" not in (folder / f"{name}.md").read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_help_fits_a_terminal(name: str) -> None:
    """But for the JDK's rows in examples."""
    text = import_module(f"vmscope.cli.{name}").HELP
    shown = text if name != "jstat" else text.partition("\nexample:")[0]
    assert [line for line in shown.splitlines() if len(line) > 80] == []


# Attributes without an underscore that are vmscope's own: other rooms use them, programs do not.
INTERNAL = {
    "vmscope.Constant": {"entries"},
    "vmscope.Counter": {"entries", "fraction"},
    "vmscope.FloatGauge": {"entries"},
    "vmscope.Gauge": {"entries"},
    "vmscope.Histogram": {"entries"},
    "vmscope.Text": {"entries", "units"},
    "vmscope.VM": {"examine", "check", "file", "threads"},
    "vmscope.tool.Agent": {"code", "is_over", "call", "unload"},
    "vmscope.tool.Host": {
        *(
            "enter",
            "start_early",
            "end_of_main",
            "end",
            "resource_holders",
            "add_event_source",
            "changed",
            "drop",
            "renew",
        ),
        *("wanted", "post"),
    },
    "vmscope.tool.Thread": {"parked", "belongs_to", "end", "begin"},
}
DIRECTIVE = re.compile(r"^ *\.\. auto\w+:: ([\w.]+).*\n((?: +:.*\n(?: {6,}.*\n)*)*)", re.MULTILINE)


def reference() -> dict[str, set[str]]:
    """What docs/api has directives for, and the members of each: in its list, or in directives of their own below."""
    found: dict[str, set[str]] = {}
    for page in (ROOT / "docs" / "api").glob("*.md"):
        holder = ""
        for name, options in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if name.startswith("vmscope."):
                holder = name
                found[name] = set(re.findall(r"\w+", options.partition(":members:")[2].partition("\n   :")[0]))
            else:
                found[holder].add(name)
    return found


def members(klass: type) -> list[tuple[type, str, object]]:
    """What it and its bases in vmscope have, and which of them."""
    ours = [each for each in klass.__mro__ if each.__module__.startswith("vmscope")]
    return [(each, name, value) for each in ours for name, value in vars(each).items()]


@pytest.mark.parametrize("module", [vmscope, tool, commands], ids=lambda module: str(module.__name__))
def test_each_public_name_has_a_docstring_and_a_place_in_the_reference(module: ModuleType) -> None:
    """So has each method and property of a class, but those of enumerations and of exceptions."""
    known = reference()
    for name in set(module.__all__) - {"__version__"}:
        path, thing = f"{module.__name__}.{name}", getattr(module, name)
        assert thing.__doc__, f"{path} has no docstring"
        assert path in known, f"{path} is not in docs/api"
        if not isinstance(thing, type) or issubclass(thing, (Enum, tuple, BaseException)) or thing is tool.Environment:
            continue
        for klass, member, value in members(thing):
            kinds: tuple[type, ...] = (FunctionType, classmethod, property, MethodDescriptorType)
            if klass.__module__.startswith("vmscope.native"):
                kinds = (FunctionType, classmethod, MethodDescriptorType)  # C's attributes are of other types too
            described = isinstance(value, kinds)
            if described and not member.startswith("_") and member not in INTERNAL.get(path, ()):
                assert getattr(thing, member).__doc__, f"{path}.{member} has no docstring"
                assert member in known[path], f"{path}.{member} is not in docs/api"


def test_each_function_of_an_environment_is_in_the_reference() -> None:
    known = reference()
    assert [name for name in BY_METHOD if f"vmscope.tool.Environment.{name}" not in known] == []
    assert [name for name in BY_METHOD if not getattr(tool.Environment, name).__doc__] == []


def test_the_reference_has_nothing_that_is_gone() -> None:
    for path in reference():
        module, _, name = path.rpartition(".")
        holder = tool.Environment if module == "vmscope.tool.Environment" else import_module(module)
        assert hasattr(holder, name), path


def test_the_generator_replaces_only_its_own_part() -> None:
    sys.path.append(str(ROOT / "scripts"))
    import tables

    page = f"before\n{tables.BEGIN}old\n{tables.END}after\n"
    assert tables.updated(page, "new\n") == f"before\n{tables.BEGIN}\nnew\n\n{tables.END}after\n"
    with pytest.raises(ValueError, match="begin generated"):
        tables.updated("no place", "new\n")


HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: str(page.stem))
def test_a_how_to_shows_the_program_that_it_runs(page: Path) -> None:
    """Each block of Python is part of an example, and each example that it names is there."""
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"examples/how_to/\w+\.py", text):
        assert (ROOT / name).exists(), name
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "how_to").glob("*.py")]
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        assert page.stem == "start" or any(block.strip() in source for source in sources), block


def test_each_example_of_a_task_has_its_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in HOW_TO)
    unused = [path.name for path in (ROOT / "examples" / "how_to").glob("*.py") if path.name not in pages]
    assert unused == []
