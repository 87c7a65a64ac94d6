"""Another user's text on root's terminal: regions, argv, replies, errors and names that would steer it.

The other side is a process of a real second user: one that makes up its own region and answers clients as it likes, and
one in which vmscope runs with names of that kind. Root looks at both through a real pseudo terminal.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartPython, StartVMScope
from tests.support import JDK, PATIENCE, Child, User

COMMAND = [sys.executable, "-m", "vmscope"]

# A cleared screen, a title, a question that the terminal would answer by itself, moves, colours in C1, what turns the
# direction of text, separates lines, shows nothing, or stands on what is above.
STEERING = (
    "<\x1b[2J\x1b]0;owned\x07\x1b[6n\r\x08\x7f\x9b31m\x85\u202e\u2066\u061c\u200f\u2028\u200b\xad\u3164"
    + "\u0301" * 9
    + ">"
)

HOSTILE = f"""
import os, socket, sys
from tests.corpus.build import entry, region
BAD = {STEERING!r}.encode() + bytes([0xff, 0x9b])
me = os.getpid()
with open("/proc/self/stat") as file:
    started = int(file.read().rpartition(")")[2].split()[19])
texts = {{
    b"java.property.java.vm.name": b"CPython",
    b"java.property.java.vm.version": b"3.12" + BAD,
    b"sun.rt.javaCommand": b"ma/in" + BAD + b".x a" + BAD,
    b"java.rt.vmArgs": b"-D" + BAD,
    b"java.rt.vmFlags": b"-X" + BAD,
    b"sun.rt.jvmCapabilities": b"1000",
    b"hostile": b"text" + BAD,
    b"hostile." + BAD.replace(bytes([7]), b""): b"name",
}}
parts = [entry(name, value + bytes(1)) for name, value in texts.items()]
parts.append(entry(b"vmscope.process.startTicks", started))
folder = "/tmp/hsperfdata_" + os.environ["USER"]
os.makedirs(folder, mode=0o755, exist_ok=True)
place = f"{{folder}}/{{me}}"
with open(place, "wb") as file:
    file.write(region(parts, accessible=1))

path = f"/tmp/.java_pid{{me}}"
if os.path.lexists(path):
    os.unlink(path)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
os.chmod(path, 0o600)
server.listen(9)
print("ready", flush=True)
while True:
    client, _ = server.accept()
    asked = client.recv(9999).split(bytes(1))
    if b"getversion" in asked:
        answer = b"0\\n2 progress"
    elif b"fail" in asked:
        answer = b"1\\nno" + BAD + b"\\nvmscope: all is well"
    elif b"load" in asked:
        answer = b"0\\nreturn" + BAD + b"code: 1\\n"
    elif b"jcmd progress" in asked:
        answer = b"#a" + BAD + b"\\n#b" + BAD + b"\\n0\\ndone" + BAD + b"\\n"
    else:
        answer = b"0\\nversion" + BAD + b"\\n\\tline\\n"
    try:
        for number in range(len(answer)):  # so that no sequence comes whole
            client.send(answer[number : number + 1])
    except OSError:
        pass
    client.close()
"""


@pytest.fixture
def hostile(start_python: StartPython, private_user: User) -> Iterator[Child]:
    child = start_python(HOSTILE, user=private_user, preload=["socket", "tests.corpus.build"])
    yield child
    child.kill()
    for path in (f"/tmp/.java_pid{child.pid}", f"/tmp/hsperfdata_{private_user.name}/{child.pid}"):
        if os.path.lexists(path):
            os.unlink(path)


def on_terminal(*arguments: str, status: int, columns: str = "500") -> bytes:
    """All that vmscope writes to a terminal, where both of its streams go."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": columns, "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        text = read_all(ours)
        assert child.wait(PATIENCE) == status, text
    return text


def read_all(ours: int) -> bytes:
    """What is written to the terminal until nobody has it open any more."""
    text = b""
    try:
        while more := os.read(ours, 65536):
            text += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return text


def output(*command: str) -> bytes:
    """What a command writes to a pipe."""
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
    return run.stdout


def assert_harmless(written: bytes) -> str:
    """Nothing but printable characters, the ends of lines, and our own bold and dim around whole lines."""
    text = written.decode().replace("\r\n", "\n")
    text = re.sub(r"(?m)^\x1b\[[12]m(.*)\x1b\[0m$", r"\1", text)
    wrong = {char for char in text if unicodedata.category(char)[0] in "CZ" and char not in "\n\t "}
    assert not wrong, (sorted(map(ascii, wrong)), text)
    assert "\u3164" not in text
    assert "\u0301" * 5 not in text
    assert not re.search(r"(^|\n|\t|[>\\]\w*)\u0301", text)
    return text


SEEN = "<\\x1b[2J\\x1b]0;owned\\x07\\x1b[6n"


