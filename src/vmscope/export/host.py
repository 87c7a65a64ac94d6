"""The VMs of this host as one answer: who is there, which service each belongs to, and what their numbers are now."""

from __future__ import annotations

import os
import platform
import sys
import time
from fnmatch import fnmatchcase
from itertools import count
from threading import Lock
from uuid import NAMESPACE_OID, uuid5

from vmscope import services
from vmscope.errors import VMScopeError
from vmscope.export import ended, own, standard, text
from vmscope.export.facts import FACTS, facts
from vmscope.export.model import Point
from vmscope.export.names import Labels, limited
from vmscope.export.plan import EXEMPLAR, Plan
from vmscope.export.table import Member, Table
from vmscope.reader.process import read_file, user_name
from vmscope.reader.roster import Roster
from vmscope.reader.sampler import Sampler
from vmscope.reader.structure import words
from vmscope.services.naming import ORDER, container_id, service_name
from vmscope.wire.series import is_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.export.exemplars import Exemplar
    from vmscope.export.rules import Rules
    from vmscope.export.table import Number
    from vmscope.export.text import Format
    from vmscope.reader.machine import VM
    from vmscope.reader.structure import Structure
    from vmscope.wire.totals import Totals

LIMIT = 20_000  # series of a VM's program
_ATTEMPTS = 4  # to read VMs of which some get new counters
_PAUSE = 30.0  # seconds for which a VM that cannot be read is left alone
_PLANS = 1 << 10  # that are kept
_BEGIN = "sun.rt.createVmBeginTime"


class Options:
    """What is exported: `by_pid` each VM, else each service; `pattern` which; `limit` series of one VM's program;
    `of` only those of the service that this process belongs to."""

    def __init__(
        self, *, by_pid: bool = False, pattern: str = "", limit: int = LIMIT, ways: tuple[str, ...] = ORDER,
        rules: Rules | None = None, of: int | None = None,
    ) -> None:  # fmt: skip
        self.of = of
        self.by_pid = by_pid
        self.pattern = pattern
        self.limit = limit
        self.ways = ways
        self.rules = rules


class Known:
    """What of a VM is found out once: its service, its place among the workers, when it began, whose it is.

    `planned` is what it exports, and what /proc knew of it, for this many entries in its region. `key` says where the
    totals of its service are, `note` what they have once its numbers are in them, which `noted` says. `ended`: its
    process has.
    """

    __slots__ = (
        "created", "ended", "key", "kind", "name", "note", "noted", "planned", "role", "user", "vm", "worker",
    )  # fmt: skip

    def __init__(self, vm: VM, name: str, role: str, created: float) -> None:
        self.vm = vm
        self.kind = vm.kind
        self.user = limited(vm.user)
        self.name = limited(name)
        self.role = role
        self.created = created
        self.worker = 0
        self.planned: tuple[int, Plan, list[int]] | None = None
        self.key = ended.key_of(vm)
        self.note = ended.note_of(vm) if self.key else (0, 0, 0)
        self.ended = self.noted = False


class Answer:
    """One reading of all VMs: the table, the numbers that its values come from, which the next one overwrites, and
    what the exporter reports about itself. `values` are there where they are asked for."""

    __slots__ = ("created", "numbers", "reads", "seconds", "table", "taken", "unreadable", "values")

    def __init__(
        self, table: Table, numbers: memoryview, unreadable: int, seconds: float, reads: int, created: float
    ) -> None:
        self.table = table
        self.numbers = numbers
        self.values: list[Number] = []
        self.unreadable = unreadable
        self.seconds = seconds
        self.reads = reads
        self.created = created  # when the counting of reads began
        self.taken = time.time_ns()

    def own(self, form: Format) -> str:
        table = self.table
        reasons = [((("reason", reason),), number) for reason, number in table.dropped.items()]
        return "".join(
            text.single(family, samples, form, self.created)
            for family, samples in (
                (own.VMS, [((), table.vms)]),
                (own.LINES, [((), table.lines)]),
                (own.UNREADABLE, [((), self.unreadable)]),
                (own.DROPPED, reasons),
                (own.SECONDS, [((), self.seconds)]),
                (own.SCRAPES, [((), self.reads)]),
            )
        )


