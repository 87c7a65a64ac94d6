"""The recordings of this process: what begins, ends and keeps them. One recorder writes the chunks of all of them."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Iterable

from vmscope import log, native, own_threads
from vmscope.errors import VMScopeError
from vmscope.flight import events, repository, types
from vmscope.flight.events import Event
from vmscope.flight.repository import Chunk, Repository
from vmscope.flight.settings import Settings, combined, combined_for
from vmscope.flight.sources import Sources, adopted
from vmscope.flight.units import spaced

S, MS = 1_000_000_000, 1_000_000  # ns
DEFAULT_SIZE = 250 << 20  # bytes that a recording without any limit keeps
RING_SIZE, RING_CHUNK = 10 << 20, 1 << 20  # of recordings that are kept in memory
NONE = -(1 << 63)  # ms, bytes: no limit, in an event
ACTIVE = ("jdk.ActiveRecording", "jdk.ActiveSetting")
_EXIT_TIMEOUT = 1.0  # s: a command that is dumping is soon done


class RecordingError(VMScopeError, RuntimeError):
    """What a client asks of a recording, and cannot be."""


class Recording:
    """One of this process's. Times are in ns, sizes in bytes; 0 stands for no limit."""

    def __init__(
        self,
        settings: Settings,
        *,
        name: str = "",
        delay: int = 0,
        duration: int = 0,
        max_age: int | None = None,
        max_size: int | None = None,
        disk: bool = True,
        dump_on_exit: bool = False,
        path: str = "",
    ) -> None:
        self.settings = settings
        self.id = 0
        self.name = name
        self.delay, self.duration = delay, duration
        self.max_age, self.max_size = max_age, max_size  # None: not given
        self.disk, self.dump_on_exit, self.path = disk, dump_on_exit, path
        self.state = "new"  # delayed, running, stopped
        self.begin = 0  # since 1970
        self.before: frozenset[tuple[str | None, int, int]] = frozenset()  # chunks that were there when it began
        self.deadline = 0  # time.monotonic_ns() of the next state; 0: none comes by itself

    def __repr__(self) -> str:
        return f"<Recording {self.id} {self.name} ({self.state})>"

    @property
    def runs(self) -> bool:
        return self.state == "running"

    def covers(self, chunk: Chunk) -> bool:
        """Whether it has a part in a finished chunk. Times do not say: the clock may be set back."""
        return bool(self.begin) and chunk.key not in self.before


class Options:
    """What JFR.configure and -XX:FlightRecorderOptions say; bytes and frames."""

    def __init__(self) -> None:
        self.repository = repository.BASE
        self.preserve = False
        self.dump_path = ""  # where a crash would dump to; "": the program's folder
        self.stack_depth = 64
        self.max_chunk_size = 12 << 20
        # A JVM's, which change nothing here.
        self.global_buffers = 20
        self.global_buffer_size = 512 << 10
        self.thread_buffer_size = 8 << 10
        self.memory_size = 10 << 20


