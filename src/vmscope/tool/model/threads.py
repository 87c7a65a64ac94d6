"""Threads as the tool interface knows them: one `Thread` object for each thread state.

An ident is used again as soon as its thread has ended; a `Thread` and its `id` never are.
"""

from __future__ import annotations

import _thread
import os
import sys
from functools import partial
from itertools import count
from weakref import ref

from vmscope import native, own_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

_ids = count(1)
_names = count()
_known: dict[int, Thread] = {}  # by thread state; one that has ended stays until its state is seen to be gone
_by_program: dict[int, Thread] = {}  # by the id of `threading`'s object, until that is seen to be gone
_cleanup_at = 64  # this many known ones: ended ones are looked for
NORMAL = 5  # the priority of every thread that was given none
starting = native.DeferringLock()  # held while a thread that has its Thread already comes to life


def new_name() -> str:
    """As a JVM calls a thread that was given none."""
    return f"Thread-{next(_names)}"


class Thread:
    """A thread of this process. Compared by identity; it outlives its thread, and is then no longer `alive`.

    * `id`: an int that no other thread of this process ever gets.
    * `ident`, `native_id`: as in `threading`. The system gives both again after the thread's end; 0 and None before
      its start.
    * `name`, `alive`, `started`, `is_daemon`: below.
    * `priority`: what `run_agent_thread` was given, else 5. It has no effect.
    * `suspended`: whether an environment has suspended it.
    * `interrupted`: whether `interrupt_thread` was called and the thread has not seen it yet.
    * `of_agent`: whether an agent started it, and not the program.

    Its other attributes are vmscope's own. An agent makes one with a name, for `run_agent_thread` to start::

        env.run_agent_thread(tool.Thread(name="flush"), flush, None)
    """

    __slots__ = (
        "__weakref__", "_ended", "_name", "_program", "_tied",
        "contended", "daemon", "endings", "gate", "group", "id", "ident", "interrupted",
        "native_id", "of_agent", "patient", "priority", "stand_in", "state", "suspended", "waiter",
    )  # fmt: skip

    def __init__(self, ident: int = 0, native_id: int | None = None, *, state: int = 0, name: str = "") -> None:
        self.id = next(_ids)
        self._name = name
        self.ident = ident
        self.native_id = native_id
        self.state = state  # the number of its thread state
        self.of_agent = not ident  # started for an agent, not by the program
        self.daemon = True  # where `threading` does not know better
        self.group: ThreadGroup | None = None  # where it was put into one
        self.priority = NORMAL
        self.interrupted = False  # and it has not seen it yet
        self.suspended = False
        self.gate: native.SuspendGate | None = None  # where it waits while it is suspended, once it has been
        self.contended: object = None  # the lock, or the condition, that it waits for
        self.patient = True  # it waits for that lock however long it takes
        self.waiter: _thread.LockType | None = None  # released, it wakes the thread out of a raw monitor's wait
        self.endings: set[Callable[[Thread], None]] = set()  # called when it ends
        self.stand_in: object = None  # what native agents are handed where `threading` has no object for it
        self._program: ref[threading.Thread] | None = None
        self._ended = False
        self._tied = False  # it reports its end itself

    @property
    def name(self) -> str:
        """What its agent called it, or `threading` calls it; "" when it does not know it, or is not imported."""
        known = self.known()
        return self._name if known is None else str(known.name)

    @property
    def parked(self) -> bool:
        """It waits at a gate, and for nothing of its own."""
        return self.gate is not None and self.state in self.gate.parked

    def rename(self, name: str) -> None:
        """Gives it this name, in `threading` too where that knows it."""
        known = self.known()
        if known is None:
            self._name = name
        else:
            known.name = name

    @property
    def is_daemon(self) -> bool:
        """Whether the program's end does not wait for it. An agent's thread is a daemon whatever its object says."""
        known = self.known()
        return self.daemon if known is None or (self.of_agent and self.started) else known.daemon

    def known(self) -> threading.Thread | None:
        """`threading`'s object for it, where there is one: none is made for it. An agent's thread has none, whatever
        dummy `threading` makes, unless the agent has started an object of the program's."""
        program = None if self._program is None else self._program()
        if program is not None:
            return program
        module = own_threads.threading_module()
        if module is None or self.of_agent or not self.alive:
            return None
        found: threading.Thread | None = module._active.get(self.ident)
        if found is not None:
            self.belongs_to(found)
        return found

    def belongs_to(self, program: threading.Thread) -> None:
        """From now on it is the thread of this object, after its end too."""
        self._program = ref(program)
        _by_program[id(program)] = self

    @property
    def started(self) -> bool:
        """Whether it has an ident; after its end too."""
        return self.ident != 0

    @property
    def alive(self) -> bool:
        """False before it has started, and once it has ended."""
        if self._ended or not self.ident:
            return False
        if self.state and not self._tied and all(state != self.state for state, *_ in native.thread_states()):
            self.end()
        return not self._ended

    def end(self) -> None:
        """Called when the thread ends; the last one ends after this module's names are gone."""
        if not self._ended:
            self._ended = True
            endings, self.endings = self.endings, set()
            for ending in endings:
                ending(self)

    def begin(self) -> None:
        """Makes a Thread that was not started the calling thread's."""
        self.state, self.ident, self.native_id = native.thread_state(), _thread.get_ident(), _thread.get_native_id()
        _make_room()
        _known[self.state] = self
        end: _End | None = getattr(_local, "end", None)
        if end is None:
            current()
            return
        before, end.thread = end.thread, self  # an event of the code that leads here has come before
        end.watcher = ref(end, partial(native.leave_thread, self))
        self._tied = True
        native.enter_thread(self)
        before.end()

    def __repr__(self) -> str:
        state = "" if self.alive else ", ended" if self.started else ", not started"
        return f"<Thread {self.id} {self.name!r}{state}>"


