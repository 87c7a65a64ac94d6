"""jstat's and jps' command lines and VM identifiers. Thousands of others are in tests/oracle."""

from __future__ import annotations

import pytest

from vmscope.cli import _java, _jstat_request, jps
from vmscope.cli._counter_lists import pattern
from vmscope.cli.vmid import FileURIError, HostIdentifier, VMIdentifier
from vmscope.errors import CommandLineError, VMIdentifierError


def test_a_sample_request() -> None:
    request = _jstat_request.parse(["-gcutil", "-t", "-h", "20", "4711", "2s", "5"])
    assert (request.option, request.timestamp, request.header_rate) == ("gcutil", True, 20)
    assert (request.vmid, request.interval, request.count) == ("4711", 2000, 5)


@pytest.mark.parametrize(
    ("line", "interval", "count"),
    [
        (["-gc", "1"], 0, 1),
        (["-gc", "1", "250"], 250, -1),
        (["-gc", "1", "250ms", "7"], 250, 7),
        (["-gc", "1", "3s"], 3000, -1),
        (["-gc", "1", "-1"], 0, 1),
        (["-gc", "1", "3000000s", "1"], -1294967296, 1),
    ],
)
def test_times(line: list[str], interval: int, count: int) -> None:
    request = _jstat_request.parse(line)
    assert (request.interval, request.count) == (interval, count)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["-t", "1"], "-<option> required"),
        (["-gc"], "invalid argument count"),
        (["-snap", "1", "1"], "invalid argument count"),
        (["-gc", "1", "2", "3", "4"], "invalid argument count"),
        (["-gc", "-x", "1"], "illegal argument: -x"),
        (["-gc", "-h"], "-h requires an integer argument"),
        (["-gc", "-h-1", "1"], "illegal -h argument: -1"),
        (["-gc", "1", "soon"], "Could not convert interval: soon"),
        (["-gc", "1", "1", "few"], "illegal count value: few"),
        (["-name"], "option argument expected"),
    ],
)
def test_refusals(line: list[str], message: str) -> None:
    with pytest.raises(CommandLineError) as error:
        _jstat_request.parse(line)
    assert str(error.value) == message


def test_name_patterns() -> None:
    match = pattern("java.ci.*,sun.gc").match
    assert match("java.ci.totalTime")
    assert match("sun.gc.cause")
    assert not match("java.cls.loadedClasses")
    assert pattern(None).match("anything")
    with pytest.raises(CommandLineError, match=r"^Bad name pattern: "):
        pattern("(")


def test_launcher_options() -> None:
    own, properties = _java.split_options(["-J-Dkey=a=b", "-gc", "-J-Xmx1g", "1", "-J-Dflag"])
    assert own == ["-gc", "1"]
    assert properties == {"key": "a=b", "flag": ""}
    with pytest.raises(CommandLineError):
        _java.split_options(["-gc", "-J"])


@pytest.mark.parametrize(
    ("text", "scheme", "lvmid", "path"),
    [
        ("4711", "local", 4711, None),
        ("//4711", "local", 4711, None),
        ("local:4711", "local", 4711, None),
        ("local://4711@anywhere", "local", 4711, None),
        ("4711@host", "rmi", 4711, None),
        ("4711@host:1099/server", "rmi", 4711, None),
        ("file:/tmp/a%20b", "file", 0, "/tmp/a b"),
        ("file:///tmp/x", "file", 0, "/tmp/x"),
        ("other://5", "other", 5, None),
    ],
)
def test_vm_identifiers(text: str, scheme: str, lvmid: int, path: str | None) -> None:
    vm = VMIdentifier(text)
    assert (vm.scheme, vm.lvmid, vm.path, vm.mode) == (scheme, lvmid, path, "r")


def test_the_mode_of_a_vm_identifier() -> None:
    assert VMIdentifier("4711?mode=rw").mode == "rw"


@pytest.mark.parametrize("text", ["", "x", "4711:1099", "4711@", "1 2", "-1", "99999999999", "local:/1", "//"])
def test_what_is_no_vm_identifier(text: str) -> None:
    with pytest.raises(VMIdentifierError) as error:
        VMIdentifier(text)
    assert str(error.value) == f"Malformed VM Identifier: {text}"


@pytest.mark.parametrize("text", ["file:x", "file://host/x", "file:///x?mode=r", "file:///x#y"])
def test_file_uris_that_name_no_file(text: str) -> None:
    with pytest.raises(FileURIError, match="component"):
        VMIdentifier(text)


@pytest.mark.parametrize(
    ("text", "scheme", "host"),
    [
        (None, "local", "localhost"),
        ("localhost:1099", "local", "localhost"),
        ("host", "rmi", "host"),
        ("10.0.0.1", "rmi", "10.0.0.1"),
        ("rmi://host:2/x", "rmi", "host"),
        ("a_b", "local", "localhost"),
        ("file:///x", "file", "localhost"),
    ],
)
def test_host_identifiers(text: str | None, scheme: str, host: str) -> None:
    identifier = HostIdentifier(text)
    assert (identifier.scheme, identifier.host) == (scheme, host)


def test_jps_letters() -> None:
    assert jps.parse(["-lm", "-v", "localhost"]) == (frozenset("lmv"), "localhost")
    assert jps.parse(["-q"]) == (frozenset("q"), None)
    for line in (["-lq"], ["--"], ["-h", "-l"]):
        with pytest.raises(CommandLineError, match=f"^illegal argument: {line[0]}$"):
            jps.parse(line)


@pytest.mark.parametrize(
    ("main", "short"),
    [
        ("org.example.Main", "Main"),
        ("java.base/sun.tools.Main", "Main"),
        ("/opt/app/server.jar", "server.jar"),
        ("server.jar", "server.jar"),
        ("C:\\app\\run.sh", "sh"),
        (".hidden", ".hidden"),
        ("/x", "/x"),
        ("", ""),
    ],
)
def test_jps_short_names(main: str, short: str) -> None:
    assert jps.short_name(main) == short


def test_jps_lines() -> None:
    values: dict[str, int | str] = {
        "sun.rt.javaCommand": "shop.server --port 8000",
        "java.rt.vmArgs": "-Da=1\n2\r3",
        "java.rt.vmFlags": "",
    }
    every = frozenset("mlvV")
    assert jps.describe(values, every) == "shop.server --port 8000 -Da=1\\n2\\r3"
    assert jps.describe(values, frozenset()) == "server"
    assert jps.describe({}, every) == "Unknown Unknown Unknown Unknown"
    assert jps.describe({**values, "java.rt.vmFlags": 1}, every).endswith(" -- jvm flags information unavailable")
    assert jps.describe({"sun.rt.javaCommand": 1}, every) == " -- main class information unavailable"
