"""All threads of a process that was not prepared, as of one moment."""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from typing import NamedTuple

from vmscope.errors import NoSuchProcess, NotReadable, ReadTimeout
from vmscope.interpreters.interpreter import Interpreter, check_system
from vmscope.interpreters.memory import Unreadable
from vmscope.interpreters.objects import Objects
from vmscope.reader.process import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")

PATIENCE = 10.0  # seconds: memory may be of a file system that never answers


class Local(NamedTuple):
    """A variable, its value in a few words."""

    name: str
    value: str


class Frame(NamedTuple):
    """`locals` is None where they were not asked for, or could not be read."""

    function: str
    file: str
    line: int
    locals: tuple[Local, ...] | None = None


class Thread(NamedTuple):
    """`name` is threading's, else the kernel's. `state` is the kernel's letter, as R for one that runs. `cut`: there
    are more frames; `lost`: its stack changed whenever it was read.
    """

    native_id: int
    ident: int
    name: str
    main: bool
    gil: bool
    state: str
    frames: tuple[Frame, ...]
    cut: bool
    lost: bool

    @property
    def running(self) -> bool:
        return self.state == "R"


class Stacks:
    """The stacks of one process. `version` is its CPython's. Close it."""

    def __init__(self, pid: int) -> None:
        """Raises NoSuchProcess, AccessDenied, and NotReadable with the reason."""
        check_system()
        self.pid = pid
        self._interpreter = Interpreter(pid)
        try:
            self.reader = native_reader(pid, self._interpreter)
        except BaseException:
            self._interpreter.close()
            raise
        self._objects = Objects(self._interpreter.memory, self._interpreter.fields)

    @property
    def version(self) -> str:
        return self._interpreter.text

    @property
    def statistics(self) -> dict[str, int]:
        """Stacks that were read; `torn`: those that were read again; `lost`: those that changed each time."""
        return self.reader.statistics

    def take(self, *, local_variables: bool = False) -> list[Thread]:
        """The main thread first, then the others, the oldest first. Raises NoSuchProcess, NotReadable."""
        rows = said(self.pid, self.reader.take)
        if not rows:
            raise NotReadable(f"process {self.pid} has no threads of Python's", pid=self.pid, hint="it may be ending")
        names = self.names({row[2] for row in rows})
        threads = []
        for native_id, ident, interpreter, gil, frames, places, cut, lost, state in reversed(rows):
            shown = [
                Frame(*frame, self._locals(*place) if local_variables else None)
                for frame, place in zip(frames, places, strict=True)
            ]
            name = names.get((interpreter, ident)) or task_name(self.pid, native_id)
            threads.append(Thread(native_id, ident, name, native_id == self.pid, gil, state, tuple(shown), cut, lost))
        return sorted(threads, key=lambda thread: not thread.main)

    def names(self, interpreters: set[int]) -> dict[tuple[int, int], str]:
        """What threading calls these interpreters' threads, as far as it can be read, by interpreter and ident."""
        found = {}
        for interpreter in interpreters:
            try:
                for ident, name in self._objects.thread_names(interpreter).items():
                    found[interpreter, ident] = name
            except Unreadable:  # it changes just now
                continue
        return found

    def _locals(self, frame: int, code: int) -> tuple[Local, ...] | None:
        try:
            return tuple(Local(*row) for row in self._objects.locals(frame, code))
        except Unreadable:
            return None

    def close(self) -> None:
        try:
            self.reader.close()
        except RuntimeError:  # a thread still waits for the kernel: it goes with that one
            return
        self._interpreter.close()

    def __enter__(self) -> Stacks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


if TYPE_CHECKING:
    from vmscope.native import RemoteStacks


def native_reader(pid: int, interpreter: Interpreter) -> RemoteStacks:
    from vmscope import native

    try:
        return native.RemoteStacks(pid, interpreter.fields)
    except ValueError as error:
        raise NotReadable(f"process {pid} says wrong things of its memory: {error}", pid=pid) from None
    except (FileNotFoundError, ProcessLookupError):
        raise NoSuchProcess(f"process {pid} ended while it was read", pid=pid) from None


def said(pid: int, read: Callable[[], Result]) -> Result:
    """What a call of the reader's gives; its errors in words."""
    try:
        return read()
    except ProcessLookupError:
        raise NoSuchProcess(f"process {pid} ended while it was read", pid=pid) from None
    except BlockingIOError:
        raise NotReadable(
            f"the threads of process {pid} changed whenever they were read", pid=pid, hint="try it again"
        ) from None


def in_time(pid: int, read: Callable[[], Result], seconds: float = PATIENCE) -> Result:
    """The same on a thread, as the kernel may have to wait for what the process has mapped, and cannot be interrupted
    then. Raises ReadTimeout.
    """
    done = allocate_lock()
    done.acquire()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(read())
        except BaseException as error:
            errors.append(error)
        done.release()

    start_new_thread(run, ())  # one that does not come back ends with this process
    if not done.acquire(timeout=seconds):
        raise ReadTimeout(
            f"process {pid} could not be read within {seconds:g} s",
            pid=pid,
            hint="part of its memory is of a file system, or of a program, that does not answer",
        )
    if errors:
        raise errors[0]
    return results[0]


def task_name(pid: int, native_id: int) -> str:
    """What the kernel calls a thread; "" where it has ended."""
    try:
        return read_file(f"/proc/{pid}/task/{native_id}/comm", 64).rstrip(b"\n").decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def program_of(pid: int) -> str:
    """The process's command line."""
    try:
        words = read_file(f"/proc/{pid}/cmdline", 4096).rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return " ".join(os.fsdecode(word) for word in words)
