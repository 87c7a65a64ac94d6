"""`vmscope ps`: the Python and Java VMs of this host, one line each."""

from __future__ import annotations

import os
import time

from vmscope import reader, terminal
from vmscope.cli import _options, _table
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, FormatError, ReadTimeout, VMScopeError
from vmscope.reader.process import process, user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.reader.process import Process

HELP = """\
usage: vmscope ps [--all] [--json] [--sort=COLUMN] [--watch[=SECONDS]] [PID ...]

Lists the Python and Java VMs that you may read; as root, everybody's, and those in containers.

  --all            also regions whose writer has ended (stale), or lives where it cannot be seen (foreign), and
                   Python processes that can have none (unpublished), with the REASON
  --json           one JSON array instead of the table
  --sort=COLUMN    by that column (pid, user, kind, version, uptime, threads, rss, cpu, main)
  --watch[=2]      again and again, every so many seconds, until Ctrl-C

USER is the owner of the region's file, UPTIME the process's age, CPU the processor time it has used, RSS its resident
memory. A star after KIND: the process runs vmscope without its C extension although it could; `implementation_reason`
of --json says why. A VM whose region cannot be read has dashes, and a REASON behind them; one in which something does
not work, as an agent that cannot be loaded, has a REASON too.

example:
$ vmscope ps
 PID  USER  KIND     VERSION                    UPTIME  THREADS    RSS    CPU  MAIN
4711  shop  CPython  3.12.1                      9.06s        2  11.4M  200ms  shop
4830  root  HotSpot  17.0.15+6-Debian-1deb12u1   9.05s       20  92.5M  140ms  Store
"""

_COLUMNS = [
    Column("PID", right=True),
    Column("USER"),
    Column("KIND"),
    Column("VERSION"),
    Column("UPTIME", right=True),
    Column("THREADS", right=True),
    Column("RSS", right=True),
    Column("CPU", right=True),
    Column("MAIN"),
]
_STATE = Column("STATE")
_REASON = Column("REASON")
_LARGEST_FIRST = ("uptime", "threads", "rss", "cpu")
_KEYS = ("pid", "user", "kind", "version", *_LARGEST_FIRST, "main")


class Row:
    """A VM and its process, which a stale region does not have. `reason`: why nothing more is known of the VM, or what
    does not work in it."""

    __slots__ = (
        "cpu", "implementation", "implementation_reason", "kind", "main", "path", "pid", "reason", "rss", "state",
        "threads", "uptime", "user", "version",
    )  # fmt: skip

    def __init__(self, vm: reader.VM, found: Process | None) -> None:
        self.pid = vm.pid
        self.user = vm.user
        self.kind = self.version = self.main = "-"
        self.implementation = self.implementation_reason = ""
        self.reason: str | None = None
        try:
            self.kind, self.version, self.main = vm.kind, vm.version, vm.main
            self.implementation, self.implementation_reason = vm.implementation, vm.implementation_reason
            self.reason = vm.problem or None
        except (FormatError, ReadTimeout) as error:
            self.reason = str(error)
        self.path: str | None = vm.path
        self.state = vm.state
        self._set_process(found)

    @classmethod
    def unpublished(cls, found: Process, reason: str) -> Row:
        """A process that has no region."""
        row = cls.__new__(cls)
        row.pid, row.user, row.main = found.pid, user_name(found.uid), found.program
        row.kind, row.version, row.implementation, row.implementation_reason = "CPython", "-", "", ""
        row.path, row.state, row.reason = None, "unpublished", reason
        row._set_process(found)
        return row

    def _set_process(self, found: Process | None) -> None:
        self.uptime = None if found is None else found.uptime_seconds
        self.threads = None if found is None else found.threads
        self.rss = None if found is None else found.rss
        self.cpu = None if found is None else found.cpu_seconds

    def cells(self) -> list[str]:
        return [
            str(self.pid),
            self.user,
            f"{self.kind}*" if self.implementation_reason else self.kind,
            self.version,
            "-" if self.uptime is None else _table.duration(self.uptime),
            "-" if self.threads is None else str(self.threads),
            "-" if self.rss is None else _table.size(self.rss),
            "-" if self.cpu is None else _table.duration(self.cpu),
            self.main,
        ]


