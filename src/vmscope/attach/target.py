"""Whom to ask: what /proc says of a process, whether it takes part in attach, and what wakes its listener.

A JVM opens its socket when it is first asked: the client leaves a file and sends SIGQUIT. That signal ends a process
that does not catch it. So only a JVM gets it that catches it, as its entry in /proc shows. It is sent by a descriptor
of the process, so a pid that is used again gets nothing.
"""

from __future__ import annotations

import os
import sys
from errno import ENOSYS, EPERM, EXDEV

from vmscope.errors import AccessDenied, InsecureSocket, NoSuchProcess, NotAttachable, VMScopeError
from vmscope.mounts import root_of

if sys.platform != "win32":
    from _signal import SIGQUIT, pidfd_send_signal  # type: ignore[import-not-found]  # typeshed has it in signal alone

    _FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

TMP = "/tmp"  # whatever TMPDIR says, as HotSpot has it

CPYTHON = "CPython"
_ENDED = "ZXx"
_STOPPED = "Tt"
_EXITING = 4  # among the flags in /proc/PID/stat
_KILLED = 1 << 8  # SIGKILL among the signals that wait there: the kernel ends the threads of a process by it
_PID_MAX = 2**31 - 1
_LIMIT = 16 << 20  # bytes of a process's maps

PREPARE = "start it with vmscope run, or switch vmscope autostart on and start it again"


