"""vmscope jstat and JDK 17's jstat, run side by side: on every saved region, on live VMs, in loops, refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import corpus
from tests.conftest import StartJVM, StartVMScope
from tests.oracle.jdk_tools import ask, vmscope
from tests.support import JDK, JVM
from vmscope.cli import _counter_lists
from vmscope.cli._jstat_request import JstatRequest
from vmscope.cli._standard_views import OPTIONS
from vmscope.reader.attachment import attach, open_saved
from vmscope.reader.machine import VM

UNSUPPORTED = "-J-Djstat.showUnsupported=true"
G1 = "17.0.15-debian-g1"


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return corpus.write(tmp_path_factory.mktemp("regions"))


def same(jdk: JDK, *line: str, env: dict[str, str] | None = None) -> str:
    """Runs both; what both put out."""
    theirs = subprocess.run(
        [jdk.tool("jstat"), *line],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=30,
        check=False,
    )
    mine = vmscope("jstat", *line, env=env)
    assert (mine.returncode, mine.stdout) == (theirs.returncode, theirs.stdout)
    assert mine.stderr == theirs.stderr == ""
    return mine.stdout


# -- saved regions --------------------------------------------------------------------------------


def test_names_and_values_of_every_region(jdk17: JDK, regions: dict[str, Path]) -> None:
    """-snap -v with all counters, and -list -d; test_views has the views."""
    cases = [(name, names) for name in regions for names in ("", "java.*,sun.gc.c.*")]
    questions = [("snap", str(regions[name]), names.replace(",", "|") or r"\w*", "v") for name, names in cases]
    readable = 0
    for (name, names), java in zip(cases, ask(jdk17, questions), strict=True):
        if java.startswith("!") or name.startswith("made-v1"):  # of 1.0 the JDK changes some on the way
            continue
        readable += 1
        request = JstatRequest()
        request.names, request.verbose, request.unsupported = names or None, True, True
        with VM(open_saved(str(regions[name]))) as vm:
            mine = _counter_lists.snapshot(vm, request)
            request.descending, request.unsupported = True, False
            mine += _counter_lists.names(vm, request)
        assert mine == java, name
    assert readable > 80


@pytest.mark.parametrize("option", [*OPTIONS, "timestamp"])
def test_a_view_of_a_file(jdk17: JDK, regions: dict[str, Path], option: str) -> None:
    name = list(regions)[list(OPTIONS).index(option) * 3 if option in OPTIONS else 5]
    assert len(same(jdk17, f"-{option}", f"file://{regions[name]}").splitlines()) == 2


@pytest.mark.parametrize(
    "line",
    [
        ["-gcutil", "FILE", "1", "4"],
        ["-gcutil", "-h2", "FILE", "1ms", "5"],
        ["-gcutil", "-h0", "-t", "FILE", "0", "3"],
        ["-gc", "-h", "1", "FILE", "-5", "3"],
        ["-gc", "FILE", "-1"],
        ["-gc", "-t", "-t", "FILE"],
        ["-timestamp", "-t", "FILE"],
        ["-classload", UNSUPPORTED, "FILE"],
        ["-gccause", "-name=x", "-v", "-c", "FILE"],
        ["-list", "FILE"],
        ["-list", UNSUPPORTED, "FILE"],
        ["-snap", "FILE"],
        ["-snap", "-d", "-name", "java.threads.*,java.rt.*", "FILE"],
        ["-name", "java.threads.*,sun.gc.cause,java.rt.*", "FILE"],
        ["-name", "java.threads.*,sun.gc.cause,java.rt.*", "-c", "-s", "-v", UNSUPPORTED, "FILE", "1", "3"],
        ["-name", "java.rt.*,sun.gc.c.*", "-constants", "-strings", "-d", "-h1", UNSUPPORTED, "FILE", "1", "2"],
        ["-name", "java.rt.*", "-c", "FILE"],
        ["-name", "nothing", "FILE"],
        ["-name=java.threads", "FILE"],
        ["-options"],
        ["-options", UNSUPPORTED, "and", "more"],
    ],
    ids=" ".join,
)
def test_a_file_in_other_ways(jdk17: JDK, regions: dict[str, Path], line: list[str]) -> None:
    same(jdk17, *(f"file://{regions[G1]}" if word == "FILE" else word for word in line))


def test_views_of_ones_own(jdk17: JDK, regions: dict[str, Path], tmp_path: Path) -> None:
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text(
        'option mine { column { header "^G" data sun.gc.collector.0.invocations * 2 format "0.00" width 9 } }\n'
        'option own { column { header "^S" data sun.perfdata.size + sun.perfdata.majorVersion } }\n'
        'option gcutil { column { header "^no longer" data 1 } }\n'
        'option timestamp { column { header "^when" data 7 format "0.0" } }\n'
    )
    home, file = f"-J-Duser.home={tmp_path}", f"file://{regions[G1]}"
    assert same(jdk17, home, "-gcutil", "-t", file).startswith("when no longer")
    assert same(jdk17, home, "-mine", file, "1", "2").startswith("G    ")
    assert same(jdk17, home, "-own", file).splitlines()[1] == "32770"
    assert "-mine\n-own\n" in same(jdk17, home, "-options")


def test_a_broken_file_of_views(jdk17: JDK, regions: dict[str, Path], tmp_path: Path) -> None:
    """It is named on stderr; the standard views still work."""
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text('option gcutil {\n column { header "x" data (1 } }')
    for line in (["-gcutil", f"file://{regions[G1]}"], ["-options"]):
        theirs = jdk17.run("jstat", f"-J-Duser.home={tmp_path}", *line)
        mine = vmscope("jstat", f"-J-Duser.home={tmp_path}", *line)
        assert (mine.returncode, mine.stdout, mine.stderr) == (0, theirs.stdout, theirs.stderr)
        assert "Syntax error at line 2" in mine.stderr


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "de_DE.UTF-8", "xx_XX.UTF-8"])
def test_locales(jdk17: JDK, regions: dict[str, Path], tmp_path: Path, locale: str) -> None:
    """Decimal commas, and question marks for characters that the locale lacks."""
    env = {"LC_ALL": locale}
    if locale.startswith("de"):
        if not shutil.which("localedef") or not Path("/usr/share/i18n/locales", locale[:5]).exists():
            pytest.skip(f"localedef cannot make {locale}")
        command = ["localedef", "-i", locale[:5], "-f", "UTF-8", str(tmp_path / locale)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        env["LOCPATH"] = str(tmp_path)
    row = same(jdk17, "-gcutil", f"file://{regions[G1]}", env=env)
    assert ("," in row) == locale.startswith("de")
    texts = regions["17.0.15-debian-texts"]
    same(jdk17, "-snap", UNSUPPORTED, f"file://{texts}", env=env)
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text('option x { column { header "^a^" data 1234567.5 scale P format "#,##0.0" width 20 } }')
    same(jdk17, f"-J-Duser.home={tmp_path}", "-x", f"file://{texts}", env=env)


# -- live VMs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["-XX:+UseSerialGC", "-XX:+UseG1GC"])
def live(jdk17: JDK, request: pytest.FixtureRequest) -> Iterator[JVM]:
    jvm = JVM(jdk17, request.param, "-Xmx64m", "-Dname=with blank")
    time.sleep(0.5)  # its compiler has come to rest
    yield jvm
    jvm.kill()


@pytest.mark.parametrize("option", [*OPTIONS, "timestamp"])
def test_views_of_a_live_jvm(jdk17: JDK, live: JVM, option: str) -> None:
    """Asked before and after: what did not move in between is the same, and what did lies between."""
    line = [f"-{option}", "-t", str(live.pid)]
    before, mine, after = jdk17.run("jstat", *line), vmscope("jstat", *line), jdk17.run("jstat", *line)
    assert mine.returncode == 0
    assert mine.stderr == ""
    header, row = mine.stdout.splitlines()
    assert header == before.stdout.splitlines()[0]
    rows = [run.stdout.splitlines()[1] for run in (before, mine, after)]
    assert rows[0][:15].strip() == f"{float(rows[0][:15]):.1f}"
    assert float(rows[0][:15]) <= float(row[:15]) <= float(rows[2][:15])
    if rows[0][15:] == rows[2][15:] and option != "timestamp":
        assert row[15:] == rows[0][15:]


def test_counters_of_a_live_jvm(jdk17: JDK, live: JVM) -> None:
    line = ["-snap", "-v", UNSUPPORTED, str(live.pid)]
    before, mine, after = jdk17.run("jstat", *line), vmscope("jstat", *line), jdk17.run("jstat", *line)
    texts = [run.stdout.splitlines() for run in (before, mine, after)]
    assert len(texts[0]) == len(texts[1]) == len(texts[2]) > 150
    still = 0
    for first, ours, last in zip(*texts, strict=True):
        assert ours.partition("=")[0] == first.partition("=")[0]
        if first == last:
            still += 1
            assert ours == first
    assert still > 140


def test_rows_at_intervals(jdk17: JDK, live: JVM) -> None:
    """Headers come after the same rows, and as much time lies between rows."""
    line = ["-gcutil", "-t", "-h2", str(live.pid), "150ms", "5"]
    theirs = subprocess.Popen([jdk17.tool("jstat"), *line], stdout=subprocess.PIPE, text=True)
    mine = subprocess.Popen([sys.executable, "-m", "vmscope", "jstat", *line], stdout=subprocess.PIPE, text=True)
    lines = [process.communicate(timeout=30)[0].splitlines() for process in (theirs, mine)]
    assert theirs.returncode == mine.returncode == 0
    assert [line[:9] == "Timestamp" for line in lines[1]] == [True, False, False, True, False, False, True, False]
    assert [line[15:] for line in lines[1]] == [line[15:] for line in lines[0]]
    times = [float(line[:15]) for line in lines[1] if not line.startswith("Timestamp")]
    assert 0.5 <= times[-1] - times[0] <= 10


@pytest.mark.parametrize(
    "form", ["{}", "//{}", "local:{}", "local://{}", "local://{}@x", "+{}", "0{}", "{}?mode=r", "{}/x"]
)
def test_forms_of_a_vmid(jdk17: JDK, live: JVM, form: str) -> None:
    same(jdk17, "-gcutil", form.format(live.pid))


@pytest.mark.parametrize("ending", ["terminated", "killed"])
def test_the_loop_ends_with_its_target(jdk17: JDK, start_jvm: StartJVM, ending: str) -> None:
    """A JVM that is killed leaves its region's file behind; the JDK's jstat would then go on for ever."""
    jvm = start_jvm("-XX:+UseSerialGC", jdk=jdk17)
    with VM(attach(jvm.pid)) as vm:
        path = Path(vm.path)
    command = [sys.executable, "-m", "vmscope", "jstat", "-gc", str(jvm.pid), "50ms"]
    loop = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert loop.stdout is not None
    head = [loop.stdout.readline() for _ in range(4)]
    if ending == "terminated":
        jvm.process.terminate()
    else:
        jvm.kill()
    rows, errors = loop.communicate(timeout=20)
    path.unlink(missing_ok=True)
    assert (loop.returncode, errors) == (0, "")
    assert [line for line in [*head, *rows.splitlines(keepends=True)] if len(line) != len(head[0])] == []


def test_time_of_a_vm_without_ticks(start_jvm: StartJVM) -> None:
    """JDK 25's jstat takes the machine's clock, and so do we."""
    jdk25 = JDK.find(25)
    if jdk25 is None:
        pytest.skip("no JDK 25")
    jvm = start_jvm("-XX:+UseSerialGC", jdk=jdk25)
    line = ["-gcutil", "-t", str(jvm.pid)]
    texts = [jdk25.run("jstat", *line).stdout, vmscope("jstat", *line).stdout, jdk25.run("jstat", *line).stdout]
    header, row = zip(*(text.splitlines() for text in texts), strict=True)
    assert header[0] == header[1]
    assert float(row[0][:15]) <= float(row[1][:15]) <= float(row[2][:15])
    assert row[1][15:] == row[0][15:]


def test_a_python_vm(jdk17: JDK, start_vmscope: StartVMScope) -> None:
    """Both read the same of a process of ours."""
    # The mirror comes in that time.
    child = start_vmscope("-Dx=y", code="import gc; gc.disable(); gc.collect(); import time; time.sleep(0.3)")
    for option in OPTIONS:
        same(jdk17, f"-{option}", str(child.pid))
    same(jdk17, "-snap", "-v", "-name", "java.property.*,java.rt.*", str(child.pid))


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        ["-foo", "1"],
        ["1"],
        ["-gc"],
        ["-gc", "x"],
        ["-gc", "1", "x"],
        ["-gc", "1", "1sx"],
        ["-gc", "1", "1", "x"],
        ["-gc", "-h", "x", "1"],
        ["-name"],
        ["-t", "-gc", "1"],
        ["-J"],
        [],
        ["--help"],
        ["-?"],
    ],
    ids=" ".join,
)
def test_bad_arguments_and_help(jdk17: JDK, line: list[str]) -> None:
    """Exit status, stream and the lines that state facts; test_arguments has thousands of others."""
    theirs, mine = jdk17.run("jstat", *line), vmscope("jstat", *line)
    assert mine.returncode == theirs.returncode
    for our_stream, their_stream in ((mine.stdout, theirs.stdout), (mine.stderr, theirs.stderr)):
        assert our_stream.partition("\n\nDefinitions:\n")[0] == their_stream.partition("\n\nDefinitions:\n")[0]
        assert bool(our_stream) == bool(their_stream)


@pytest.mark.parametrize(
    "target",
    [
        "4000000",
        "-2",
        "file:///nonexistent",
        "file:///tmp",
        "file:x",
        "file://localhost/x",
        "file:///x?mode=r",
        "foo://1",
    ],
)
def test_targets_that_cannot_be_reached(jdk17: JDK, target: str) -> None:
    """What the JDK says in an exception's first line is all of the message."""
    theirs, mine = jdk17.run("jstat", "-gc", target), vmscope("jstat", "-gc", target)
    assert (mine.returncode, mine.stdout) == (theirs.returncode, theirs.stdout) == (1, "")
    assert theirs.stderr.splitlines()[0].endswith(": " + mine.stderr.rstrip("\n"))
    assert mine.stderr.count("\n") == 1