def main(args: list[str]) -> int:
    """Shows the table. 0; 1 when none of the pids asked for is a VM's."""
    options, words = _options.parse("ps", args, {"--all": None, "--json": None, "--sort": "", "--watch": "2"})
    pause = _options.seconds("ps", options["--watch"]) if "--watch" in options else 0.0
    key = options.get("--sort", "pid").lower()
    if key not in _KEYS:
        raise CommandLineError(f"ps cannot sort by {key!r}", hint=f"use one of: {', '.join(_KEYS)}")
    wanted = [_pid(word) for word in words]
    screen = _table.Screen()
    status = 0
    try:
        while True:
            rows = _sorted(_rows("--all" in options, wanted), key)
            status = 0 if not wanted or rows else 1
            text = _json(rows) if "--json" in options else _text(rows, screen, with_state="--all" in options)
            if pause and "--json" not in options:
                screen.clear()
            if rows or not wanted:
                terminal.OUT.put(text)
            missing = sorted(set(wanted) - {row.pid for row in rows})
            if missing:
                _explain(missing)
                status = 1
            if not pause:
                return status
            terminal.OUT.flush()
            time.sleep(pause)
    except KeyboardInterrupt:
        if not pause:
            raise
    return status


def _pid(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise CommandLineError(f"ps takes pids, not {word!r}", hint="vmscope ps --help shows what it takes")
    return int(word)


def _explain(pids: list[int]) -> None:
    """Says for each of these pids why it is not in the table."""
    for pid in pids:
        try:
            reader.vm(pid).close()
        except VMScopeError as error:
            terminal.complain(error)


def _rows(everything: bool, wanted: list[int]) -> list[Row]:
    rows = []
    own = os.getpid()
    for vm in reader.vms(stale=everything):
        with vm:
            if vm.pid == own or (wanted and vm.pid not in wanted):
                continue
            try:
                rows.append(Row(vm, _process(vm)))
            except VMScopeError:  # it ends just now
                continue
    if everything:
        from vmscope.reader.unpublished import unpublished

        known = {row.pid for row in rows} | {own}
        rows += [Row.unpublished(*found) for found in unpublished(known) if not wanted or found[0].pid in wanted]
    return rows


def _process(vm: reader.VM) -> Process | None:
    return process(vm.pid) if vm.pid and vm.state == "live" else None


def _sorted(rows: list[Row], key: str) -> list[Row]:
    if key in _LARGEST_FIRST:
        return sorted(rows, key=lambda row: -(getattr(row, key) or 0.0))
    return sorted(rows, key=lambda row: getattr(row, key))


def _text(rows: list[Row], screen: _table.Screen, *, with_state: bool) -> str:
    columns = [*_COLUMNS[:3], _STATE, *_COLUMNS[3:]] if with_state else list(_COLUMNS)
    with_reason = any(row.reason for row in rows)
    if with_reason:
        columns.append(_REASON)
    table = []
    for row in rows:
        cells = row.cells()
        cells = [*cells[:3], row.state, *cells[3:]] if with_state else cells
        table.append([*cells, row.reason or ""] if with_reason else cells)
    dim = frozenset(number for number, row in enumerate(rows) if row.state not in ("live", "unpublished"))
    return _table.render(columns, table, screen, dim=dim)


def _json(rows: list[Row]) -> str:
    return _table.as_json([{name: getattr(row, name) for name in _JSON} for row in rows])


_JSON = (
    "pid", "user", "kind", "version", "state", "uptime", "threads", "rss", "cpu", "main", "path", "implementation",
    "implementation_reason", "reason",
)  # fmt: skip
