"""All threads as of one moment: what each executes, which locks it is seen to have, which one it waits for.

What they execute is as of the request for it, or of the first look here. What to keep of which frame is worked out from
that look, and looked at in a second one, which counts for the frames that are the same still. A lock is seen where a
`with` block holds it, where a frame of `threading` is about it, where a call names it, and where locks know all of that
themselves (locks.py).
"""

from __future__ import annotations

import re
import sys
import time
from types import FunctionType

from vmscope import native, own_threads
from vmscope.tool.model.blocking_analysis import FramePlan
from vmscope.tool.model.frames import OWN, below, is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType, FrameType
    from typing import Any

    from vmscope.native import MonitorLock, StackSnapshot

    Place = tuple[str, str, int]  # qualname, filename, line
    Kept = list[tuple[int, CodeType, int, tuple[object, ...]]]

LIMIT = 1024  # frames of one thread
PIECE = 100_000  # ns: so long at most before other threads get their turn
EACH = 250  # ns: so long a thread takes in a snapshot, or a little more
REST = 50e-6  # s: so long that one of them takes it
PLAIN = ("_thread.lock", "_thread.RLock")
OWNER = re.compile(r"owner=(\d+) count=(\d+)")  # as an RLock says of itself

# What waits within `threading` and similar, and for what: for itself to be notified, or for something of its own.
NOTIFIED, ENDED = "notified", "ended"
KNOWN = (
    ("threading", "Condition", "wait", NOTIFIED),
    ("threading", "Event", "wait", ENDED),
    ("threading", "Semaphore", "acquire", ENDED),
    ("threading", "Barrier", "wait", ENDED),
    ("threading", "Thread", "join", ENDED),
    ("threading", "Thread", "_wait_for_tstate_lock", ENDED),  # up to 3.12
    ("queue", "Queue", "get", ENDED),
    ("queue", "Queue", "put", ENDED),
    ("queue", "Queue", "join", ENDED),
    ("concurrent.futures._base", "Future", "result", ENDED),
    ("concurrent.futures._base", "Future", "exception", ENDED),
)
ACQUIRED = "acquired"  # a lock, to get it


class Wait:
    """At this many frames from the innermost, for this; None where it is not known."""

    __slots__ = ("depth", "how", "what")

    def __init__(self, depth: int, how: str, what: object) -> None:
        self.depth = depth
        self.how = how
        self.what = what


class ThreadSnapshot:
    """One thread. Its frames are the innermost first, without vmscope's own."""

    __slots__ = ("beyond", "cut", "frames", "has", "ident", "native_id", "own", "state", "waits")

    def __init__(self, state: int, ident: int, native_id: int, cut: bool) -> None:
        self.state = state
        self.ident = ident
        self.native_id = native_id
        self.cut = cut  # there are more
        self.own = False  # it executes nothing but vmscope
        self.frames: list[Place] = []
        self.waits: list[Wait] = []  # if it waits at all, which the code alone does not tell; the innermost first
        self.has: list[tuple[int, object]] = []  # (depth, lock): in `with` blocks
        self.beyond: list[object] = []  # locks that it has and no frame is seen to have taken

    def lets_go(self) -> object:
        """The lock that it has given up as long as it waits to be notified."""
        for wait in self.waits:
            if wait.how == NOTIFIED:
                return lock_of(wait.what)
        return None


class Turns:
    """Called often, it lets other threads run when the last time was a while ago, or will be in this many ns."""

    def __init__(self) -> None:
        self._since = time.perf_counter_ns()

    def __call__(self, coming: int = 0) -> None:
        if time.perf_counter_ns() - self._since + coming > PIECE:
            self.rest()

    def rest(self) -> None:
        time.sleep(REST)
        self._since = time.perf_counter_ns()


def take(turn: Turns, asked: StackSnapshot | None = None) -> list[ThreadSnapshot]:
    """Every thread that has a state here, the oldest first: as `asked` shows it, the snapshot of the moment of the
    request, where there is one."""
    first = native.StackSnapshot()
    long = first.reserve() * EACH
    turn(long)
    first.take(LIMIT)
    turn()
    look = Look()
    second = native.StackSnapshot(look.kinds)
    second.reserve()
    for code, offset, innermost in first.instructions():
        turn()
        plan = look.plan(code, offset, innermost)
        if plan.slots:
            second.want(code, offset, innermost, plan.slots)
    turn(long)
    second.take(LIMIT)
    turn(long)
    now = {state: at for at, (state, *_) in enumerate(second.threads())}
    turn(long)
    found = []
    for snapshot, at, (state, ident, native_id, cut, _) in stacks(asked, first):
        turn()
        kept = second.kept(now[state], snapshot, at) if state in now else []
        found.append(look.at(ThreadSnapshot(state, ident, native_id, cut), snapshot, at, kept))
    for each in (first, second):
        each.clear()
        turn()
    add_noted(found, turn)
    return found