@pytest.mark.parametrize(
    ("arguments", "status", "seen"),
    [
        (["ps", "PID"], 0, True),
        (["ps", "--all", "PID"], 0, True),
        (["stat", "PID"], 0, True),
        (["counters", "PID"], 0, True),
        (["counters", "PID", "hostile"], 0, True),
        (["jps", "-lmvV"], 0, True),
        (["jstat", "-snap", "PID"], 0, True),
        (["jcmd", "-l"], 0, True),
        (["jcmd", "PID", "PerfCounter.print"], 0, True),
        (["jcmd", "PID", "VM.version"], 0, True),
        (["jcmd", "PID", "fail"], 1, True),
        (["cmd", "PID", "VM.version"], 0, True),
        (["cmd", "PID", "fail"], 1, True),
        (["cmd", "PID", "GC.heap_dump", "/nonexistent/x"], 0, True),
        (["attach", "PID"], 0, True),
        (["attach", "PID", "agent"], 1, True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_another_user_s_text_on_root_s_terminal(
    hostile: Child, arguments: Sequence[str], status: int, seen: bool
) -> None:
    words = [str(hostile.pid) if word == "PID" else word for word in arguments]
    text = assert_harmless(on_terminal(*words, status=status))
    assert (SEEN in text) is seen


def test_an_error_stays_one_line(hostile: Child) -> None:
    text = assert_harmless(on_terminal("cmd", str(hostile.pid), "fail", status=1))
    assert text.startswith("vmscope: no")
    assert text.endswith(" vmscope: all is well\n")
    assert text.count("\n") == 1


TYPED = "\x1b[2Jnobody"  # the main class of no VM, while another worker runs a hostile one


@pytest.mark.parametrize(
    "arguments",
    [
        [TYPED],
        ["ps", TYPED],
        ["ps", f"--sort={TYPED}"],
        ["stat", f"file:/nonexistent/{TYPED}\udcff"],
        ["counters", TYPED],
        ["cmd", TYPED],
        ["cmd", "1", "two", f"words ='\"{TYPED}"],
        ["jps", TYPED],
        ["jps", f"-{TYPED}"],
        ["jstat", "-gc", TYPED],
        ["jcmd", TYPED, "help"],
        ["jcmd", "1", "-f", f"/nonexistent/{TYPED}"],
        ["run", f"/nonexistent/{TYPED}"],
        ["run", f"-XX:{TYPED}", "-c", "pass"],
        ["autostart", TYPED],
    ],
    ids=ascii,
)
def test_what_was_typed_or_pasted(arguments: list[str]) -> None:
    """A script may have it from somebody else: a file's name, an argument."""
    status = 1 if arguments[0] in ("jps", "jstat", "jcmd", "stat", "counters") or arguments == ["cmd", TYPED] else 2
    text = assert_harmless(on_terminal(*arguments, status=status))
    assert "1b" in text or arguments[0] in ("autostart", "jcmd", "jps", "cmd")


def test_a_mistake_of_ours_shows_nothing_of_another_s_raw() -> None:
    """The interpreter would print the traceback as it is."""
    code = """
import sys
from vmscope import reader
from vmscope.cli import main
def vms(**_): raise ValueError(BAD)
reader.vms = vms
sys.exit(main(["ps"]))
"""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", f"BAD = {STEERING!r}{code}"], stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        text = assert_harmless(read_all(ours))
        assert child.wait(PATIENCE) == 1
    assert text.startswith("Traceback (most recent call last):\n")
    assert SEEN in text


def test_a_terminal_that_does_not_say_how_wide_it_is(hostile: Child) -> None:
    text = assert_harmless(on_terminal("ps", str(hostile.pid), status=0, columns=""))
    assert SEEN in text
    assert "…" not in text


def test_people_s_tools_have_the_rule_in_pipes_too(hostile: Child) -> None:
    """Somebody looks at the file later, or at the other end."""
    for words in (["cmd", str(hostile.pid), "VM.version"], ["ps", str(hostile.pid)], ["counters", str(hostile.pid)]):
        assert SEEN in assert_harmless(output(*COMMAND, *words))


def test_scripts_get_the_bytes_that_the_jdk_s_tools_give(hostile: Child, jdk17: JDK) -> None:
    """The drop-ins in a pipe are byte for byte the JDK's, whatever they hold."""
    pid = str(hostile.pid)
    for name, *words in (["jcmd", pid, "PerfCounter.print"], ["jcmd", pid, "VM.version"], ["jstat", "-snap", pid]):
        ours, theirs = (output(*command, *words) for command in ((*COMMAND, name), (jdk17.tool(name),)))
        assert b"\x1b[2J" in ours
        assert ours == theirs


def test_json_is_ascii(hostile: Child) -> None:
    for words in (["ps", "--json", str(hostile.pid)], ["counters", "--json", str(hostile.pid)]):
        written = on_terminal(*words, status=0).replace(b"\r\n", b"\n")
        assert [byte for byte in written if not (byte == 0x0A or 0x20 <= byte < 0x7F)] == []
        found = json.loads(written)
        assert STEERING in (found[0]["main"] if isinstance(found, list) else found["hostile"])


NAMES = f"""
import asyncio, sys, threading, time, vmscope
from tests.wait import wait_for
vmscope.start()
sys.argv[1:] = [{STEERING!r}]
class Odd: pass
Odd.__name__ = Odd.__qualname__ = {STEERING!r}
Odd.__module__ = {STEERING!r}
odd = [Odd() for _ in range(100000)]
vmscope.text("odd", capacity=200).set({STEERING!r})
threading.Thread(target=time.sleep, args=(600,), daemon=True, name={STEERING!r}).start()
async def wait():
    asyncio.current_task().set_name({STEERING!r})
    tasks.append(1)
    await asyncio.sleep(600)
tasks = []
threading.Thread(target=asyncio.run, args=(wait(),), daemon=True).start()
wait_for(lambda: tasks)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("Thread.print -l -e", True),
        ("Python.asyncio_tasks", True),
        ("GC.class_histogram", True),
        ("PerfCounter.print", True),
        ("VM.info", False),
        ("VM.command_line", False),
        ("VM.system_properties", False),
        ("help", False),
    ],
)
def test_a_python_s_own_names(start_python: StartPython, private_user: User, command: str, seen: bool) -> None:
    child = start_python(
        NAMES,
        user=private_user,
        preload=["asyncio", "encodings.utf_16_be", "tests.wait", "unicodedata", "vmscope.runtime"],
    )
    for tool in ("cmd", "jcmd"):
        text = assert_harmless(on_terminal(tool, str(child.pid), *command.split(), status=0))
        assert ("1b[2J" in text) is seen or not seen


def test_what_a_program_is_told_of_itself(start_vmscope: StartVMScope) -> None:
    """`print(vmscope.status())`, and its reasons by themselves."""
    code = "from vmscope.runtime import VM\nVM.reason = VM.attach_reason = 'a\\x1b[2J\\nb'"
    child = start_vmscope("-XX:+DisableAttachMechanism", code=code)
    for question in ("vmscope.status().reason", "vmscope.status().attach_reason"):
        assert child.ask(question) == "a\\x1b[2J\\nb"
    assert "\x1b" not in child.ask("vmscope.status()")


# -- replies without an end -----------------------------------------------------------------------

PEAK = """
import sys
from vmscope.cli import main
status = main(sys.argv[1:])
with open("/proc/self/status") as file:
    print(*[line.split()[1] for line in file if line.startswith("VmHWM")], file=sys.stderr)
sys.exit(status)
"""

ENDLESS = programs.source("terminal/endless")


@pytest.fixture
def start_endless(start_python: StartPython, private_user: User) -> Iterator[Callable[[str], Child]]:
    """Of another user: what it begins its answer with, goes on with, and how long it waits each time."""
    children: list[Child] = []

    def start(behaviour: str) -> Child:
        children.append(start_python(ENDLESS, behaviour, user=private_user, preload=["socket"]))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        Path(f"/tmp/.java_pid{child.pid}").unlink(missing_ok=True)


HEAP_DUMP = "GC.heap_dump /nonexistent/x"


@pytest.mark.parametrize(
    ("behaviour", "command", "words"),
    [
        ("b'#', b'x' * 65536, 0", HEAP_DUMP, "does not answer by the attach protocol"),
        ("b'', b'9' * 65536, 0", "VM.version", "does not answer by the attach protocol"),
        ("b'9' * 5000 + b'\\n', b'x', 0", "VM.version", "does not answer by the attach protocol"),
        ("b'-' + b'9' * 16 + b'\\n', b'x', 0", "VM.version", "does not answer by the attach protocol"),
        ("b'1\\n', b'x' * 65536, 0", "VM.version", "xxx"),
        ("b'1\\n', b'x\\n' * 65536, 0", "VM.version", "x x x"),
        ("b'#', b'x', 0.05", HEAP_DUMP, "has not answered within 0.5 s"),
        ("b'', b'0', 0.2", "VM.version", "has not answered within 0.5 s"),
        ("b'1\\n', b'x', 0.05", "VM.version", "has not answered within 0.5 s"),
    ],
)
def test_a_reply_without_an_end(
    start_endless: Callable[[str], Child], behaviour: str, command: str, words: str
) -> None:  # fmt: skip
    child = start_endless(behaviour)
    run = subprocess.run(
        [sys.executable, "-c", PEAK, "cmd", "--timeout=500ms", str(child.pid), command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    error, peak = run.stderr.splitlines()
    assert error.startswith("vmscope: ")
    assert words in error
    assert len(error) < 2100
    assert int(peak) < 48 << 10, "KiB"


@pytest.mark.parametrize(
    ("behaviour", "shown"), [("b'#a\\n', b'#b\\n', 0", b"b\n" * 99), ("b'0\\n', b'x', 0", b"x" * 99)]
)
def test_ctrl_c_ends_the_wait(start_endless: Callable[[str], Child], behaviour: str, shown: bytes) -> None:
    child = start_endless(behaviour)
    with Child([*COMMAND, "cmd", "--timeout=0", str(child.pid), HEAP_DUMP], merge_stderr=True) as waiting:
        waiting.read_until(shown)
        waiting.process.send_signal(signal.SIGINT)
        assert b"Traceback" not in waiting.rest()
        assert waiting.process.wait(PATIENCE) == 130