class ThreadGroup:
    """A set of threads with a `name`, in a tree: `parent` is None at the top.

    CPython has none; `main` is what `threading` knows, `system` the rest.
    """

    __slots__ = ("name", "parent")

    def __init__(self, name: str, parent: ThreadGroup | None = None) -> None:
        self.name = name
        self.parent = parent

    def __repr__(self) -> str:
        return f"<ThreadGroup {self.name!r}>"


SYSTEM = ThreadGroup("system")
MAIN = ThreadGroup("main", SYSTEM)


class _End:
    """Dies with its thread's state, which then says that the thread has ended: by a weak reference, whose callback is
    C, so that nothing of it is seen by a debugger or profiler."""

    __slots__ = ("__weakref__", "thread", "watcher")

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.watcher: object = ref(self, partial(native.leave_thread, thread))  # called before it is let go of


_local = _thread._local()


def current() -> Thread:
    """The calling thread's."""
    try:
        end: _End = _local.end
    except AttributeError:
        state = native.thread_state()
        thread = _known.get(state) or _of_state(state, _thread.get_ident(), _thread.get_native_id())
        thread._tied = True
        _local.end = _End(thread)
        return thread
    return end.thread


def of_program(program: threading.Thread) -> Thread:
    """The one that an object of `threading`'s stands for. What is not started, or ended before anybody asked, gets one
    that is not alive."""
    thread = _by_program.get(id(program))
    if thread is not None and thread.known() is not program:  # another one's that had this id
        thread = None
    if thread is not None and thread.alive:
        return thread
    ident: int | None = getattr(program, "_ident", None)  # missing where `__init__` has not run
    if ident is not None and sys.modules["threading"]._active.get(ident) is program:
        found = next((each for each in living() if each.ident == ident), None)
        if found is not None and not found.of_agent:
            found.belongs_to(program)
            return found
    if thread is None or (ident is not None and not thread.started):
        thread = Thread(ident=ident or 0, native_id=getattr(program, "_native_id", None))
        thread.group = MAIN
        thread._ended = ident is not None
        thread.belongs_to(program)
    return thread


def known(state: int) -> Thread | None:
    """That of a thread state, where it has one already."""
    return _known.get(state)


def of(state: int) -> Thread | None:
    """That of a thread state, by its number; None when that has gone, and with it its Thread."""
    if state == native.thread_state():
        return current()
    thread = _known.get(state)
    return thread or next((each for each in living() if each.state == state), None)


def living() -> list[Thread]:
    """Every thread that has something to execute, in the order of their start."""
    found = []
    with starting:
        for state, ident, native_id, running in _living_states():
            thread = _known.get(state)
            if thread is None and running:
                thread = _of_state(state, ident, native_id or None)
                end = _End(thread)
                if native.tie_thread(state, end):
                    thread._tied = True
                else:
                    end.watcher = None
            if thread is not None and not thread._ended:
                found.append(thread)
    return found


def _of_state(state: int, ident: int, native_id: int | None) -> Thread:
    _make_room()
    return _known.setdefault(state, Thread(ident=ident, native_id=native_id, state=state))


def _make_room() -> None:
    """Before one more is known: looks for ended ones where there are many, seldom enough to cost nothing."""
    global _cleanup_at
    if len(_known) >= _cleanup_at:
        _living_states()
        _cleanup_at = 2 * len(_known) + 64


def _living_states() -> list[tuple[int, int, int, bool]]:
    """Forgets those whose state is gone; the states that are there."""
    known = list(_known)  # before the look: one that comes after it is not gone
    states = native.thread_states()
    there = {state for state, *_ in states}
    for state in known:
        if state not in there:
            gone = _known.pop(state, None)
            if gone is not None:
                gone.end()
    for key, thread in [*_by_program.items()]:
        if thread._program is None or thread._program() is None:
            _by_program.pop(key, None)
    return states


def _after_fork() -> None:
    """In a child only the thread that forked goes on."""
    global starting
    starting = native.DeferringLock()
    state = native.thread_state()
    for thread in [*_known.values()]:
        if thread.state == state:
            thread.native_id = _thread.get_native_id()
        else:
            thread.end()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