def stacks(
    asked: StackSnapshot | None, first: StackSnapshot
) -> Iterator[tuple[StackSnapshot, int, tuple[int, int, int, bool, bool]]]:
    """Each thread, and where it is in which snapshot: in the later one if it could not be read for the other."""
    if asked is None:
        for at, row in enumerate(first.threads()):
            yield first, at, row
        return
    later = {row[0]: (at, row) for at, row in enumerate(first.threads())}
    for at, row in enumerate(asked.threads()):
        if not row[-1]:
            yield asked, at, row
        elif row[0] in later:
            yield first, *later[row[0]]


class Look:
    """What there is to know of code and types while threads are looked at."""

    def __init__(self) -> None:
        self.kinds = kinds()
        self._roles = roles()
        self._library = {code.co_filename for code, _ in self._roles.values()}
        self._plans: dict[tuple[int, int, bool], FramePlan] = {}
        self._places: dict[int, list[Place]] = {}  # of each snapshot, by its id

    def plan(self, code: CodeType, offset: int, innermost: bool) -> FramePlan:
        plan = FramePlan(code, offset, innermost, id(code) in self._roles)
        self._plans[id(code), offset, innermost] = plan
        return plan

    def at(self, seen: ThreadSnapshot, snapshot: StackSnapshot, at: int, kept: Kept) -> ThreadSnapshot:
        if id(snapshot) not in self._places:
            self._places[id(snapshot)] = snapshot.places()
        places, numbers = self._places[id(snapshot)], snapshot.frames(at)
        values = {depth: (code, offset, slots) for depth, code, offset, slots in kept}
        within = True  # what the frame called is the library's: so it still waits, if it does
        for depth, number in enumerate(numbers):
            place = places[number]
            if place[1].startswith(OWN):
                continue
            shown = len(seen.frames)
            seen.frames.append(place)
            if depth in values:
                code, offset, slots = values[depth]
                plan = self._plans.get((id(code), offset, depth == 0))
                if plan is not None and len(slots) == len(plan.slots):
                    if within:
                        self._add_wait(seen, shown, code, plan, slots)
                    self._add_has(seen, shown, plan, slots)
            within = within and place[1] in self._library
        seen.own = bool(numbers) and not seen.frames
        return seen

    def _add_wait(
        self, seen: ThreadSnapshot, at: int, code: CodeType, plan: FramePlan, kept: tuple[object, ...]
    ) -> None:
        what = plan.wait.find(kept) if plan.wait is not None else None
        role = self._roles[id(code)][1] if plan.own else None
        if (plan.waits or what is not None) and (role is None or (role == NOTIFIED and what is kept[0])):
            if issubclass(type(what), self.kinds):
                seen.waits.append(Wait(at, ACQUIRED, lock_of(what)))
            elif what is not None and kind(what) == "_queue.SimpleQueue":
                seen.waits.append(Wait(at, ENDED, what))
            elif plan.waits:
                seen.waits.append(Wait(at, ACQUIRED, None))
        elif role is not None and not any(wait.what is kept[0] for wait in seen.waits):
            seen.waits.append(Wait(at, role, kept[0]))

    def _add_has(self, seen: ThreadSnapshot, at: int, plan: FramePlan, kept: tuple[object, ...]) -> None:
        for block in reversed(plan.blocks):
            lock = kept[block.at]
            if lock is None and block.source is not None:
                lock = block.source.find(kept)
            if lock is not None and issubclass(type(lock), self.kinds):
                seen.has.append((at, lock))


