"""The registry of diagnostic commands: grammar, help, what agents add, what a command must not leave behind."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnostics import refused, run
from vmscope import commands, tool
from vmscope.commands import Argument, Command, registry
from vmscope.commands.arguments import ILLEGAL, parse
from vmscope.errors import AgentError, CommandError


@pytest.fixture
def added() -> Iterator[list[Command]]:
    """Commands that go when the test ends."""
    added: list[Command] = []
    yield added
    for command in added:
        commands.unregister(command)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("STRING", "a=b c", "a=b c"),
        ("STRING", None, None),
        ("BOOLEAN", None, True),
        ("BOOLEAN", "FALSE", False),
        ("INT", "-12", -12),
        ("INT", " +7", 7),
        ("INT", "9" * 30, (1 << 63) - 1),
        ("INT", "-" + "9" * 30, -(1 << 63)),
        ("JULONG", "12", 12),
        ("MEMORY SIZE", "3m", 3 << 20),
        ("MEMORY SIZE", "7", 7),
        ("NANOTIME", "2s", 2_000_000_000),
        ("NANOTIME", "5us", 5_000),
        ("NANOTIME", "0", 0),
        ("STRING SET", "a,b", ("a", "b")),
        ("STRING SET", "", ()),
    ],
)
def test_values(type: str, text: str | None, value: object) -> None:
    assert Argument("-x", "", type).read(text) == value


@pytest.mark.parametrize(
    ("type", "text", "message"),
    [
        ("BOOLEAN", "1", "Boolean parsing error in command argument '-x'. Could not parse: 1."),
        ("INT", None, "Integer parsing error in command argument '-x'. Could not parse: ."),
        ("INT", "1_000", "Integer parsing error in command argument '-x'. Could not parse: 1_000."),
        ("INT", "\u0661", "Integer parsing error in command argument '-x'. Could not parse: \u0661."),
        ("JULONG", "-1", "Integer parsing error in command argument '-x'. Could not parse: -1."),
        ("MEMORY SIZE", "-5", "Parsing error memory size value: negative values not allowed"),
        ("MEMORY SIZE", "5T", "Parsing error memory size value: invalid value"),
        ("NANOTIME", "10", "Integer parsing error nanotime value: unit required"),
        ("NANOTIME", "10q", "Integer parsing error nanotime value: illegal unit"),
        ("NANOTIME", "s", "Integer parsing error nanotime value: syntax error"),
    ],
)
def test_values_that_are_none(type: str, text: str | None, message: str) -> None:
    with pytest.raises(CommandError) as refusal:
        Argument("-x", "", type).read(text)
    assert str(refusal.value) == ILLEGAL + message


def test_the_pid_in_a_files_name() -> None:
    assert Argument("file", "", "FILE").read("/tmp/%p-%%p") == f"/tmp/{os.getpid()}-%p"


def test_a_type_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="COLOUR is not a type of arguments"):
        Argument("-x", "", "COLOUR")


def test_keywords_and_defaults() -> None:
    arguments = (
        Argument("flag name", "", mandatory=True),
        Argument("-keep-all", "", "BOOLEAN", default="false"),
        Argument("-n", "", "INT", default="20"),
        Argument("what", "", option=True),
    )
    expected = {"flag_name": "A", "keep_all": False, "n": 20, "what": None}
    assert parse("A", arguments) == expected
    assert parse("what=gc=debug -n=3 A -keep-all", arguments) == {
        **expected,
        "keep_all": True,
        "n": 3,
        "what": "gc=debug",
    }
    assert parse('"a b"', arguments)["flag_name"] == "a b"
    assert parse('a"b c" -n=1', arguments)["flag_name"] == "ab c", "where a JVM loses the first character"


def test_every_command_stands_where_the_table_says() -> None:
    for name in registry.TABLE:
        command = registry.find(name)
        assert command is not None
        assert command.name == name
        assert command.description.endswith(".")
        keywords = [each.keyword for each in command.arguments]
        assert len(set(keywords)) == len(keywords)
        assert [keyword for keyword in keywords if not keyword.isidentifier()] == []


def test_the_table_has_every_command_of_the_room() -> None:
    folder = Path(registry.__file__).parent
    found = set()
    for path in folder.glob("*.py"):
        module = __import__(f"vmscope.commands.{path.stem}", fromlist=["COMMANDS"])
        found |= {(each.name, path.stem) for each in getattr(module, "COMMANDS", ())}
    assert found == set(registry.TABLE.items())


def test_help() -> None:
    listed = run("help").splitlines()
    assert listed[0] == "The following commands are available:"
    assert listed[1 : listed.index("")] == sorted(registry.TABLE)
    assert run("help VM.uptime") == (
        "VM.uptime\nHow long this process has been running.\n\nImpact: Low\n\nSyntax : VM.uptime [options]\n\n"
        "Options: (written KEY or KEY=VALUE)\n"
        "\t-date : [optional] Put the date and the time in front. (BOOLEAN, false)\n"
    )
    assert "\nSyntax: VM.version\n" in run("help VM.version")
    assert "\nSyntax : help [options] [<command name>]\n" in run("help help")
    assert [line for line in run("help -all").splitlines() if line[:1] not in ("", "\t")] == sorted(registry.TABLE)
    assert refused("help foo") == "Help unavailable : 'foo' : No such command"


@pytest.mark.parametrize("option", ["-h", "-help", "--help"])
def test_a_commands_help_by_an_option(option: str) -> None:
    for line in (f"GC.heap_dump {option}", f"GC.heap_dump -gz=1  {option} /none/a"):
        assert run(line) == run("help GC.heap_dump")
    assert run(f"help {option}") == run("help help")
    assert refused(f"foo {option}") == "Help unavailable : 'foo' : No such command"
    assert refused(option) == f"{ILLEGAL}Unknown diagnostic command {option!r}; help lists the commands"
    assert "should be empty" in refused(f"GC.run {option}=true")


def test_lines() -> None:
    assert run("") == run(" \n# VM.version\nstop\nVM.version") == ""
    assert run("VM.uptime\n\n  VM.uptime ").count(" s\n") == 2
    assert refused("VM.uptimes") == f"{ILLEGAL}Unknown diagnostic command 'VM.uptimes'; help lists the commands"
    assert refused("x" * 5000).count("x") < 200
    out = io.StringIO()
    with pytest.raises(CommandError):
        commands.execute("VM.uptime\nfoo\nVM.uptime", out)
    assert out.getvalue().count(" s\n") == 1


def test_version_and_uptime() -> None:
    assert f"Python {sys.version.split()[0]}" in run("VM.version").splitlines()
    first = float(run("VM.uptime").removesuffix(" s\n"))
    assert 0 < first <= float(run("VM.uptime -date").removesuffix(" s\n").rpartition(": ")[2])


def test_an_added_command(added: list[Command]) -> None:
    def report(out: commands.Output, size: int, loud: bool) -> None:
        out.write("shop " * size + ("!" if loud else ""))

    arguments = (Argument("size", "how many", "INT", default="1"), Argument("-loud", "so", "BOOLEAN", default="false"))
    command = Command("Shop.report", "What is in stock.", report, arguments=arguments)
    commands.register(command)
    added.append(command)
    assert run("Shop.report 2 -loud") == "shop shop !"
    assert "Shop.report" in run("help").splitlines()
    assert "\tsize : [optional] how many (INT, 1)\n" in run("help Shop.report")
    for name in ("Shop.report", "VM.version"):
        with pytest.raises(CommandError, match="already"):
            commands.register(Command(name, "Another.", report))
    commands.unregister(command)
    assert "Unknown" in refused("Shop.report")
    with pytest.raises(ValueError, match="not a valid name"):
        Command("Shop report", "", report)


def test_an_agents_command_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        @staticmethod
        def agent_on_attach(vm: object, options: str) -> None:
            commands.register(Command("Shop.agent", "An agent's.", lambda out: out.write(options)), vm)  # type: ignore[arg-type]
            if options == "fail":
                raise OSError

    monkeypatch.setitem(sys.modules, "shop_agent", Module())
    with pytest.raises(AgentError):
        tool.load_agent("shop_agent", "fail")
    assert "Unknown" in refused("Shop.agent")
    agent = tool.load_agent("shop_agent", "hello")
    assert run("Shop.agent") == "hello"
    tool.unload_agent(agent)
    assert "Unknown" in refused("Shop.agent")


def test_what_a_command_raises(added: list[Command], caplog: pytest.LogCaptureFixture) -> None:
    def fail(out: commands.Output) -> None:
        out.write("so far\n")
        raise ZeroDivisionError("two\nlines")

    def leave(out: commands.Output) -> None:
        raise SystemExit(3)

    def gone(out: commands.Output) -> None:
        raise BrokenPipeError

    for name, function in (("T.fail", fail), ("T.leave", leave), ("T.gone", gone)):
        added.append(Command(name, "Fails.", function))
        commands.register(added[-1])
    assert refused("T.fail") == "T.fail failed: ZeroDivisionError: two lines"
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]
    assert refused("T.leave") == "T.leave failed: SystemExit: 3"
    with pytest.raises(BrokenPipeError):
        run("T.gone")


def test_the_program_sees_no_thread(added: list[Command]) -> None:
    """Of one that `threading` does not know, after a command that asked it for the current thread, and its logging."""

    def look(out: commands.Output) -> None:
        out.write(threading.current_thread().name)
        raise OSError("logged")

    added.append(Command("T.look", "Looks.", look))
    commands.register(added[-1])
    before = threading.enumerate()
    said: list[str] = []
    done = threading.Lock()
    done.acquire()

    def work() -> None:
        try:
            said.append(refused("T.look"))
        finally:
            done.release()

    import _thread

    _thread.start_new_thread(work, ())
    assert done.acquire(timeout=30)
    assert said == ["T.look failed: OSError: logged"]
    assert threading.enumerate() == before
