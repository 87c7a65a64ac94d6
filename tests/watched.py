"""Lives that are watched: `python -m tests.watched FORM JCMD LIBRARY`, as pid 1 of namespaces of its own.

It prints, in JSON, where they differ from what docs/security.md lists: what is there and not listed, what is listed and
not there, and what is left. FORM is C or twin; JCMD the JDK's, LIBRARY an agent in C, and both may be empty. With
`python -m tests.watched strange` it is a program that has one of each kind, and what was seen of it is printed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests import programs
from tests.security import rows
from tests.support import PATIENCE
from tests.wait import wait_for
from tests.watch import CWD, HOME, NAMED, TMP, Finding, Watch
from vmscope.commands.registry import TABLE

FORKS = 400
CANNOT = 77  # the exit status where this machine cannot be watched
VMSCOPE = [sys.executable, "-m", "vmscope"]

PROGRAM = """
import ctypes, os, resource, signal, sys, threading, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
entered, leave = threading.Event(), threading.Event()

def say(word):
    os.write(1, f"{word}\\n".encode())

def fork(child):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    return pid

def forks(count):
    for _ in range(count):
        os.waitpid(fork(int), 0)

def live():
    try:
        while vmscope.status().path is None or vmscope.status().attach_path is None:
            time.sleep(0.01)  # the process may import nothing else
        say("live")
        while True:
            time.sleep(0.01)  # the process may import nothing else
    except KeyboardInterrupt:
        sys.exit()

def stray():
    "A child that nobody tells vmscope of."
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        say("stray")
        signal.pause()
    return pid

def other():
    os.execvp("sleep", ["sleep", "1000"])

def wait(out):
    entered.set()
    leave.wait()

def add_command():
    from vmscope.commands import registry
    registry.register(registry.Command("Test.wait", "Waits.", wait))

START
say("ready")
for line in sys.stdin:
    say(eval(line))
"""
START = "import vmscope\nvmscope.start()"
WATCHED = f"say('before')\nsys.stdin.readline()\n{START}\nadd_command()"
AUTOSTARTED = "from vmscope import boot\nboot.autostart()"

STRANGE = programs.source("watched/strange")


def program(start: str) -> str:
    return PROGRAM.replace("START", start)


class Life:
    """A process, and where what it has differs from the list."""

    def __init__(self, watch: Watch, form: str, command: list[str], base: set[Finding], **environment: str) -> None:
        self.watch = watch
        self.form = form
        self.base = base
        self.wrong: list[str] = []
        self.rows = [(row.kind, row.name, row.c if form == "C" else row.twin) for row in rows()]
        self.process = watch.start(command, VMSCOPE_NATIVE=str(int(form == "C")), **environment)
        self.pid = self.process.pid

    def readline(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> str:
        self.send(line)
        return self.readline()

    def end(self, status: int = 0) -> None:
        self.process.communicate()
        if self.process.returncode != status:
            self.differs(f"it ends with status {self.process.returncode}")

    def run(self, *command: str) -> None:
        client = self.watch.client(*command)
        said, _ = client.communicate()
        if client.returncode:
            self.differs(f"{' '.join(command)}: {said}")

    def differs(self, what: str) -> None:
        self.wrong.append(f"{self.watch.phase}: {what}")

    def listed(self, *states: str) -> set[Finding]:
        return {Finding(kind, name) for kind, name, when in self.rows if kind != "file" and when in states}

    def rest(self, *states: str) -> None:
        """It has what is listed for these states, and nothing else."""
        right = self.listed("always", *states) | self.base
        found = self.watch.wait_for(self.pid, lambda found: found == right, 1.0 if self.wrong else PATIENCE)
        for each in sorted(found - right):
            self.differs(f"not listed: {' '.join(each)}")
        for each in sorted(right - found):
            self.differs(f"not there: {' '.join(each)}")

    def child(self, pid: int, right: set[Finding]) -> None:
        """A child has nothing but this; the names of sockets are the whole namespace's."""
        right |= {Finding(each.kind, each.name.replace("<pid>", "<ended>")) for each in right}
        right |= self.base | {each for each in self.listed("always") if each.kind == "socket name"}
        found = self.watch.wait_for(pid, lambda found: found <= right)
        for each in sorted(found - right):
            self.differs(f"a child has {' '.join(each)}")