def add_noted(found: list[ThreadSnapshot], turn: Callable[[], None]) -> None:
    """What locks that know their owners have noted, where there are such; the frames are those of now."""
    monitors = getattr(vars(sys.modules.get("threading", sys)).get("Lock"), "monitors", None)
    if monitors is None:
        return
    frames = sys._current_frames()
    threads = sys.modules["vmscope.tool.model.threads"]._known
    for seen in found:
        turn()
        contended = getattr(threads.get(seen.state), "contended", None)
        if issubclass(type(contended), native.MonitorLock) and not any(wait.what is contended for wait in seen.waits):
            seen.waits.insert(0, Wait(0, ACQUIRED, contended))  # the twin waits in a frame of its own
        there = {id(lock_of(lock)) for _, lock in seen.has}
        for lock in monitors.held(seen.state):
            if id(lock) not in there:
                depth = taken_at(lock, seen, frames.get(seen.ident))
                if depth >= 0:
                    seen.has.append((depth, lock))
                else:
                    seen.beyond.append(lock)


def taken_at(lock: MonitorLock, seen: ThreadSnapshot, frame: FrameType | None) -> int:
    """The depth of the frame that took it; -1 where that has returned."""
    theirs = (each for each in below(frame) if not is_own(each.f_code))
    for depth, (each, place) in enumerate(zip(theirs, seen.frames, strict=False)):
        if (each.f_code.co_qualname, each.f_code.co_filename) != place[:2]:
            break
        if lock.taken_in(each):
            return depth
    return -1


# -- locks


def kinds() -> tuple[type, ...]:
    """The types of locks that there are; none is imported for it."""
    import _thread

    found: list[type] = [_thread.LockType, type(_thread.RLock()), native.MonitorLock]
    for name in ("Condition", "Semaphore", "_RLock"):
        each = vars(sys.modules.get("threading", sys)).get(name)
        if isinstance(each, type):
            found.append(each)
    return tuple(found)


def kind(thing: object) -> str:
    """Its type, in full."""
    of = type(thing)
    return f"{of.__module__}.{of.__qualname__}"


def lock_of(thing: object) -> Any:
    """Of a condition, its lock."""
    threading = own_threads.threading_module()
    if threading is not None and issubclass(type(thing), threading.Condition):
        return vars(thing).get("_lock")
    return thing


def addresses(seen: Iterable[ThreadSnapshot], turn: Callable[[], None]) -> dict[int, object]:
    """What the kernel calls the locks that threads are seen to have, where that is known."""
    found = {}
    for each in seen:
        turn()
        for lock in [*(lock for _, lock in each.has), *each.beyond]:
            lock = lock_of(lock)
            if kind(lock) in PLAIN or issubclass(type(lock), native.MonitorLock):
                found[native.lock_address(lock)] = lock
    found.pop(0, None)
    return found


def owners(seen: Iterable[ThreadSnapshot], turn: Callable[[], None]) -> dict[int, ThreadSnapshot]:
    """Who has each lock that is seen, by the lock's id."""
    found: dict[int, ThreadSnapshot] = {}
    idents, states = {}, {}
    asked: dict[int, Any] = {}
    for each in seen:
        turn()
        idents[each.ident] = states[each.state] = each
        released = each.lets_go()
        for lock in [*(lock for _, lock in each.has), *each.beyond]:
            lock = lock_of(lock)
            if lock is not released:
                found[id(lock)] = each
        for wait in each.waits:
            if wait.how == ACQUIRED:
                asked[id(wait.what)] = wait.what
    for number, lock in asked.items():
        turn()
        monitor = issubclass(type(lock), native.MonitorLock)
        owner = states.get(lock.owner) if monitor else idents.get(owner_ident(lock))
        if owner is not None:
            owner = found.setdefault(number, owner)
            if not any(lock_of(had) is lock for had in [*(had for _, had in owner.has), *owner.beyond]):
                owner.beyond.append(lock)
    return found


def owner_ident(lock: Any) -> int:
    """The ident of the thread that has it; 0 where no thread has it, or where it is not known."""
    if kind(lock) == "_thread.RLock":
        match = OWNER.search(repr(lock))
        return int(match[1]) if match else 0
    if kind(lock) == "threading._RLock":
        return vars(lock).get("_owner") or 0
    return 0


def roles() -> dict[int, tuple[CodeType, str]]:
    """How those of KNOWN that are imported wait, by the id of their code."""
    found = {}
    for module, of, name, how in KNOWN:
        there = sys.modules.get(module)
        method = None if there is None else vars(vars(there).get(of, object)).get(name)
        method = getattr(method, "__wrapped__", method)
        if isinstance(method, FunctionType):
            found[id(method.__code__)] = method.__code__, how
    return found
