"""The house rules of docs/architecture.md: imports go one way, functions stay short, fast paths stay light."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import vmscope
from vmscope import native

PACKAGE = Path(vmscope.__file__).parent
ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 80  # of a function


# The public face. A name leaves it only with a deprecation, and comes to it with a page of documentation.
PUBLIC = (
    "VM Constant Counter Event FloatGauge Gauge Histogram Status Text Units VMScopeError Variability __version__ "
    "constant counter event float_gauge gauge histogram instrument start status stop text vm vms"
).split()

# Who reads the environment but `environ.py`, and which variables: "*" is all of them. None of them loads code, names a
# file that is written or changes an option of ours.
READERS = {
    "cli/_java.py": {"/proc/self/environ"},  # the locale that the JDK's tools would print in
    "cli/_table.py": {"NO_COLOR", "TERM", "COLUMNS"},
    "cli/jstat.py": {"USERPROFILE"},  # Windows: where the user's own views are
    "commands/info.py": {"*"},  # shown to who may attach
    "integrations/prometheus/collector.py": {"*"},  # prometheus_client's variables, as it reads them
    "integrations/prometheus/metrics.py": {"*"},
    "integrations/prometheus/values.py": {"*"},
    "counters/identity.py": {"PYTHONHASHSEED"},  # what CPython itself has obeyed
    "counters/standard.py": {"PYTHONTRACEMALLOC"},
    "tool/jni/java_system.py": {"*"},  # System.getenv: an agent's own question
    "tool/properties.py": {"~"},
    "win32.py": {"USERNAME"},  # whose region directory it is, as HotSpot has it
}


def module_id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def room_of(path: Path) -> str:
    """`wire` for wire/decode.py, `errors` for errors.py; `flight/convert` for what is in that room within a room."""
    return room(path.relative_to(PACKAGE).with_suffix("").parts)


def room(parts: Sequence[str]) -> str:
    """The room of a module, by its name's parts."""
    within = "/".join(parts[:2])
    return within if within in HOUSE.direct else parts[0]


class House:
    """The table: which rooms each room may import, itself and what its own rooms build on included."""

    def __init__(self, table: str) -> None:
        self.direct: dict[str, set[str]] = {}
        self.exceptions: dict[str, set[str]] = {}  # one module's own permission: cli/run.py -> {runtime}
        everything = False
        for cell, allowed in re.findall(r"^\| `([\w./]+)` \|.*\| ([^|]*) \|$", table, re.MULTILINE):
            room = cell.rstrip("/").removesuffix(".py")
            for module, extra in re.findall(r"`(\w+)` alone also (\w+)", allowed):
                self.exceptions[f"{room}/{module}.py"] = {extra}
            names = set(re.findall(r"[\w/]+", allowed.split(";")[0])) - {"nothing"}
            everything = "all" in names
            self.direct[room] = set(self.direct) if everything else names
        assert everything, "the last rows, __init__.py and what uses it, may import all"

    def allowed(self, path: Path) -> set[str]:
        room = room_of(path)
        if room == "__main__":
            return {"cli"}
        todo = [*self.direct[room], *self.exceptions.get(module_id(path), ()), "errors"]
        allowed = {room}
        while todo:
            name = todo.pop()
            if name not in allowed:
                allowed.add(name)
                todo.extend(self.direct[name])
        return allowed


