"""A Python or Java VM of this host, seen through its region: `VM`, and its `Counter`s."""

from __future__ import annotations

import sys

from vmscope.errors import FormatError, VMScopeError
from vmscope.reader.ownership import LIVE, STALE, WITNESSES, FileLocks, Owner, owner
from vmscope.reader.process import user_name
from vmscope.reader.snapshot import Reader, Snapshot
from vmscope.wire.decode import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.reader.attachment import Attachment
    from vmscope.reader.process import Process

CPYTHON = "CPython"
HOTSPOT = "HotSpot"
OTHER = "other"
THREADS = "java.threads.live"

# What the properties of a VM look at.
_IDENTITY = (
    *("java.property.java.vm.name", "java.property.java.vm.version", "sun.rt.javaCommand", "java.rt.vmArgs"),
    *("java.rt.vmFlags", "sun.rt.jvmVersion", "java.cls.loadedClasses", "python.commandLine"),
    *("vmscope.implementation", "vmscope.implementation.reason", "vmscope.problem"),
    "vmscope.service",
    THREADS,
)
_LOOKED_AT = (*_IDENTITY, *WITNESSES)


class Counter:
    """One entry of a VM's region. `units` and `variability` are the numbers of wire.codes."""

    __slots__ = ("_reader", "entry")

    def __init__(self, reader: Reader, entry: Entry) -> None:
        self._reader = reader
        self.entry = entry

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def units(self) -> int:
        return self.entry.units

    @property
    def variability(self) -> int:
        return self.entry.variability

    @property
    def supported(self) -> bool:
        return self.entry.supported

    @property
    def value(self) -> int | str:
        """Read now. Raises StaleRegion when the region is gone."""
        return self._reader.value(self.entry.data_type, self.entry.data_offset, self.entry.vector_length)

    def __repr__(self) -> str:
        return f"<Counter {self.name}>"


class Counters:
    """A VM's counters by name, as a read-only mapping; those that are added later are found too."""

    __slots__ = ("_known", "_reader", "_seen")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, Counter] = {}
        self._seen = 0

    def _all(self) -> dict[str, Counter]:
        rows = self._reader.structure().rows
        if len(rows) != self._seen:
            self._seen = len(rows)
            self._known = {row[1]: Counter(self._reader, Entry(*row)) for row in rows}
        return self._known

    def __getitem__(self, name: str) -> Counter:
        return self._all()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def get(self, name: str) -> Counter | None:
        return self._all().get(name)

    def keys(self) -> list[str]:
        return list(self._all())

    def values(self) -> list[Counter]:
        return list(self._all().values())

    def items(self) -> list[tuple[str, Counter]]:
        return list(self._all().items())


