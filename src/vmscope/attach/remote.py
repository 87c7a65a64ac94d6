"""Starting vmscope in a Python process that was not prepared for it: by sys.remote_exec, which CPython 3.14 has.

A script is left where the process can read it (script.py), and the interpreter is asked to run it as soon as its main
thread runs Python code. The script starts vmscope and leaves an answer beside itself. When no answer comes in time, the
request stands: the script runs when the main thread does, and then removes itself. It either starts vmscope or leaves
the process as it was.
"""

from __future__ import annotations

import os
import stat
import sys
from time import monotonic

from vmscope import mounts
from vmscope.attach.interruption import Interruption
from vmscope.attach.script import OK, Script
from vmscope.attach.target import TMP, Target
from vmscope.errors import AccessDenied, AttachError, AttachTimeout, NoSuchProcess, NotAttachable
from vmscope.reader.discovery import tmp_identity
from vmscope.reader.process import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

OLDEST = (3, 14)  # the first that can be asked from outside
PATIENCE = 10.0  # seconds for the script's answer
WAYS = "start it anew with vmscope run, with vmscope autostart on, or with vmscope.start() in its code"

_PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"  # 0: each user its own processes; 1, 2: root; 3: none
_LIMIT = 16 << 20  # bytes of a process's maps
_LONGEST_ANSWER = 4096

_SENDER = """
import sys
try:
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])
except Exception as error:
    print(type(error).__name__, error, sep="\\n")
    sys.exit(1)
"""


def python_version(pid: int) -> tuple[int, int] | None:
    """Which CPython a process runs, by the names of its program and libraries; None for no Python.

    Raises NoSuchProcess and AccessDenied.
    """
    try:
        names = [os.readlink(f"/proc/{pid}/exe").encode()]
        for line in read_file(f"/proc/{pid}/maps", _LIMIT).splitlines():
            if b"/libpython3." in line:
                names.append(line[line.index(b"/") :])
    except (FileNotFoundError, ProcessLookupError):
        raise NoSuchProcess(f"Process not found: there is no process {pid}", pid=pid) from None
    except PermissionError:
        raise AccessDenied(
            f"Permission denied: process {pid} belongs to another user", pid=pid, hint="run this as its user or as root"
        ) from None
    for name in reversed(names):
        _, found, rest = name.rpartition(b"/")[2].partition(b"python3.")
        digits = rest[: len(rest) - len(rest.lstrip(b"0123456789"))]
        if found and digits:
            return 3, int(digits)
    return None


def start_vmscope(target: Target, timeout: float = PATIENCE) -> str:
    """Starts vmscope in a Python process, and gives back the path of its region, "" where it has none.

    Raises NotAttachable for what is not a Python, or is too old, forbids it, or cannot import vmscope; AccessDenied;
    AttachTimeout when its main thread does not run Python code for so long; AttachError, NoSuchProcess.
    """
    pid = target.pid
    version = python_version(pid)
    if version is None:
        raise NotAttachable(f"process {pid} is not a VM, neither Python's nor Java's", pid=pid)
    if version < OLDEST:
        raise NotAttachable(
            f"process {pid} is CPython {version[0]}.{version[1]}, in which vmscope cannot be started from outside",
            pid=pid,
            hint=WAYS,
        )
    if tmp_identity(f"/proc/{pid}/root{TMP}") != tmp_identity(TMP):
        raise NotAttachable(
            f"process {pid} lives in a container, in which vmscope cannot be started from outside",
            pid=pid,
            hint=f"inside it, its pid is {target.nspid}: run vmscope attach {target.nspid} there",
        )
    answer = _ask(target, version, timeout)
    if answer is None:
        raise AttachTimeout(
            f"process {pid} has been asked to start vmscope; its main thread has run no Python code for {timeout:g} s",
            pid=pid,
            hint="it starts when the main thread does: when a request comes, a wait ends, a signal is handled",
        )
    return _judge(target, version, answer)


def _ask(target: Target, version: tuple[int, int], timeout: float) -> str | None:
    """The script's answer; None when it does not come in time."""
    with Interruption() as interruption:
        try:
            script = Script(target)
        except PermissionError:
            raise _denied(target) from None
        except OSError as error:
            raise AttachError(
                f"process {target.pid} cannot be given a script: {error.strerror}", pid=target.pid, path=TMP
            ) from None
        pending = False
        try:
            _send(target, version, script.path, interruption)
            pending = True
            answer = _wait(target, script, timeout, interruption)
            pending = answer is None
            return answer
        except NoSuchProcess:
            pending = False
            raise
        finally:
            if pending:
                script.abandon()
            else:
                script.remove()