HOUSE = House(TABLE.read_text(encoding="utf-8").partition("\n## ")[0])


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the room of each import of our own, lazy and type-only ones included."""
    here = ["vmscope", *path.relative_to(PACKAGE).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: -node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            targets = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            if parts[0] == "vmscope" and parts[1:] != ["__version__"]:
                found = room(parts[1:]) if parts[1:] else ""
                yield node.lineno, found if found in HOUSE.direct else "__init__"


def test_the_table_names_every_room() -> None:
    rooms = {room_of(path) for path in MODULES} - {"__main__"}
    assert rooms <= set(HOUSE.direct), f"not in {TABLE.name}: {sorted(rooms - set(HOUSE.direct))}"
    assert {"errors", "wire", "cli"} <= set(HOUSE.direct)


def test_the_table_goes_one_way() -> None:
    seen: set[str] = set()
    for room, names in HOUSE.direct.items():
        assert names <= seen, f"{room} imports what stands below it: {sorted(names - seen)}"
        seen.add(room)


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_imports_go_one_way(path: Path) -> None:
    allowed = HOUSE.allowed(path)
    wrong = [f"line {line}: {room}" for line, room in imported_rooms(path) if room not in allowed]
    assert not wrong, f"{module_id(path)} may import {sorted(allowed)} only"


def module_name(path: Path) -> str:
    return ".".join(("vmscope", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Modules of ours that are imported when the code runs, lazily too; not for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                yield name if name in known else node.module
        yield from imported_modules(node, known)


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = {module_name(path) for path in MODULES}
    graph = {}
    for path in MODULES:
        name = module_name(path)
        graph[name] = {*imported_modules(ast.parse(path.read_text(encoding="utf-8")), known)} & known - {name}
    assert len([*TopologicalSorter(graph).static_order()]) == len(known), "CycleError names a circle"


def test_no_header_includes_itself_by_way_of_others() -> None:
    headers = {str(path.relative_to(PACKAGE / "native")): path for path in PACKAGE.rglob("*.h")}
    graph = {
        name: {*re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)} & headers.keys()
        for name, path in headers.items()
    }
    assert {*TopologicalSorter(graph).static_order()} == headers.keys()


def test_contributing_says_where_things_live() -> None:
    rows = re.findall(r"^\| .+\? \| `(src/\S+)` \| `(.+)` \|$", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 11
    assert [row for row in rows if row[1] not in (ROOT / row[0]).read_text(encoding="utf-8")] == []


def variables_read(path: Path) -> set[str]:
    """The variables of the environment that a module reads; "*" where it does not name one."""
    found: set[str] = set()
    named: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        # os.environ.get("NAME"), os.environ["NAME"], "NAME" in os.environ, os.getenv("NAME"), expanduser("~/x")
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="environ") as whole), args=[ast.Constant(name), *_]
                )
                | ast.Subscript(value=ast.Attribute(attr="environ") as whole, slice=ast.Constant(name))
                | ast.Compare(left=ast.Constant(name), comparators=[ast.Attribute(attr="environ") as whole])
            ):
                found.add(str(name))
                named.add(whole)
            case ast.Attribute(value=ast.Name(id="os" | "posix"), attr="environ" | "environb" | "getenv" | "getenvb"):
                if node not in named:
                    found.add("*")
            case ast.ImportFrom(module="os" | "posix", names=names):
                found |= {"*" for name in names if "env" in name.name}
            case ast.Attribute(attr="expanduser" | "expandvars" | "gettempdir" | "mkstemp" | "mkdtemp"):
                found.add("~")
            case ast.Constant("/proc/self/environ"):
                found.add("/proc/self/environ")
            case ast.Constant(str(text)) if "os.environ" in text:  # code that is run elsewhere
                found.add("*")
    return found


def test_one_module_reads_the_environment() -> None:
    """What it loads, names or changes is looked up in `environ.py`, which knows when it is not obeyed."""
    found = {module_id(path): variables_read(path) for path in MODULES if path.name != "environ.py"}
    assert {name: names for name, names in found.items() if names} == READERS
    for path in PACKAGE.rglob("*.[ch]"):
        assert not re.search(r"\b(?:secure_)?getenv\b|\benviron\b", path.read_text(encoding="utf-8")), path


def functions(path: Path) -> Iterator[tuple[int, int]]:
    """Where each function of a file begins, and how many lines its body has."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1
        return
    begin = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            begin = number
        elif line == "}":
            yield begin, number - begin + 1


@pytest.mark.parametrize("path", [*MODULES, *sorted(PACKAGE.rglob("*.c"))], ids=module_id)
def test_functions_stay_short(path: Path) -> None:
    long = [f"line {begin}: {lines} lines" for begin, lines in functions(path) if lines > MAX_LINES]
    assert not long, f"functions of {module_id(path)} have more than {MAX_LINES} lines"


def test_the_public_names_are_frozen() -> None:
    assert sorted(vmscope.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(vmscope))


# -- one way to a terminal ------------------------------------------------------------------------