class Host:
    """Reads all VMs of this host, again and again. Safe to be used by several threads. Close it after use."""

    def __init__(self, options: Options | None = None, roster: Roster | None = None) -> None:
        self.options = options or Options()
        self._roster = roster or Roster()
        self._lock = Lock()
        self._plans: dict[object, tuple[Plan, Structure]] = {}  # with a structure of that layout
        self._known: dict[int, Known] = {}
        self._unreadable: dict[VM, float] = {}  # until when each is left alone
        self._sampler = Sampler(())
        self._members: list[Member] = []
        self._with_facts: list[Member] = []
        self._rows: dict[ended.Key, Labels] = {}  # of services that keep totals
        self._ended: list[Known] = []  # of services that keep totals, whose numbers are not in them yet
        self._keepers = ended.Keepers()
        self._shown: list[Known] = []  # whose the members are
        self._remade: list[tuple[Known, int, int]] = []  # where it stands which series are removed
        self._table: Table | None = None
        self._laid_out: list[Plan] = []  # those of the totals in it
        self._totals_plans: dict[object, Plan] = {}
        if self._keeps:
            self._roster.holds = lambda vm: ended.key_of(vm) is not None
            ended.adopt()
        self._layouts = -1
        self._templates: dict[Format, text.Template] = {}
        self._reads = 0
        self._created = time.time()

    @property
    def _keeps(self) -> bool:
        """Whether the totals of ended processes are a part of the answer: they belong to services, to no process."""
        return not self.options.by_pid

    def read(self) -> Answer:
        """Every VM's numbers, now."""
        with self._lock:
            answer = self._read()
            answer.values = answer.table.values(answer.numbers)
            return answer

    def render(self, form: Format) -> bytes:
        """The answer in one of the text formats."""
        with self._lock:
            answer = self._read()
            exemplars = self._exemplars(answer.table) if form.openmetrics else {}
            template = self._templates.get(form)
            if template is None or template.table is not answer.table:
                template = self._templates[form] = text.Template(answer.table, form)
            end = answer.own(form) + ("# EOF\n" if form.openmetrics else "")
            return template.fill(answer.numbers, exemplars, end)

    def resources(self, table: Table) -> list[dict[str, str | int]]:
        """What OpenTelemetry gets for each row of a table, whose rows are VMs."""
        with self._lock:
            by_row = {member.row: member for member in table.members}
            return [self._resource(by_row[row]) for row in table.rows]

    def close(self) -> None:
        with self._lock:
            self._roster.close()
            for known in self._ended:
                known.vm.close()
            self._ended = []

    # -- with the lock

    def _read(self) -> Answer:
        begin = time.perf_counter()
        self._reads += 1
        is_due = any(due <= time.monotonic() for due in self._unreadable.values())
        changed = self._roster.refresh()
        if self._take_over() or changed or is_due or self._layouts < 0:
            self._lay_out()
        numbers = self._sample()
        for member in self._with_facts:
            member.facts = facts(member.pid)
        table, numbers = self._with_totals(numbers)
        seconds = time.perf_counter() - begin
        return Answer(table, numbers, len(self._unreadable), seconds, self._reads, self._created)

    def _take_over(self) -> bool:
        """Processes that have ended: what they have counted goes on counting. Whether these are others than before."""
        gone, self._roster.gone = self._roster.gone, []
        if not gone and not self._ended:
            return False
        if gone:
            ended.adopt()
        before = list(self._ended)
        known = {id(each.vm): each for each in self._known.values()}
        for vm in gone:
            each = known.get(id(vm))
            if each is None:
                vm.close()
                continue
            each.ended, each.planned = True, None
            self._ended.append(each)
        left: dict[str, int] = {}
        waiting: list[Known] = []
        for each in reversed(self._ended):
            left[each.user] = left.get(each.user, ended.MOST_WAITING) - 1
            if each.noted or left[each.user] < 0 or not ended.is_there(each.vm):
                each.vm.close()
            else:
                waiting.insert(0, each)
        self._ended = waiting
        return before != waiting

    def _with_totals(self, numbers: memoryview) -> tuple[Table, memoryview]:
        """The table of these numbers, and they with those of the totals. A process that is in both counts once."""
        kept = self._keepers.read(self._rows)
        if kept:
            for known in self._shown:
                known.noted = known.key in kept and known.note in kept[known.key].notes
            if any(known.noted for known in self._shown):
                numbers = self._without_noted(numbers)
        members, more = [], []
        for key, found in kept.items():
            if key in self._rows and found.numbers:
                member = Member(self._plan_of_totals(found), self._rows[key], 0, found.created / 1000)
                members.append(member)
                of_service = [number for number, _, _ in found.numbers.values()]
                more += [of_service[column] for column in member.plan.columns]
        plans = [member.plan for member in members]
        if self._table is None or self._laid_out != plans:
            self._laid_out = plans
            reserved = self.options.rules is None or self.options.rules.standard
            self._table = Table([*self._members, *members], reserved=reserved)
        return self._table, _joined([numbers, words("q", more)]) if more else numbers

    def _without_noted(self, numbers: memoryview) -> memoryview:
        """Takes the processes that are in the totals out of the members, and their numbers from these."""
        shown, left, start = [], [], 0
        for known, member in zip(self._shown, self._members, strict=True):
            end = start + member.plan.width
            if not known.noted:
                shown.append((known, member))
                left.append(numbers[start:end])
            start = end
        self._show(shown)
        self._layouts = -1
        return _joined(left)

    def _plan_of_totals(self, found: Totals) -> Plan:
        names = tuple(found.numbers)
        codes = tuple((units, variability) for _, units, variability in found.numbers.values())
        plan = self._totals_plans.get((names, codes))
        if plan is None:
            if len(self._totals_plans) > _PLANS:
                self._totals_plans.clear()
            rules, limit = self.options.rules, self.options.limit
            plan = Plan(list(names), list(codes), ended.VALUES, limit, rules=rules, ended=True)
            self._totals_plans[names, codes] = plan
        return plan

    def _exemplars(self, table: Table) -> dict[int, Exemplar | None]:
        """Those of all values that may have one."""
        for known, member in zip(self._shown, self._members, strict=True):
            if member.plan.texts:
                try:
                    member.texts = known.vm.reader.texts(member.plan.texts)
                except VMScopeError:  # it ends just now
                    member.texts = {}
        return table.exemplars()

    def _sample(self) -> memoryview:
        """The numbers of all members. Members are laid out anew until all of them can be read."""
        for attempt in count():
            numbers = self._sampler.sample()
            if self._sampler.layouts == self._layouts and not self._sampler.lost:
                if not self._were_removed(numbers) or attempt >= _ATTEMPTS:
                    break
                self._lay_out()
                continue
            self._leave_out(self._sampler.lost)
            if attempt >= _ATTEMPTS:  # what gets new counters all the time holds no other up
                self._leave_out(self._changed())
            self._lay_out()
        return numbers

    def _were_removed(self, numbers: memoryview) -> bool:
        """Whether series were removed, or made anew, since their VMs were laid out."""
        found = [known for known, place, value in self._remade if numbers[place] != value]
        for known in found:
            known.planned = None
        return bool(found)

    def _changed(self) -> list[VM]:
        """The VMs that have other counters than they were laid out for."""
        found = []
        for known, member in zip(self._shown, self._members, strict=True):
            vm = known.vm
            try:
                if len(vm.reader.structure().names) != member.plan.entries:
                    found.append(vm)
            except VMScopeError:
                found.append(vm)
        return found

    def _leave_out(self, vms: Iterable[VM]) -> None:
        """These cannot be read now, and are tried again after a while."""
        due = time.monotonic() + _PAUSE
        self._unreadable.update(dict.fromkeys(vms, due))
        self._ended = [known for known in self._ended if known.vm not in self._unreadable]

    def _lay_out(self) -> None:
        """Finds out what each VM exports, and in which row."""
        vms = list(self._roster.vms.values())
        now, there = time.monotonic(), set(vms)
        self._unreadable = {vm: due for vm, due in self._unreadable.items() if vm in there and now < due}
        self._recognise([vm for vm in vms if vm not in self._unreadable])
        found = []
        for known in [*self._known.values(), *self._ended]:
            pid = known.vm.pid or 0
            if known.noted or not self._is_wanted(pid, known):
                continue
            try:
                plan, lacking = self._plan(known)
            except VMScopeError:
                self._leave_out([known.vm])
                continue
            member = Member(plan, self._row(pid, known), 0 if known.ended else pid, known.created)
            if plan.facts:
                member.facts = lacking
            found.append((known, member))
        trusted = ("root", user_name(os.geteuid())) if sys.platform != "win32" else ()
        found.sort(key=lambda pair: (pair[0].user not in trusted, pair[1].row, id(pair[1].plan), pair[1].pid))
        self._show(found)
        self._sampler = Sampler([known.vm for known in self._shown], [member.plan.columns for member in self._members])
        self._layouts = self._sampler.layouts
        if len(self._plans) > _PLANS:
            self._plans.clear()

    def _show(self, found: list[tuple[Known, Member]]) -> None:
        self._shown = [known for known, _ in found]
        self._members = [member for _, member in found]
        self._with_facts = [member for member in self._members if member.facts]
        self._remade, start = [], 0
        for known, member in found:
            self._remade += [(known, start + column, value) for column, value in member.plan.remade]
            start += member.plan.width
        self._rows = {known.key: member.row for known, member in reversed(found) if known.key} if self._keeps else {}
        self._table = None

    def _is_wanted(self, pid: int, known: Known) -> bool:
        if self.options.of is not None:
            of = self._known.get(self.options.of)
            return of is not None and (known.name, known.user) == (of.name, of.user)
        pattern = self.options.pattern
        return not pattern or any(fnmatchcase(word, pattern) for word in (known.name, known.vm.main, str(pid)))

    def _row(self, pid: int, known: Known) -> Labels:
        row = (("service", known.name), ("user", known.user))
        if not self.options.by_pid:
            return row
        return (*row, ("pid", str(pid)), ("worker", str(known.worker) if known.worker else ""))

    def _resource(self, member: Member) -> dict[str, str | int]:
        labels = dict(member.row)
        found: dict[str, str | int] = {
            "service.name": labels["service"],
            "service.instance.id": str(uuid5(NAMESPACE_OID, f"{_boot_id()}/{member.pid}/{member.created}")),
            "process.pid": member.pid,
            "process.owner": labels["user"],
            "host.name": platform.node(),
        }
        known = self._known.get(member.pid)
        if known is not None:
            vm = known.vm
            found |= {"process.executable.name": limited(vm.main), "process.runtime.name": limited(vm.kind)}
            found |= {"process.runtime.version": limited(vm.version)}
        if container := container_id(member.pid):
            found["container.id"] = container
        return found

    # -- what a VM is

    def _recognise(self, vms: list[VM]) -> None:
        """The service of each VM that is new; those that have gone are forgotten."""
        self._known = {known.vm.pid or 0: known for known in self._known.values() if known.vm in vms}
        if all((vm.pid or 0) in self._known for vm in vms):
            return
        seen: dict[int, services.Seen] = {}
        by_pid = {}
        for vm in vms:
            try:
                seen[vm.pid or 0] = services.Seen(vm)
                by_pid[vm.pid or 0] = vm
            except VMScopeError:  # it ends just now, or is damaged
                self._leave_out([vm])
        members = services.members(seen.values())
        own_pid = os.getpid()
        for pid, member in sorted(members.items()):
            if pid in self._known or (pid == own_pid and self.options.of is None):
                continue
            first = pid
            while (master := members[first].master) is not None and master in members:
                first = master
            vm = by_pid[pid]
            # Of another user's process no service takes a name, and none is given one.
            namer = by_pid[first] if by_pid[first].user == vm.user else vm
            try:
                begin = vm.reader.some((_BEGIN,)).get(_BEGIN, 0)
                name = service_name(namer, self.options.ways) or "unknown"
                known = Known(vm, name, member.role, begin / 1000 if isinstance(begin, int) else 0.0)
            except VMScopeError:
                self._leave_out([vm])
                continue
            if first != pid:
                known.worker = self._free_number(known)
            self._known[pid] = known

    def _free_number(self, new: Known) -> int:
        """The lowest number that no other worker of its service has: who replaces one takes its number."""
        taken = {known.worker for known in self._known.values() if (known.name, known.user) == (new.name, new.user)}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _plan(self, known: Known) -> tuple[Plan, list[int]]:
        """What it exports, and the numbers of /proc."""
        structure = known.vm.reader.structure()
        names = structure.names
        if known.planned is not None and known.planned[0] == len(structure.rows):
            return known.planned[1:]
        codes = [(row[3], row[4]) for row in structure.rows if row[2] == ord("J")]
        every = known.vm.values()
        values = standard.texts(every)
        remade = {name: value for name in names if is_mark(name) and isinstance(value := every.get(name), int)}
        found: list[int] = [] if known.kind == "CPython" or known.ended else facts(known.vm.pid or 0)
        lacking = frozenset(name for name, number in zip(FACTS, found, strict=False) if number < 0)
        texts = tuple(name for name, _, _ in structure.texts if EXEMPLAR in name)
        key = (tuple(names), tuple(codes), tuple(values.items()), lacking, known.ended, texts, tuple(remade.items()))
        plan, first = self._plans.get(key, (None, structure))
        structure.share(first)
        if plan is None:
            rules, limit = self.options.rules, self.options.limit
            plan = Plan(
                names, codes, values, limit, lacking, rules, ended=known.ended, texts=texts, remade=remade
            )  # fmt: skip
            if not known.ended:
                plan.points.append(Point(standard.VMS, (("kind", known.kind),), [], constant=1))
            self._plans[key] = plan, structure
        known.planned = len(structure.rows), plan, found
        return plan, found


def _joined(parts: Iterable[memoryview]) -> memoryview:
    return memoryview(b"".join(parts)).cast("q")


def _boot_id() -> str:
    """Of this run of the system; "" where it does not tell."""
    try:
        return read_file("/proc/sys/kernel/random/boot_id", 64).decode("ascii", "replace").strip()
    except OSError:
        return platform.node()