def _send(target: Target, version: tuple[int, int], script: str, interruption: Interruption) -> None:
    """Tells the interpreter to run the script. Only one of its own version can: ours, or else its own program.

    Another user's program is not run, nor one of the client's own user: the process may be in a sandbox, and what it
    has put there would run outside of it.
    """
    if sys.version_info[:2] == version:
        try:
            sys.remote_exec(target.pid, script)  # type: ignore[attr-defined, unused-ignore]
        except Exception as error:
            raise _refused(target, type(error).__name__, str(error)) from None
        return
    import subprocess

    try:
        program = os.readlink(f"/proc/{target.pid}/exe")
        if not os.path.basename(program).startswith("python") or not _is_roots(program):
            raise NotAttachable(
                f"process {target.pid} is {program}, which has CPython {version[0]}.{version[1]} in it, and is not a "
                "python that only root can change",
                pid=target.pid,
                hint=f"run this with a vmscope of CPython {version[0]}.{version[1]}: no other can tell it what to do",
            )
        with subprocess.Popen(
            [program, "-IS", "-c", _SENDER, str(target.pid), script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={},
            cwd="/",
            start_new_session=True,
        ) as process:
            try:
                said = _said(process, target, interruption)
            finally:
                process.kill()
    except NotAttachable:
        raise
    except (OSError, subprocess.SubprocessError) as error:
        raise _refused(target, type(error).__name__, str(error)) from None
    if process.returncode:
        name, _, text = said.decode("utf-8", "replace").strip().partition("\n")
        raise _refused(target, name, text)


def _said(process: subprocess.Popen[bytes], target: Target, interruption: Interruption) -> bytes:
    """What a program says until it ends, as much of it as an answer may be long. Raises TimeoutError."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    deadline = monotonic() + PATIENCE
    said = b""
    while True:
        ended = process.poll() is not None
        said += process.stdout.read(_LONGEST_ANSWER) or b""
        if ended or len(said) >= _LONGEST_ANSWER:
            return said
        if monotonic() >= deadline:
            raise TimeoutError(f"it has not ended within {PATIENCE:g} s")
        interruption.nap(0.002, target.pid)


def _is_roots(path: str) -> bool:
    """Whether only root can have written this program, or put it there.

    From the root on, each step beside a descriptor that asks nothing of a file system: one of a user's (FUSE) would say
    that all is root's, or say nothing for ever. So only what the kernel says itself counts.
    """
    place = -1
    try:
        place = os.open("/", mounts.THERE)
        for name in path.split("/"):
            if name:
                place, above = os.open(name, mounts.THERE, dir_fd=place), place
                os.close(above)
            if not mounts.is_kernels(place):
                return False
            found = os.fstat(place)
            if found.st_uid != 0 or found.st_mode & 0o022:
                return False
        return stat.S_ISREG(found.st_mode)
    except OSError:
        return False
    finally:
        if place >= 0:
            os.close(place)


def _refused(target: Target, name: str, text: str) -> AttachError | AccessDenied | NoSuchProcess:
    """Why the interpreter is not known, in words for people."""
    pid = target.pid
    if not target.alive:
        return NoSuchProcess(f"process {pid} ended while it was asked", pid=pid)
    if name == "PermissionError":
        return _denied(target)
    if "not enabled" in text:
        return NotAttachable(
            f"process {pid} forbids to be asked from outside: PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug",
            pid=pid,
            hint=WAYS,
        )
    return NotAttachable(f"process {pid} cannot start vmscope: {name}: {text}", pid=pid, hint=WAYS)


def _denied(target: Target) -> AccessDenied:
    pid, euid = target.pid, os.geteuid()
    if euid not in (0, target.uid):
        return AccessDenied(
            f"Permission denied: process {pid} belongs to another user",
            pid=pid,
            hint="run this as its user or as root, with a CPython of its minor version",
        )
    try:
        scope = read_file(_PTRACE_SCOPE, 16).strip().decode()
    except OSError:  # a kernel without Yama
        scope = "0"
    why = "" if scope == "0" else f" (kernel.yama.ptrace_scope is {scope})"
    if scope == "3":
        hint = f"no process may until this system is rebooted: {WAYS}"
    elif euid == 0:
        hint = "it takes CAP_SYS_PTRACE, which root does not have in every container"
    else:
        hint = "run this as root, with a CPython of its minor version"
    return AccessDenied(f"Permission denied: this user may not look into process {pid}{why}", pid=pid, hint=hint)


def _wait(target: Target, script: Script, timeout: float, interruption: Interruption) -> str | None:
    deadline = monotonic() + timeout
    nap = 0.001
    while True:
        late = monotonic() >= deadline
        answer = script.answer()
        if answer is not None:
            return answer
        if not target.alive:
            raise NoSuchProcess(f"process {target.pid} ended while it was asked", pid=target.pid)
        if late:
            return None
        interruption.nap(nap, target.pid)
        nap = min(nap * 1.5, 0.05)


def _judge(target: Target, version: tuple[int, int], answer: str) -> str:
    name, _, text = answer.partition("\n")
    pid = target.pid
    if name == OK:
        path, _, reason = text.partition("\n")
        if reason:
            raise AttachError(f"vmscope is started in process {pid}, which cannot be asked: {reason}", pid=pid)
        return path
    if name in ("ModuleNotFoundError", "ImportError", "PermissionError"):
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            program = f"python{version[0]}.{version[1]}"
        raise NotAttachable(
            f"process {pid} cannot import vmscope: {text}",
            pid=pid,
            hint=f"install it where that program finds it: {program} -m pip install vmscope",
        )
    raise AttachError(f"vmscope could not start in process {pid}: {name}: {text}", pid=pid)
