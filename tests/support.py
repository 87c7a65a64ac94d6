"""What the fixtures hand out: a JDK, a live JVM, a Python child, a user of the test's own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.wait import PATIENCE as PATIENCE
from tests.wait import wait_for

if sys.platform != "win32":
    import pwd

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from jdk import SUFFIX, feature_version, find

# For programs that look at their own region; `region()` has its values.
SETTLED = """
def settled():
    '''What the region shows, once all that has happened until now is in it: the mirror has come twice.'''
    import time, vmscope
    def region():
        return vmscope.vm("self").values()
    end = time.monotonic() + 30
    for _ in range(2):
        clock = region()["sun.os.hrt.ticks"]
        while region()["sun.os.hrt.ticks"] == clock:
            assert time.monotonic() < end, "the mirror does not come"
            time.sleep(0.005)  # a program of any folder: it may find no tests.wait
    return region()
"""


def settled(values: Callable[[], Mapping[str, int | str]]) -> Mapping[str, int | str]:
    """The values of a region once all that has happened until now is in it: the mirror has come twice."""

    def ticks() -> int | str:
        return values()["sun.os.hrt.ticks"]

    for _ in range(2):
        clock = ticks()
        wait_for(lambda clock=clock: ticks() != clock, "the mirror does not come")  # type: ignore[misc]
    return values()


def rests(values: Callable[[], Mapping[str, int | str]], seconds: float) -> None:
    """For so long the sampler comes once at most; what it still has to do may come before."""
    end = time.monotonic() + PATIENCE
    while True:
        before = int(values()["vmscope.sampler.visits"])
        time.sleep(seconds)  # how often it comes in that time
        if int(values()["vmscope.sampler.visits"]) - before <= 1:
            return
        assert time.monotonic() < end, "it does not come to rest"


class JDK:
    """A folder with java, jps, jstat and jcmd."""

    def __init__(self, folder: str) -> None:
        self.bin = Path(folder)
        self.home = self.bin.parent
        self.version = feature_version(str(self.home))

    @classmethod
    def find(cls, version: int | None = None) -> JDK | None:
        folder = find(version)
        return None if folder is None else cls(folder)

    def tool(self, name: str) -> str:
        return str(self.bin / (name + SUFFIX))

    def has(self, name: str) -> bool:
        """Whether it has a tool that not every JDK has: javac, jstack, jinfo."""
        return os.access(self.tool(name), os.X_OK)

    def run(self, name: str, *arguments: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """The tool's whole run; the exit status is for the caller to judge."""
        return subprocess.run(
            [self.tool(name), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


class Child:
    """A process of the test's, with its standard input and output; killed, at the latest, when the test ends."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        merge_stderr: bool = False,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else None,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            bufsize=0,
        )
        self.pid = self.process.pid
        self._pending = b""

    def read_until(self, end: bytes, timeout: float = PATIENCE) -> bytes:
        """The child's output up to and with `end`. AssertionError when it ends or is silent for too long before."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while end not in self._pending:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, left))
            assert ready, f"{timeout} s without {end!r} from pid {self.pid}; so far {self._pending!r}"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"pid {self.pid} ended without {end!r}, status {self.process.wait()}; so far {self._pending!r}"
            self._pending += more
        head, _, self._pending = self._pending.partition(end)
        return head + end

    def readline(self, timeout: float = PATIENCE) -> str:
        """The next line of the child's output, without its end."""
        return self.read_until(b"\n", timeout).decode().rstrip("\n")

    def rest(self) -> bytes:
        """What it has said since; waits until it has closed its output."""
        assert self.process.stdout is not None
        said, self._pending = self._pending, b""
        return said + (self.process.stdout.read() or b"")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def ask(self, line: str, timeout: float = PATIENCE) -> str:
        """Sends a line and gives back the next line of the answer."""
        self.send(line)
        return self.readline(timeout)

    def stop(self, timeout: float = PATIENCE) -> int:
        """Closes its standard input, which ends a well-behaved child, and gives back the exit status."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        return self.process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL, unless it has ended, and no pipe left open."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class JVM(Child):
    """A live, idle HotSpot: `keytool`, which is part of java.base, asking for a password that nobody types.

    So it needs neither a compiler nor any module beyond java.base, and runs on every JDK from 8 on. jps shows it as
    `Main`, jps -l as `sun.security.tools.keytool.Main`. `collect()` makes its counters move.
    """

    def __init__(self, jdk: JDK, *options: str, arguments: Iterable[str] = ()) -> None:
        self.jdk = jdk
        self.options = options
        keytool = ["sun.security.tools.keytool.Main", "-importpass", "-keystore", "/nonexistent/none.p12"]
        super().__init__([jdk.tool("java"), *options, *keytool, *arguments], merge_stderr=True)
        try:
            self.read_until(b"password:")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL, and what a JVM that was asked leaves behind then."""
        super().kill()
        Path(f"/tmp/.java_pid{self.pid}").unlink(missing_ok=True)

    def collect(self, times: int = 1) -> None:
        """Full collections, by jcmd: what moves its sun.gc counters at a moment of the test's choice."""
        for _ in range(times):
            run = self.jdk.run("jcmd", str(self.pid), "GC.run")
            assert run.returncode == 0, run.stdout + run.stderr


class User:
    """An account of the test's own, gone when the test session ends."""

    def __init__(self, entry: pwd.struct_passwd) -> None:
        self.name = entry.pw_name
        self.uid = entry.pw_uid
        self.gid = entry.pw_gid

    def __str__(self) -> str:
        return self.name


# A killed process of another user has left it, and had this one's pid: only root can remove it.
FREE_SOCKET = """
import os
if os.path.lexists(socket := f"/tmp/.java_pid{os.getpid()}"):
    os.unlink(socket)
del socket
"""

# An interpreter below a directory that only root may enter cannot be started by another user: so the child starts
# as root, imports, and only then becomes the user; it is made dumpable again, as a process of that user's own would be.
BECOME = """
import ctypes, os
os.setgroups([])
os.setresgid({gid}, {gid}, {gid})
os.setresuid({uid}, {uid}, {uid})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
os.environ.update(USER={name!r}, HOME="/nonexistent")
"""


def python_command(
    code: str, *arguments: str, options: Sequence[str] = (), user: User | None = None, preload: Sequence[str] = ()
) -> list[str]:
    """This interpreter's command line for `code`, as `user` when one is given, which can import only `preload` anew."""
    code = textwrap.dedent(code)
    if user is not None:
        imports = "".join(f"import {name}\n" for name in preload)
        code = imports + FREE_SOCKET + BECOME.format(uid=user.uid, gid=user.gid, name=user.name) + code
    return [sys.executable, *options, "-c", code, *arguments]