# -- parts of a life ------------------------------------------------------------------------------


def forks(life: Life) -> None:
    """Many at once, each kind of child, and one while a command runs."""
    life.watch.phase = "forks"
    life.ask(f"forks({FORKS})")
    life.rest()
    always = life.listed("always")
    stray = always if life.form == "twin" else {each for each in always if each.kind == "signal"}
    for kind, right in {"fork(live)": always, "stray()": stray}.items():
        life.watch.phase = kind
        pid = next(int(line) for line in sorted((life.ask(kind), life.readline())))  # numbers sort before words
        life.child(pid, right)
        os.kill(pid, signal.SIGINT if kind == "fork(live)" else signal.SIGKILL)
        life.ask(f"os.waitpid({pid}, 0)")
    life.watch.phase = "another program"
    comm = Path(f"/proc/{life.ask('fork(other)')}/comm")
    wait_for(lambda: comm.read_text() == "sleep\n")
    life.child(int(comm.parent.name), set())
    os.kill(int(comm.parent.name), signal.SIGKILL)
    life.ask("os.wait()")
    life.watch.phase = "a fork during a command"
    client = life.watch.client(*VMSCOPE, "cmd", str(life.pid), "Test.wait")
    life.ask("entered.wait()")
    life.ask("forks(1)")
    life.ask("leave.set()")
    client.communicate()
    life.rest()


def commands(life: Life, jcmd: str) -> None:
    """All of them."""
    life.watch.phase = "commands"
    words = {
        "GC.heap_dump": f"{NAMED}1",
        "JFR.start": "name=watched",
        "JFR.dump": f"name=watched filename={NAMED}4",
        "Python.tracemalloc": "start",
        "VM.set_flag": "PerfDataSamplingInterval 50",
    }
    lines = [f"{name} {words.get(name, '')}" for name in TABLE if name not in ("VM.log", "JVMTI.agent_load")]
    Path(CWD, "lines").write_text("\n".join([*lines, "Python.tracemalloc stop", "JFR.stop name=watched"]))
    life.run(*VMSCOPE, "jcmd", str(life.pid), "-f", f"{CWD}/lines")
    life.run(*VMSCOPE, "cmd", str(life.pid), "GC.heap_dump", f"{NAMED}2")
    if jcmd:
        life.run(jcmd, str(life.pid), "Thread.print")
    life.rest()
    life.run(*VMSCOPE, "cmd", str(life.pid), "VM.log", f"output={NAMED}3")
    life.rest("log")


def agents(life: Life, library: str) -> None:
    life.watch.phase = "agents"
    for agent in ("exceptions", "trace=match=shop.*", "watchdog=memory=100g,dump=off"):
        life.run(*VMSCOPE, "attach", str(life.pid), f"vmscope.agents.{agent}")
    if library:
        life.run(*VMSCOPE, "attach", str(life.pid), library)
    life.ask("forks(20)")  # until then an agent's thread has the name of the one that started it
    life.rest("log", "agent")


def attach(life: Life, jcmd: str) -> None:
    """By a file and SIGQUIT, as a cleaner of /tmp has taken the socket."""
    life.watch.phase = "attach"
    os.unlink(f"{TMP}/.java_pid{life.pid}")
    life.run(jcmd, str(life.pid), "VM.version")
    life.rest("log", "agent")


# -- lives ----------------------------------------------------------------------------------------


