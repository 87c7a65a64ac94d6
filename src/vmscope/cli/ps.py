"""`vmscope ps`: the Python and Java VMs of this host, one line each."""

from __future__ import annotations

import os
import time

from vmscope import reader, services, terminal
from vmscope.cli import _options, _table
from vmscope.cli._table import Column
from vmscope.errors import CommandLineError, FormatError, ReadTimeout, VMScopeError
from vmscope.reader.process import process, user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.reader.process import Process

_HELP = """\
usage: vmscope ps [--all] [--tree] [--json] [--sort=COLUMN] [--watch[=SECONDS]]
                  [PID ...]

Lists the Python and Java VMs that you may read. Root sees those of all users,
and those in containers.

  --all            also regions whose writer has ended (stale), or lives where
                   it cannot be seen (foreign), and Python processes that can
                   have none (unpublished), with the REASON
  --tree           each VM below the one that started it, with its parent's pid
                   and its arguments
  --json           one JSON array instead of the table
{keys}
  --watch[=2]      repeat every 2 seconds, or that many, until Ctrl-C

USER is the owner of the region's file, UPTIME the process's age, THR its
threads, of a Python VM those that run Python code, without vmscope's own, RSS
its resident memory, CPU% the share of a processor that it has used since its
start. MAIN is the program; of a process that works for another one its service
and its role.

{roles}

A star after KIND: the process runs vmscope without its C extension although it
could; `implementation_reason` of --json says why. A VM whose region cannot be
read has dashes, and a REASON behind them; one in which something does not work,
as an agent that cannot be loaded, has a REASON too.

example:
$ vmscope ps
 PID  USER  KIND     VERSION    UPTIME  THR    RSS   CPU%  MAIN
4711  shop  CPython  3.13.1      9.06s    2  11.4M   2.2%  shop
4712  shop  CPython  3.13.1      9.01s    2  10.1M  81.5%  shop: worker
4830  root  HotSpot  17.0.15+6   9.05s   20  92.5M   1.5%  Store
$ vmscope ps --tree
 PID  PPID  USER  UPTIME  THR    RSS   CPU%  MAIN
4711  4102  shop   9.06s    2  11.4M   2.2%  shop --port 8000
4712  4711  shop   9.01s    2  10.1M  81.5%  `- shop: worker of 4711
4830  4102  root   9.05s   20  92.5M   1.5%  Store
"""

_PID, _PPID = Column("PID", right=True), Column("PPID", right=True)
_USER, _KIND, _STATE, _VERSION, _MAIN, _REASON = map(Column, ("USER", "KIND", "STATE", "VERSION", "MAIN", "REASON"))
_USE = [Column(title, right=True) for title in ("UPTIME", "THR", "RSS", "CPU%")]
_COLUMNS = [_PID, _USER, _KIND, _VERSION, *_USE, _MAIN]
_TREE = [_PID, _PPID, _USER, *_USE, _MAIN]
_LARGEST_FIRST = ("uptime", "threads", "rss", "cpu", "cpu_share")
_KEYS = ("pid", "ppid", "user", "kind", "version", "uptime", "threads", "rss", "cpu", "cpu%", "main")
HELP = _HELP.format(
    keys=terminal.fold(f"  --sort=COLUMN    by that column: {', '.join(_KEYS)}", indent=19),
    roles="\n".join(terminal.fold(f"  {name:<16} {what}", indent=19) for name, what in services.ROLES),
)


class ProcessRow:
    """A VM and its process, which a stale region does not have. `reason`: why nothing more is known of the VM, or what
    does not work in it. `member`: what it is to the others.
    """

    __slots__ = (
        "command_line", "cpu", "cpu_share", "implementation", "implementation_reason", "kind", "main", "member", "path",
        "pid", "ppid", "reason", "rss", "stack_start", "started_as", "state", "threads", "uptime", "user", "version",
    )  # fmt: skip

    def __init__(self, pid: int, user: str, state: str, found: Process | None) -> None:
        self.pid = pid
        self.user = user
        self.state = state
        self.kind = self.version = self.main = "-"
        self.command_line = self.started_as = ""
        self.implementation = self.implementation_reason = ""
        self.path: str | None = None
        self.reason: str | None = None
        self.uptime = None if found is None else found.uptime_seconds
        self.threads = None if found is None else found.threads
        self.rss = None if found is None else found.rss
        self.cpu = None if found is None else found.cpu_seconds
        self.cpu_share = self.cpu / self.uptime if self.cpu is not None and self.uptime else None
        self.ppid = None if found is None else found.ppid
        self.stack_start = 0 if found is None else found.stack_start
        self.member = services.Member(self.main)

    @classmethod
    def published(cls, vm: reader.VM, found: Process | None) -> ProcessRow:
        row = cls(vm.pid or 0, vm.user, vm.state, found)
        row.path = vm.path
        try:
            row.kind, row.version, row.main = vm.kind, vm.version, vm.main
            row.command_line, row.started_as = vm.command_line, vm.started_as
            row.implementation, row.implementation_reason = vm.implementation, vm.implementation_reason
            row.reason = vm.problem or None
            row.threads = None if found is None else vm.threads(found)
        except (FormatError, ReadTimeout) as error:
            row.reason = str(error)
        row.member = services.Member(row.main)
        return row

    @classmethod
    def unpublished(cls, found: Process, reason: str) -> ProcessRow:
        """A process that has no region."""
        row = cls(found.pid, user_name(found.uid), "unpublished", found)
        row.kind, row.main, row.reason = "CPython", found.program, reason
        row.member = services.Member(row.main)
        return row

    @property
    def arguments(self) -> str:
        """The program's."""
        return self.command_line.partition(" ")[2]

    def cells(self) -> dict[Column, str]:
        use = (
            "-" if self.uptime is None else _table.duration(self.uptime),
            "-" if self.threads is None else str(self.threads),
            "-" if self.rss is None else _table.size(self.rss),
            "-" if self.cpu_share is None else _table.percent(self.cpu_share),
        )
        return {
            _PID: str(self.pid),
            _PPID: "-" if self.ppid is None else str(self.ppid),
            _USER: self.user,
            _KIND: f"{self.kind}*" if self.implementation_reason else self.kind,
            _STATE: self.state,
            _VERSION: self.version.partition("-")[0] or "-",  # without the vendor's build
            **dict(zip(_USE, use, strict=True)),
            _MAIN: self.member.name,
            _REASON: self.reason or "",
        }

    def in_tree(self) -> str:
        """What it is, below what started it, with its arguments where they are its own."""
        member = self.member
        text = member.label if member.master is not None else f"{member.label} {self.arguments}".rstrip()
        return f"{'   ' * (member.depth - 1)}`- {text}" if member.depth else text