class VM:
    """A Python or Java VM of this host, attached by its region. Close it, or use it in a `with` statement.

    `counters` is a read-only mapping of names to counters, each with `name`, `value`, `units`, `variability` and
    `supported`; `path` is the region's file. Reading raises StaleRegion when the region is gone, and FormatError for
    what is not a region.
    """

    __slots__ = ("_attachment", "_owner", "_values", "counters", "path", "path_given", "reader")

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self.path = attachment.path
        self.path_given = attachment.pid is None
        self.reader = Reader(attachment.mapping, attachment.path, attachment.pid)
        self.counters = Counters(self.reader)
        self._values: dict[str, int | str] | None = None
        self._owner: Owner | None = None

    # -- whose

    def examine(self, locks: FileLocks) -> Owner:
        """Examines again which process wrote the region, and whether it lives."""
        attachment = self._attachment
        if attachment.pid is None or attachment.nspid is None:
            self._owner = Owner(STALE, 0)
        else:
            self._owner = owner(attachment.pid, attachment.nspid, attachment.found, self._witnesses, locks)
        return self._owner

    def _witnesses(self) -> dict[str, int | str]:
        """What the region says of its owner now; nothing where it is damaged."""
        try:
            values = self.reader.some(_LOOKED_AT)
        except FormatError:
            return {}
        if self._values is None:
            self._values = values
        return values

    def check(self) -> None:
        """Raises FormatError for a file that is not a region. Damage behind the head is not looked for."""
        if self._values is None:
            self.reader.prologue()

    @property
    def pid(self) -> int | None:
        """The pid of the VM, in this process's pid namespace; None for a `file:`."""
        if self._owner is not None and not self.path_given:
            return self._owner.pid
        return self._attachment.pid

    @property
    def user(self) -> str:
        """The owner of the file; "" for a `file:`. The name of its directory does not count: any user may choose it."""
        attachment = self._attachment
        if sys.platform == "win32" or self.path_given:
            return attachment.user
        return user_name(attachment.found.st_uid)

    @property
    def nspid(self) -> int | None:
        """The pid in the VM's own pid namespace."""
        return self._attachment.nspid

    @property
    def state(self) -> str:
        """`live`, `stale` (the VM has ended; also for a `file:`) or `foreign` (of another pid namespace)."""
        return (self._owner or self.examine(FileLocks())).state

    @property
    def file(self) -> tuple[int, int]:
        """Device and inode of the region's file."""
        found = self._attachment.found
        return found.st_dev, found.st_ino

    @property
    def alive(self) -> bool:
        """Whether the VM lives now."""
        known = self._owner
        if known is not None and known.alive:
            return True
        try:
            return self.examine(FileLocks()).state == LIVE
        except VMScopeError:
            return False

    # -- what

    def _first(self) -> dict[str, int | str]:
        """The values as they were first read: for what does not change."""
        if self._values is None:
            self._values = self.reader.some(_LOOKED_AT)
        return self._values

    def _text(self, name: str) -> str:
        value = self._first().get(name, "")
        return value if isinstance(value, str) else str(value)

    @property
    def kind(self) -> str:
        """`CPython`, `HotSpot` or `other`."""
        return kind_of(self._first())

    @property
    def version(self) -> str:
        """The VM's version: CPython's or the JVM's."""
        return self._text("java.property.java.vm.version")

    @property
    def implementation(self) -> str:
        """Which vmscope a Python process runs: `c` or `python`; "" for another VM."""
        return self._text("vmscope.implementation")

    @property
    def implementation_reason(self) -> str:
        """Why that is `python` where `c` could be in use; else ""."""
        return self._text("vmscope.implementation.reason")

    @property
    def problem(self) -> str:
        """The last failure in a Python process that ended nothing; "" where all works."""
        return self._text("vmscope.problem")

    @property
    def service(self) -> str:
        """Of a Python process: the name by which its service keeps totals; "" where it has none."""
        return self._text("vmscope.service")

    @property
    def command_line(self) -> str:
        """The program and its arguments."""
        return self._text("sun.rt.javaCommand")

    @property
    def started_as(self) -> str:
        """The interpreter, options and program of a Python process, as they were given; "" for another VM."""
        return self._text("python.commandLine")

    @property
    def main(self) -> str:
        """The program's short name: no directory, no package."""
        return short_name(self.command_line, self.kind)

    @property
    def vm_arguments(self) -> str:
        """The options of the VM as they were given, in one line."""
        return self._text("java.rt.vmArgs")

    @property
    def vm_flags(self) -> str:
        """The flags file that the VM read, as a JVM shows it; "" where it read none."""
        return self._text("java.rt.vmFlags")

    def threads(self, process: Process) -> int:
        """How many its program has."""
        return threads_of(self._first(), process)

    # -- values

    def values(self) -> dict[str, int | str]:
        """Reads every counter's value, by name. From the second time on only the values are read."""
        return self.reader.values()

    def snapshot(self) -> Snapshot:
        """The values, with when and how they were read."""
        return self.reader.snapshot()

    def close(self) -> None:
        """Detaches. Facts of its identity that were read before stay known; its counters do not."""
        self._attachment.close()

    def __enter__(self) -> VM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<VM {self.path if self.path_given else self.pid}>"


def kind_of(values: dict[str, int | str]) -> str:
    """`CPython`, `HotSpot` or `other`, from a region's values."""
    name = values.get("java.property.java.vm.name", "")
    if name == "CPython":
        return CPYTHON
    if isinstance(name, str) and ("HotSpot" in name or name.startswith("OpenJDK")):
        return HOTSPOT
    return HOTSPOT if "sun.rt.jvmVersion" in values and "java.cls.loadedClasses" in values else OTHER


def threads_of(values: dict[str, int | str], process: Process) -> int:
    """Of a Python process the program's threads, without vmscope's own; of others all that the process has."""
    live = values.get(THREADS, 0)
    if kind_of(values) == CPYTHON and isinstance(live, int) and 0 < live <= process.threads:
        return live
    return process.threads


def short_name(command_line: str, kind: str) -> str:
    """The program's name without directory and, for Java, without package and module; a `.jar` stays."""
    program = command_line.split(" ", 1)[0]
    if sys.platform == "win32":
        program = program.replace("\\", "/")
    program = program.rstrip("/").rpartition("/")[2] or program
    if kind == CPYTHON or program.endswith(".jar"):
        return program
    return program.rpartition(".")[2]