@pytest.mark.parametrize("target", ["1@localhost", "rmi://1@localhost", "1@nowhere.invalid:7/x"])
def test_other_hosts_are_not_asked(jdk17: JDK, target: str) -> None:
    theirs, mine = jdk17.run("jstat", "-gc", target), vmscope("jstat", "-gc", target)
    assert mine.returncode == theirs.returncode == 1
    assert mine.stdout == theirs.stdout == ""
    assert mine.stderr.startswith("RMI Registry not available at ")


def test_files_that_are_no_regions(jdk17: JDK, tmp_path: Path) -> None:
    for name, data in {"empty": b"", "text": b"hello, world\n" * 99, "cut": corpus.load(G1)[:4096]}.items():
        path = tmp_path / name
        path.write_bytes(data)
        theirs, mine = jdk17.run("jstat", "-gc", f"file://{path}"), vmscope("jstat", "-gc", f"file://{path}")
        assert (mine.returncode, mine.stdout) == (theirs.returncode, theirs.stdout) == (1, "")
        assert mine.stderr.count("\n") == 1


def test_an_expression_that_cannot_be_computed(jdk17: JDK, regions: dict[str, Path], tmp_path: Path) -> None:
    """After the header: text in arithmetic, a pattern that is none."""
    options = tmp_path / ".jvmstat" / "jstat_options"
    options.parent.mkdir()
    options.write_text(
        'option text { column { header "^x" data sun.gc.cause + sun.gc.collector.0.time } }\n'
        'option pattern { column { header "^x" data 1 format "0.0.0" } }\n'
        'option sign { column { header "^x" data -1 } }\n'
    )
    for option in ("text", "pattern", "sign"):
        line = [f"-J-Duser.home={tmp_path}", f"-{option}", f"file://{regions[G1]}"]
        theirs, mine = jdk17.run("jstat", *line), vmscope("jstat", *line)
        assert (mine.returncode, mine.stdout) == (theirs.returncode, theirs.stdout)
        assert mine.returncode == 1
        assert mine.stderr.count("\n") == 1


def test_names_without_a_vm(jdk17: JDK, start_vmscope: StartVMScope) -> None:
    """The JDK's jstat, itself a VM, lists what a VM has; ours what a Python VM has."""
    theirs = jdk17.run("jstat", "-list")
    assert (theirs.returncode, theirs.stderr) == (0, "")
    assert "java.threads.live" in theirs.stdout.splitlines()
    pid = str(start_vmscope().pid)
    for options in ([], ["-J-Djstat.showUnsupported=true"]):
        mine = vmscope("jstat", *options, "-list")
        assert (mine.returncode, mine.stderr) == (0, "")
        assert mine.stdout == vmscope("jstat", *options, "-list", pid).stdout
    down = vmscope("jstat", "-list", "-d").stdout.splitlines()
    assert down == sorted(vmscope("jstat", "-list").stdout.splitlines(), reverse=True)