def main(args: list[str]) -> int:
    """Shows the table. 0; 1 when none of the pids asked for is a VM's."""
    takes: dict[str, str | None] = {"--all": None, "--tree": None, "--json": None, "--sort": "", "--watch": "2"}
    options, words = _options.parse("ps", args, takes)
    pause = _options.seconds("ps", options["--watch"]) if "--watch" in options else 0.0
    key = options.get("--sort", "pid").lower()
    if key not in _KEYS:
        raise CommandLineError(f"ps cannot sort by {key!r}", hint=f"use one of: {', '.join(_KEYS)}")
    key = key.replace("%", "_share")
    wanted = [_pid(word) for word in words]
    screen = _table.Screen()
    status = 0
    try:
        while True:
            rows = _sorted(_rows("--all" in options), key)
            if "--tree" in options:
                rows = _below_parents(rows)
            rows = [row for row in rows if not wanted or row.pid in wanted]
            status = 0 if not wanted or rows else 1
            text = _json(rows) if "--json" in options else _text(rows, screen, options)
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
    if not _options.is_pid(word):
        raise CommandLineError(f"ps takes pids, not {word!r}", hint="vmscope ps --help shows what it takes")
    return int(word)


def _explain(pids: list[int]) -> None:
    """Says for each of these pids why it is not in the table."""
    for pid in pids:
        try:
            reader.vm(pid).close()
        except VMScopeError as error:
            terminal.complain(error)


def _rows(everything: bool) -> list[ProcessRow]:
    """A row for each VM, also for those that were not asked for: what one is, others tell."""
    rows = []
    own = os.getpid()
    for vm in reader.vms(stale=everything):
        with vm:
            if vm.pid == own:
                continue
            try:
                rows.append(ProcessRow.published(vm, _process(vm)))
            except VMScopeError:  # it ends just now
                continue
    if everything:
        from vmscope.reader.unpublished import unpublished

        rows += [ProcessRow.unpublished(*found) for found in unpublished({row.pid for row in rows} | {own})]
    _give_roles([row for row in rows if row.ppid is not None])
    return rows


def _give_roles(rows: list[ProcessRow]) -> None:
    members = services.members(rows)
    for row in rows:
        row.member = members[row.pid]


def _process(vm: reader.VM) -> Process | None:
    return process(vm.pid) if vm.pid and vm.state == "live" else None


def _sorted(rows: list[ProcessRow], key: str) -> list[ProcessRow]:
    if key in _LARGEST_FIRST:
        return sorted(rows, key=lambda row: -(getattr(row, key) or 0.0))
    return sorted(rows, key=lambda row: getattr(row, key))


def _below_parents(rows: list[ProcessRow]) -> list[ProcessRow]:
    """Each below the VM that started it; those that one has started stay in their order."""
    below: dict[int | None, list[ProcessRow]] = {}
    for row in rows:
        below.setdefault(row.member.parent, []).append(row)
    ordered: list[ProcessRow] = []
    todo = below.get(None, [])[::-1]
    while todo:
        row = todo.pop()
        ordered.append(row)
        if row.ppid is not None:  # a stale one's pid may be another's
            todo += below.get(row.pid, [])[::-1]
    return ordered


def _text(rows: list[ProcessRow], screen: _table.Screen, options: dict[str, str]) -> str:
    columns = list(_TREE if "--tree" in options else _COLUMNS)
    if "--all" in options:
        columns.insert(columns.index(_USER) + 1 + (_KIND in columns), _STATE)
    if any(row.reason for row in rows):
        columns.append(_REASON)
    cells = [row.cells() for row in rows]
    if "--tree" in options:
        for row, line in zip(rows, cells, strict=True):
            line[_MAIN] = row.in_tree()
    dim = frozenset(number for number, row in enumerate(rows) if row.state not in ("live", "unpublished"))
    return _table.render(columns, [[line[column] for column in columns] for line in cells], screen, dim=dim)


def _json(rows: list[ProcessRow]) -> str:
    return _table.as_json([_fields(row) for row in rows])


def _fields(row: ProcessRow) -> dict[str, object]:
    return {name: getattr(row.member if name in _OF_MEMBER else row, name) for name in _JSON}


_OF_MEMBER = ("service", "role", "master")
_JSON = (
    "pid", "ppid", "user", "kind", "version", "state", "uptime", "threads", "rss", "cpu", "cpu_share", "main",
    "arguments", "service", "role", "master", "path", "implementation", "implementation_reason", "reason",
)  # fmt: skip
