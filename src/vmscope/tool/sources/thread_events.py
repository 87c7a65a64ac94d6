"""ThreadStart and ThreadEnd: around what a thread runs, by the functions that start threads, while they are wanted.

A thread of `threading` that ran before has its end reported when `threading` forgets it, any other one when its thread
state goes. C code's own threads, which Python did not start, have no start. What replaces CPython's
functions does nothing else, so that it may stay where other code has wrapped it.
"""

from __future__ import annotations

import _thread
import sys
from functools import partial
from types import ModuleType
from weakref import WeakSet

from vmscope.patches import Patches
from vmscope.tool.model import threads
from vmscope.tool.model.frames import code_of, is_own
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread

    Start = Callable[..., object]

WANTED = bit(Event.THREAD_START) | bit(Event.THREAD_END)
# where a function that starts a thread is looked up, and under which names
PLACES = (
    ("_thread", ("start_new_thread", "start_new", "start_joinable_thread")),
    ("threading", ("_start_new_thread", "_start_joinable_thread")),
)


class ThreadEvents:
    """The mechanism: in place while one of the two events is wanted."""

    def __init__(self) -> None:
        self._host: Host | None = None
        self._patches = Patches()
        self._ended: WeakSet[Thread] = WeakSet()  # reported already

    def update(self, host: Host) -> None:
        wanted = bool(host.wanted() & WANTED)
        if wanted and self._host is None:
            self._host = host
            self._replace()
            for thread in threads.living():
                if not thread.of_agent:  # whose end is reported where it runs
                    thread.endings.add(self.gone)
        elif not wanted and self._host is not None:
            self._host = None
            self._patches.undo()
            self._ended.clear()

    def _replace(self) -> None:
        ours: dict[int, object] = {}  # by what it stands for: the same function has several names
        for module_name, names in PLACES:
            module: ModuleType | None = sys.modules.get(module_name)
            for name in names:
                theirs = None if module is None else vars(module).get(name)
                if callable(theirs):
                    self._patches.replace(module, name, ours.setdefault(id(theirs), partial(self.start, theirs)))
        threading: Any = sys.modules.get("threading")
        if threading is not None:
            self._patches.replace(threading.Thread, "_delete", self._deleting(threading.Thread._delete))

    def start(self, theirs: Start, /, *arguments: Any, **named: Any) -> object:
        """Any of CPython's functions, with the function that the thread runs in a wrapper."""
        function = arguments[0] if arguments else named.get("function")
        code = code_of(function)
        if self._host is None or not callable(function) or (code is not None and is_own(code)):
            return theirs(*arguments, **named)
        bootstrap = ThreadBootstrap(self, function)
        if arguments:
            return theirs(bootstrap, *arguments[1:], **named)
        return theirs(**{**named, "function": bootstrap})

    def _deleting(self, theirs: Callable[[Any], None]) -> Callable[[Any], None]:
        def _delete(thread: Any) -> None:
            self.end()
            theirs(thread)

        return _delete

    def began(self, function: object) -> None:
        """The calling thread is about to run this."""
        if self._host is not None:
            thread = threads.current()
            # threading does not know it by its ident yet
            owner = getattr(function, "__self__", None)
            named = getattr(owner, "name", "")
            thread._name = thread._name or (named if isinstance(named, str) else "")
            threading = sys.modules.get("threading")
            if threading is not None and isinstance(owner, threading.Thread):
                thread.group = threads.MAIN
                thread.belongs_to(owner)
            self._host.post(Event.THREAD_START, thread)

    def end(self) -> None:
        """The calling thread has nothing more to run."""
        thread = threads.current()
        host = self._host
        if host is not None and thread not in self._ended:
            self._ended.add(thread)
            host.post(Event.THREAD_END, thread)

    def gone(self, thread: Thread) -> None:
        """A thread state has gone, of a thread that had begun before anybody wanted to know."""
        host = self._host
        if host is not None and thread not in self._ended and thread.ident == _thread.get_ident():
            host.post(Event.THREAD_END, thread, thread=thread)


class ThreadBootstrap:
    """What a new thread runs; it looks like what it was to run."""

    __slots__ = ("_events", "_function")

    def __init__(self, events: ThreadEvents, function: Callable[..., object]) -> None:
        self._events = events
        self._function = function

    def __repr__(self) -> str:
        return repr(self._function)

    def __call__(self, /, *arguments: object, **named: object) -> object:
        self._events.began(self._function)
        try:
            return self._function(*arguments, **named)
        finally:
            self._events.end()