STREAMS = {"stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"}
PRINTS = {
    "print",
    "input",
    "print_exc",
    "print_exception",
    "print_last",
    "print_tb",
    "print_stack",
    "warn",
    "StreamHandler",
}
# What may touch a stream besides terminal.py: the twin of the interpreter's own way to report.
EXCEPT = {"native/events/dispatch.py": {"stderr"}}
# Who may pass the rule over: what has applied it, cell by cell or piece by piece, and what is made for scripts.
RAW = {
    "put": {
        "cli/_profile.py",
        "cli/profile.py",
        "cli/_unprepared.py",
        "cli/_table.py",
        "cli/cmd.py",
        "cli/counters.py",
        "cli/ps.py",
        "cli/stat.py",
    },
    "pass_on": {"cli/_java.py", "cli/jcmd.py"},
    "write_all": {"agents/dumps.py", "commands/_log_output.py"},
}


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of what writes to a standard stream: by name, by call, or by its descriptor."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            if node.attr in STREAMS:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            yield from ((node.lineno, each.name) for each in node.names if each.name in STREAMS)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            number = isinstance(node.args[0], ast.Constant) and node.args[0].value in (1, 2) if node.args else False
            if (name in PRINTS and called != "terminal.warn") or (name == "write" and number):
                yield node.lineno, name


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "terminal.py"], ids=module_id)
def test_only_the_rule_s_module_writes_to_standard_output_and_error(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = EXCEPT.get(module_id(path), set())
    assert [each for each in writes(tree) if each[1] not in allowed] == []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).partition(".")[0] == "terminal":
            assert module_id(path) in RAW.get(node.attr, {module_id(path)}), f"line {node.lineno}: {node.attr}"


def test_the_check_finds_each_way_to_write() -> None:
    code = """
print(1); sys.stdout.write("a"); from sys import stderr; os.write(2, b"a"); traceback.print_exc()
logging.StreamHandler(); warnings.warn("a"); x = sys.__stderr__
terminal.warn("a"); os.write(fd, b"a"); out.write("a"); "print(1)"
"""
    assert sorted(name for _, name in writes(ast.parse(code))) == sorted(
        ["print", "stdout", "stderr", "write", "print_exc", "StreamHandler", "warn", "__stderr__"]
    )


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.[ch]")), ids=module_id)
def test_c_writes_nothing_but_the_name_of_what_crashed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    streams = r"\b(?:printf|puts|perror|PyErr_Print\w*|PySys_Write\w+)\(|\bstd(?:out|err)\b"
    found = re.findall(rf"{streams}|\bd?(?:write|writev|printf)\((?:STD(?:OUT|ERR)_FILENO|[12]),", text)
    assert found == (["write(STDERR_FILENO,"] if path.name == "problematic_frame.c" else [])


# -- how tests wait -------------------------------------------------------------------------------

SLEEP = re.compile(r"\bsleep\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
ALIVE = 20  # seconds: who sleeps for so long is there until it is killed


def is_a_wait(argument: str) -> bool:
    """Whether that is slept for a time: nobody waits by `sleep(0)`, nor by being there."""
    try:
        return 0 < float(argument.replace("_", "")) < ALIVE
    except ValueError:
        return argument not in ("", "PATIENCE")


def test_whoever_sleeps_says_why() -> None:
    """A test waits for a state (tests/wait.py). Where time itself is tested, or there is nothing to wait for, the line
    has a comment, or one above it; so have programs in strings."""
    found = []
    for path in sorted((Path(__file__).parents[1]).rglob("*.py")):
        above = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            waits = [each[1] for each in SLEEP.finditer(line) if is_a_wait(each[1].strip())]
            explained = "# " in line or above.lstrip().startswith("# ") or re.match(r"\s*(async )?def ", line)
            if waits and not explained:
                found.append(f"{path}:{number}: {line.strip()}")
            above = line
    assert found == [], "wait for a state by wait_for, or say in a comment why that cannot be"


def test_an_assert_of_any_or_all_shows_what_there_was() -> None:
    """pytest shows of `all(...)` that it is False: a list of what is wrong, compared with [], says more."""
    found = []
    for path in sorted((Path(__file__).parents[1]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.Assert(test=ast.Call(func=ast.Name(id="any" | "all")), msg=None)
                    | ast.Assert(test=ast.UnaryOp(operand=ast.Call(func=ast.Name(id="any" | "all"))), msg=None)
                ):
                    found.append(f"{path}:{node.lineno}")
    assert found == []


def test_a_mark_in_a_name_stands_once() -> None:
    """What ends the name of a float's entry, and of a gauge's time: every other module takes it from there."""
    found = [
        (module_id(path), node.value)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in (native.FLOAT, native.TIME)
    ]
    assert found == [("native/__init__.py", native.FLOAT), ("native/__init__.py", native.TIME)]