class Recorder:
    """All recordings, and the native recorder while one of them runs."""

    def __init__(self) -> None:
        self.lock = _thread.RLock()
        self.options = Options()
        self.recordings: dict[int, Recording] = {}
        self.repository: Repository | None = None
        self._native: native.FlightRecorder | None = None
        self._sources: Sources | None = None
        self._active: list[native.EventType] = []
        self._timer = 0  # the thread that looks for what is due
        self._on_disk = False
        self._writes = False  # the native recorder runs
        self._last_id = 0
        self._hooked = False
        self._programs: dict[str, types.Type] = {}  # events of the program's own

    # -- the life of a recording

    def add(self, recording: Recording) -> None:
        """Gives it an id, and a name where it has none."""
        with self.lock:
            self._last_id += 1
            recording.id = self._last_id
            recording.name = recording.name or str(recording.id)

    def start(self, recording: Recording) -> None:
        """Begins it, or its delay. VMScopeError where this process cannot be recorded, OSError for its folder."""
        with self.lock:
            self._prepare()
            if recording.delay:
                recording.state, recording.deadline = "delayed", time.monotonic_ns() + recording.delay
            else:
                self._begin(recording)
            self.recordings[recording.id] = recording
            self._wake()

    def stop(self, recording: Recording, path: str = "") -> int:
        """Ends it, and writes what it has into a file, where it has one or `path` names another. The file's size.

        OSError where that cannot be written; then the recording goes on.
        """
        with self.lock:
            if not recording.runs:
                raise RecordingError("Recording must be started before it can be stopped.")
            self._rotate()
            path = path or recording.path
            written = self._write(path, self._kept([recording])) if path else 0
            recording.state = "stopped"
            self.recordings.pop(recording.id, None)
            self._settle()
            self._wake()
            return written

    def find(self, name: str) -> Recording | None:
        """By name or id."""
        with self.lock:
            for each in self.recordings.values():
                if name in (each.name, str(each.id)):
                    return each
            return None

    @property
    def began(self) -> bool:
        """Whether there has been a recording."""
        return self._native is not None

    def running(self) -> list[Recording]:
        return [each for each in self.recordings.values() if each.runs]

    def dump(self, recordings: Iterable[Recording], path: str, keep: Callable[[list[Chunk]], list[Chunk]]) -> int:
        """Writes what these have until now, as far as `keep` keeps it; the file's size. OSError, LookupError: nothing
        is kept."""
        with self.lock:
            self._rotate()
            chunks = keep(self._kept(recordings))
            if not chunks:
                raise LookupError
            return self._write(path, chunks)

    def chunks(self) -> list[Chunk]:
        """All finished ones, the current one among them."""
        with self.lock:
            self._rotate()
            return self._finished()

    def data(self, chunk: Chunk) -> bytes:
        """The bytes of one."""
        if chunk.data is not None:
            return chunk.data
        assert self.repository is not None
        assert chunk.name is not None
        folder = self.repository.open()
        try:
            with open(os.open(chunk.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
                return file.read()
        finally:
            os.close(folder)

    # -- the native recorder

    def _prepare(self) -> None:
        if self._native is None:
            make = getattr(native, "flight_recorder", None)
            if make is None or not native.in_main_interpreter():
                raise RecordingError(
                    "this process cannot be recorded: it takes the C extension, a CPython with a GIL, and Linux"
                )
            self._native = make(types.metadata(), types.NUMBERS, os.path.dirname(os.path.dirname(__file__)))
            self._sources = Sources(self._native)
            events.on_new = self._made
            self._active = [adopted(self._native, name) for name in ACTIVE]
            for each in self._active:
                each.enabled = True  # what each recording wants of them is asked below
        if not self._hooked:
            own_threads.at_exit(_exit, early=True)
            if sys.platform != "win32":  # SIGTERM is an end too, where its handler can be Python's
                from vmscope import termination

                native.forward_end_signals(termination.forwarding_signal())
            self._hooked = True

    def _begin(self, recording: Recording) -> None:
        if self._writes:
            self._rotate()
        self._write_chunks(recording.disk)
        recording.before = frozenset(each.key for each in self._finished())
        recording.begin, recording.state = time.time_ns(), "running"
        recording.deadline = time.monotonic_ns() + recording.duration if recording.duration else 0
        self.recordings[recording.id] = recording
        self._apply()
        self._describe()

    def _write_chunks(self, on_disk: bool) -> None:
        """The native recorder runs, and with files where one recording wants them."""
        assert self._native is not None
        if self._writes and (self._on_disk or not on_disk):
            return
        if on_disk and self.repository is None:
            self.repository = Repository(self.options.repository)
        if self._writes:
            self._native.stop()
        folder = self.repository.path if on_disk and self.repository is not None else None
        self._native.set_depth(self.options.stack_depth)
        self._native.set_path(sys.path)  # the names of modules come from it
        self._native.start(folder, self.options.max_chunk_size if on_disk else RING_CHUNK)
        self._writes, self._on_disk = True, on_disk

    def _rotate(self) -> None:
        if self._native is not None and self._sources is not None and self._writes:
            self._sources.end_chunk()
            if not self._native.rotate():
                raise RecordingError("the current chunk cannot be ended: its disk does not answer")
            self._describe()

    def _describe(self) -> None:
        """Which recordings run, and what they ask for, as events of the current chunk."""
        recordings, settings = self._active
        now = time.monotonic_ns()
        for each in self.running():
            if each.settings.of(ACTIVE[0]).enabled:
                age, duration = (value // MS if value else NONE for value in (each.max_age, each.duration))
                limits = age, 1_000, each.max_size or NONE, each.begin // MS, duration
                recordings.commit(now, None, each.id, each.name, each.path or None, each.disk, *limits)
            if each.settings.of(ACTIVE[1]).enabled:
                for event, values in each.settings.values.items():
                    for name, value in values.items():
                        settings.commit(now, None, types.NUMBERS.get(event, 0), name, spaced(value))

    def _finished(self) -> list[Chunk]:
        return [] if self._native is None else [Chunk(*row) for row in self._native.chunks()]

    def _apply(self) -> None:
        """What is recorded from now on is what the running recordings ask for."""
        assert self._native is not None
        assert self._sources is not None
        running = self.running()
        self._sources.apply(combined(each.settings for each in running))
        for event in [*events.EVENTS.values()]:
            self._adopt(event)
            self._switch(event)
        ages = [each.max_age or 0 for each in running]
        sizes = [each.max_size or 0 for each in running]
        size = max(sizes) if self._on_disk and all(sizes) else 0 if self._on_disk else RING_SIZE
        self._native.retain(age=max(ages) if all(ages) else 0, size=size)

    def _adopt(self, event: Event) -> None:
        """Takes an event of the program's own into the recordings, from the current chunk on."""
        assert self._native is not None
        if event.name not in self._programs and event.native is not None:
            number = max(types.NUMBERS.values()) + 1 + len(self._programs)
            self._programs[event.name] = types.event_type(event.name, number, events.words(event), "Program")
            self._native.adopt(event.native, number)
            self._native.set_metadata(types.metadata(self._programs.values()), types.NUMBERS)

    def _switch(self, event: Event) -> None:
        if event.native is not None:
            wanted = combined_for(event.name, (each.settings for each in self.running()))
            event.native.stack, event.native.threshold = wanted.stack, wanted.threshold
            event.native.enabled = wanted.enabled

    def _made(self, event: Event) -> None:
        """One that the program makes while it is recorded."""
        with self.lock:
            if self.running():
                self._apply()

    def _settle(self) -> None:
        """After the end of a recording: the others go on; without any nothing is left."""
        if self._native is None or self._sources is None:
            return
        if self.running():
            self._apply()
            self._discard()
            return
        self._sources.stop()
        for event in [*events.EVENTS.values()]:
            if event.native is not None:
                event.native.enabled = False
        self._native.stop()
        self._writes = False
        self._native.remove(len(self._native.chunks()))
        self._forget_repository()

    def _discard(self) -> None:
        """Removes chunks that no recording has a part in."""
        assert self._native is not None
        recordings = list(self.recordings.values())
        count = 0
        for chunk in self._finished():
            if any(each.covers(chunk) for each in recordings):
                break
            count += 1
        self._native.remove(count)

    def _forget_repository(self) -> None:
        if self.repository is not None and not self.options.preserve:
            self.repository.remove()
        self.repository = None

    # -- what a recording has

    def _kept(self, recordings: Iterable[Recording]) -> list[Chunk]:
        """Chunks of these, each within its recording's limits; the oldest first."""
        chunks = self._finished()
        kept: set[Chunk] = set()
        for each in recordings:
            own = [chunk for chunk in chunks if each.covers(chunk)]
            kept.update(limited(own, each.max_age or 0, each.max_size or 0))
        return [chunk for chunk in chunks if chunk in kept]

    def _write(self, path: str, chunks: list[Chunk]) -> int:
        return repository.write(path, chunks, self.repository)

    # -- what comes by itself

    def _wake(self) -> None:
        """What is due is looked for each second while there is a recording. OSError where no thread can be started."""
        if self.recordings:
            native.call_periodically(S, self._visit)
        elif _thread.get_ident() != self._timer:
            native.stop_periodic_calls()

    def _visit(self) -> None:
        """On a thread of vmscope's own."""
        self._timer = _thread.get_ident()
        own_threads.without_collection(self._do_what_is_due)

    def _do_what_is_due(self) -> None:
        if not self.lock.acquire(blocking=False):  # a command is at work, and may wait for this thread to end
            return
        try:
            now = time.monotonic_ns()
            for each in [*self.recordings.values()]:
                if each.deadline and each.deadline <= now:
                    self._advance(each)
            if self._writes and self._sources is not None:
                self._sources.visit()
        finally:
            self.lock.release()

    def _advance(self, recording: Recording) -> None:
        """Begins one that was delayed; ends one whose time is over."""
        recording.deadline = 0
        try:
            if recording.state == "delayed":
                self._begin(recording)
            else:
                self.stop(recording)
        except (VMScopeError, OSError) as error:
            self.recordings.pop(recording.id, None)
            self._settle()
            _say("recording %s: %s", recording.name, error)

    def exit(self) -> None:
        """The end of the process: recordings that ask for it are dumped, the repository goes."""
        if self._native is None or not self.lock.acquire(timeout=_EXIT_TIMEOUT):
            return
        try:
            for each in self.running():
                if each.dump_on_exit or (each.duration and each.path):
                    try:
                        self.stop(each, each.path or default_name(each))
                    except (VMScopeError, OSError) as error:
                        _say("recording %s is not dumped: %s", each.name, error)
            self.recordings.clear()
            self._wake()
            self._settle()
        finally:
            self.lock.release()


def _say(message: str, *arguments: object) -> None:
    if "logging" in sys.modules:
        log.say("warning", message, *arguments)


def limited(chunks: list[Chunk], age: int, size: int) -> list[Chunk]:
    """The newest of these: those that ended at most so long ago, and are at most so large, the newest in any case."""
    kept: list[Chunk] = []
    oldest = time.time_ns() - age
    for chunk in reversed(chunks):
        size_with = chunk.size + sum(each.size for each in kept)
        if kept and ((age and chunk.end < oldest) or (size and size_with > size)):
            break
        kept.append(chunk)
    return kept[::-1]


def default_name(recording: Recording | None = None) -> str:
    """A file in the program's folder: whose it is, and when it was made."""
    whose = f"-id-{recording.id}" if recording is not None else ""
    return os.path.join(folder(), f"hotspot-pid-{os.getpid()}{whose}-{_now()}.jfr")


def resolve(path: str, recording: Recording | None = None) -> str:
    """What a client's name of a file means: %p is the pid, %t the time; of a folder, a file in it."""
    path = path.replace("%p", str(os.getpid())).replace("%t", _now())
    if not path:
        return default_name(recording)
    path = os.path.normpath(os.path.join(folder(), path))
    return os.path.join(path, os.path.basename(default_name(recording))) if os.path.isdir(path) else path


def _now() -> str:
    return time.strftime("%Y_%m_%d_%H_%M_%S")


def folder() -> str:
    """The program's."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return "/"


RECORDER = Recorder()


def _exit() -> None:
    RECORDER.exit()


def _after_fork() -> None:
    """A child has no recordings. What its parent's were made of stays as it is: nothing of it is freed."""
    global RECORDER, _PARENTS
    if RECORDER._native is not None:
        _PARENTS, RECORDER = RECORDER, Recorder()


_PARENTS: Recorder | None = None
own_threads.in_child(_after_fork)