def whole(watch: Watch, form: str, jcmd: str, library: str) -> Life:
    """From the start to an ordinary end."""
    life = Life(watch, form, [sys.executable, "-W", "ignore", "-c", program(WATCHED)], set())
    assert life.readline() == "before"
    life.base = watch.look(life.pid)
    watch.seen.clear()
    watch.phase = "start"
    life.ask("")
    life.rest()
    forks(life)
    commands(life, jcmd)
    agents(life, library)
    if form == "C" and jcmd:
        attach(life, jcmd)
    watch.phase = "end"
    life.end()
    return life


def crashed(watch: Watch, form: str, base: set[Finding], state: str) -> Life:
    """One that is to save its region, and was started by `vmscope run`; or one in direct mode, autostarted."""
    watch.phase = f"a crash, {state}"
    if state == "run":
        life = Life(watch, form, [*VMSCOPE, "run", "-XX:+PerfDataSaveToFile", "-c", program("")], base)
    else:
        options = {"VMSCOPE_TOOL_OPTIONS": "-XX:-PerfDataMirror"}
        life = Life(watch, form, [sys.executable, "-c", program(AUTOSTARTED)], base, **options)
    assert life.readline() == "ready"
    life.rest(state)
    life.send("os.kill(os.getpid(), signal.SIGSEGV)")
    life.end(-signal.SIGSEGV)
    return life


def ordinary(watch: Watch, form: str, base: set[Finding], phase: str) -> Life:
    watch.phase = phase
    life = Life(watch, form, [sys.executable, "-c", program(START)], base)
    assert life.readline() == "ready"
    life.rest()
    return life


def left(pid: int) -> list[str]:
    """What bears the number of a process that has ended."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(TMP) for name in names]
    return [path for path in paths if re.search(rf"(hsperfdata_root/|_pid){pid}(?!\d)", path)]


def compare(watch: Watch, form: str, jcmd: str, library: str) -> list[str]:
    """Where lives differ from the list."""
    life = whole(watch, form, jcmd, library)
    crashes = [crashed(watch, form, life.base, state) for state in ("run", "direct")]
    watch.phase = "left"
    for each in [life, *(crashes if form == "C" else [])]:  # a twin that crashes does nothing any more
        if paths := left(each.pid):
            life.differs(", ".join(paths))
    killed = ordinary(watch, form, life.base, "killed")
    killed.process.kill()
    killed.end(-signal.SIGKILL)
    last = ordinary(watch, form, life.base, "the next")
    if paths := [path for each in (*crashes, killed) for path in left(each.pid)]:
        last.differs(", ".join(paths))
    last.end()
    things = {Finding(kind, name) for kind, name, when in life.rows if kind != "file" and when}
    tables = {"program", *(each.name for each in things if each.kind == "thread")}
    known = {Finding(each.kind, each.name.replace("any: ", f"{table}: ")) for each in things for table in tables}
    allowed = {(word, name) for kind, name, when in life.rows if kind == "file" for word in when.split(", ") if word}
    done = watch.close()
    return [
        *(line for each in (life, *crashes, killed, last) for line in each.wrong),
        *(
            f"{phase}: not listed: {' '.join(each)}"
            for each, phase in watch.seen.items()
            if each not in known | life.base
        ),
        *(f"not listed: {' '.join(each)}" for each in sorted(done - allowed)),
        *(f"not there: {' '.join(each)}" for each in sorted(allowed - done)),
    ]


def strange(watch: Watch) -> list[str]:
    """What was seen of a program that has one of each kind."""
    process = watch.start([sys.executable, "-c", STRANGE])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    watch.look(process.pid)
    process.communicate()
    return [" ".join(each) for each in (*watch.seen, *watch.close())]


def main(form: str, jcmd: str = "", library: str = "") -> int:
    content = Path(library).read_bytes() if library else b""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", TMP], check=True)
    os.mkdir(CWD)
    os.mkdir(HOME)
    if library:
        library = f"{NAMED}4"
        Path(library).write_bytes(content)
    try:
        watch = Watch()
    except OSError as error:
        print(error)
        return CANNOT
    try:
        print(json.dumps(strange(watch) if form == "strange" else compare(watch, form, jcmd, library)))
    finally:
        watch.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