class Target:
    """A living process.

    `nspid` is its pid in its own namespace, `uid` and `gid` its effective user and group; `catches` and `ignores` say
    what it does with SIGQUIT.
    """

    __slots__ = ("_start", "catches", "gid", "ignores", "nspid", "pid", "state", "uid")

    def __init__(self, pid: int) -> None:
        """Raises NoSuchProcess, and AccessDenied where /proc hides other users' processes."""
        if not 0 < pid <= _PID_MAX:
            raise _gone(pid)
        if sys.platform == "win32":
            raise NotAttachable(
                f"process {pid} cannot be asked: on Windows no VM is attached to, only regions are read",
                pid=pid,
                hint="vmscope counters and jstat read them",
            )
        self.pid = pid
        self._start = b""  # when it started, which tells it from others that have had its pid
        if not self.alive:
            raise _gone(pid)
        self.look()

    def look(self) -> None:
        """Reads what /proc/PID/status says now."""
        fields = dict(line.split(b":", 1) for line in self._read("status").splitlines() if b":" in line)
        self.nspid = int(fields.get(b"NSpid", b"%d" % self.pid).split()[-1])
        self.uid = int(fields[b"Uid"].split()[1])
        self.gid = int(fields[b"Gid"].split()[1])
        bit = 1 << SIGQUIT - 1
        self.catches = bool(int(fields[b"SigCgt"], 16) & bit)
        self.ignores = bool(int(fields[b"SigIgn"], 16) & bit)

    def _read(self, name: str) -> bytes:
        try:
            return self._file(name)
        except (FileNotFoundError, ProcessLookupError):
            raise _gone(self.pid) from None
        except PermissionError:
            raise _denied(self.pid) from None

    @property
    def alive(self) -> bool:
        """Now, and not about to end: a process closes its sockets a moment before it has ended."""
        try:
            fields = self._read("stat").rpartition(b")")[2].split()
        except NoSuchProcess:
            return False
        self.state, start = fields[0].decode("ascii"), fields[19]
        self._start = self._start or start
        ending = self.state in _ENDED or int(fields[6]) & _EXITING or int(fields[28]) & _KILLED
        return not ending and start == self._start

    @property
    def stopped(self) -> bool:
        """By SIGSTOP, or by a debugger."""
        return self.state in _STOPPED

    # -- its tmp directory

    def open_tmp(self) -> int:
        """A descriptor (O_PATH) of its own tmp directory, which for a container is not ours.

        No link is followed in what may be the process's own root: from there it would lead into ours. Raises
        AccessDenied, NoSuchProcess, InsecureSocket for one that may never answer.
        """
        own = f"/proc/{self.pid}/root{TMP}"
        try:
            return self._enter(own)
        except OSError as error:
            if error.errno == EXDEV:
                raise InsecureSocket(
                    f"process {self.pid} is not asked: {own} is on a file system that may never answer",
                    pid=self.pid,
                    path=own,
                    hint="ask whoever runs its container",
                ) from None
        try:
            # Not ours to look into, as after a change of its user: then it shares ours, or is out of reach. So may a
            # link be, the same one. It is not followed: who has made another one says where it leads.
            shared = os.path.samestat(os.lstat(own), os.lstat(TMP))
        except OSError:
            shared = self.nspid == self.pid
        if shared:
            try:
                return os.open(TMP, _FOLDER)
            except OSError:
                pass
        if not self.alive:
            raise _gone(self.pid)
        raise _denied(self.pid)

    def _enter(self, own: str) -> int:
        if root_of(self.pid) == root_of("self"):
            return os.open(own, _FOLDER | os.O_NOFOLLOW)
        from vmscope.reader import place

        return place.enter(own, flags=place.THROUGH)

    @property
    def socket_path(self) -> str:
        """Its socket's path, for people."""
        return f"/proc/{self.pid}/root{TMP}/.java_pid{self.nspid}"

    # -- the signal

    def wake(self) -> None:
        """Sends SIGQUIT, if the process catches it now. Raises NotAttachable, NoSuchProcess, AccessDenied."""
        try:
            fd = os.pidfd_open(self.pid)
        except OSError as error:
            if error.errno in (ENOSYS, EPERM):
                raise NotAttachable(
                    f"process {self.pid} gets no signal, which might go astray: this system has no pidfd_open",
                    pid=self.pid,
                    hint="use Linux 5.3 or later",
                ) from None
            raise _gone(self.pid) from None
        try:
            if not self.alive:  # else the descriptor is that of the process that was looked at
                raise _gone(self.pid)
            self.look()
            if not self.catches:
                raise self.refusal()
            pidfd_send_signal(fd, SIGQUIT)
        except ProcessLookupError:
            raise _gone(self.pid) from None
        except PermissionError:
            raise _denied(self.pid) from None
        finally:
            os.close(fd)

    def check(self) -> None:
        """Returns when SIGQUIT makes this process open its socket, as far as that can be known beforehand.

        Raises NotAttachable with the reason when it would not, AccessDenied where it belongs to another user.
        """
        if os.geteuid() not in (0, self.uid):
            raise _denied(self.pid)
        kind, capabilities = self._region()
        if kind and not capabilities.startswith("1"):
            raise NotAttachable(
                f"process {self.pid} does not take part in attach: it is switched off there, or its VM cannot",
                pid=self.pid,
                hint="start it without -XX:+DisableAttachMechanism",
            )
        if kind == CPYTHON:  # who catches SIGQUIT in it cannot be seen, and may end by it in order, as gunicorn does
            raise NotAttachable(
                f"process {self.pid} is ready, but its socket is gone; SIGQUIT, which may be its own, was not sent",
                pid=self.pid,
                hint=f"keep what cleans {TMP} from removing .java_pid*, and start the process again",
            )
        if not self.catches or not (kind or self._is_jvm()):
            raise self.refusal()

    def refusal(self) -> NotAttachable:
        """Why nothing is sent to this process."""
        what = "catches SIGQUIT for itself" if self.catches else "would end by it"
        if self.ignores:
            what = "ignores it"
        if self._is_jvm():
            text = f"process {self.pid} is a JVM that does not handle SIGQUIT, so that it cannot be asked"
            return NotAttachable(text, pid=self.pid, hint="try again if it has just been started")
        return NotAttachable(
            f"process {self.pid} is not a VM that takes part in attach; SIGQUIT was not sent, as it {what}",
            pid=self.pid,
            hint=PREPARE,
        )

    @property
    def unprepared(self) -> bool:
        """It has no region: vmscope has not been started in it."""
        return not self._region()[0]

    def _region(self) -> tuple[str, str]:
        """What kind of VM its region shows, and what that says it can do; "" where it has none that can be read."""
        from vmscope.reader.attachment import attach
        from vmscope.reader.machine import VM

        try:
            with VM(attach(self.pid)) as vm:
                if vm.alive:
                    return vm.kind, str(vm.values().get("sun.rt.jvmCapabilities", ""))
        except VMScopeError:
            pass
        return "", ""

    def _is_jvm(self) -> bool:
        try:
            return b"/libjvm.so" in self._file("maps")
        except OSError:
            return False

    def _file(self, name: str) -> bytes:
        with open(f"/proc/{self.pid}/{name}", "rb") as file:  # reader.process would cost the fast path its imports
            return file.read(_LIMIT)


def _gone(pid: int) -> NoSuchProcess:
    return NoSuchProcess(f"Process not found: there is no process {pid}", pid=pid, hint="vmscope ps lists the VMs")


def _denied(pid: int) -> AccessDenied:
    return AccessDenied(
        f"Permission denied: process {pid} belongs to another user", pid=pid, hint="run this as its user or as root"
    )
