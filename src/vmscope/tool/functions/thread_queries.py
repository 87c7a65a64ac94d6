"""The functions that report threads and thread groups, and keep something for a thread."""

from __future__ import annotations

import sys
from typing import NamedTuple

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.thread_state import ThreadState, state_of
from vmscope.tool.model.threads import MAIN, SYSTEM, Thread, ThreadGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host

HIGHEST = 10  # the limit of every group's priorities


class ThreadInfo(NamedTuple):
    """What `get_thread_info` returns. `priority` is from 1 to 10; `context_class_loader` is always None."""

    name: str
    priority: int
    is_daemon: bool
    thread_group: ThreadGroup | None
    context_class_loader: None


class ThreadGroupInfo(NamedTuple):
    """What `get_thread_group_info` returns. `parent` is None for the group at the top; `max_priority` is 10."""

    parent: ThreadGroup | None
    name: str
    max_priority: int
    is_daemon: bool


class ThreadQueries(Base):
    def __init__(self, host: Host, version: int, agent: str) -> None:
        super().__init__(host, version, agent)
        self.thread_storage: dict[Thread, object] = {}
        self.closers.append(self.thread_storage.clear)

    @function
    def get_all_threads(self) -> list[Thread]:
        """Every thread that has something to execute, agents' threads among them, in the order of their start.

        CPython: the interpreter's thread states, those too that `threading` does not know; none gets a dummy there.
        Differs: a native thread that waits outside of Python, without a frame, is not among them.
        """
        return threads.living()

    @function
    def get_current_thread(self) -> Thread:
        """The calling thread's.

        CPython: kept in the thread state's own storage.
        """
        return threads.current()

    @function
    def get_thread_info(self, thread: Thread | None = None) -> ThreadInfo:
        """Name, priority, daemon or not, group; None is the current thread.

        CPython: what `threading` knows; a thread that it does not know is a daemon: the exit does not wait for it.
        Differs: the priority is 5, or what `run_agent_thread` was given, and there is no context class loader; the \
name may be "".
        """
        thread = thread or threads.current()
        return ThreadInfo(thread.name, thread.priority, thread.is_daemon, group_of(thread), None)

    @function
    def get_thread_state(self, thread: Thread | None = None) -> ThreadState:
        """JVM TI's bits; None is the current thread. 0 before it has started.

        CPython: the system call in which it waits, by /proc, and threading.Condition.wait as its innermost frame.
        Differs: a lock's acquire is BLOCKED_ON_MONITOR_ENTER, with a time limit PARKED; where the system does not say \
what a thread waits for it is RUNNABLE.
        """
        thread = thread or threads.current()
        frame = sys._current_frames().get(thread.ident)
        return state_of(thread, frame and frame.f_code)

    @function
    def get_top_thread_groups(self) -> list[ThreadGroup]:
        """The groups without a parent: `system`.

        CPython: there are no thread groups; `system` stands for the process.
        """
        return [SYSTEM]

    @function
    def get_thread_group_info(self, group: ThreadGroup) -> ThreadGroupInfo:
        """Parent, name, the largest priority, daemon or not.

        CPython: `main` has what `threading` knows, `system` the rest.
        """
        return ThreadGroupInfo(group.parent, group.name, HIGHEST, False)

    @function
    def get_thread_group_children(self, group: ThreadGroup) -> tuple[list[Thread], list[ThreadGroup]]:
        """The live threads and the groups that stand in it directly.

        CPython: by whether `threading` knows a thread. Those that `run_agent_thread` started are in no group.
        """
        return [each for each in threads.living() if group_of(each) is group], [MAIN] if group is SYSTEM else []

    @function
    def get_thread_local_storage(self, thread: Thread | None = None) -> object:
        """What this environment keeps for a thread, None before something was set; None is the current thread.

        CPython: a dictionary by Thread, which is one object for each thread state; idents are used again.
        """
        return self.thread_storage.get(thread or threads.current())

    @function
    def set_thread_local_storage(self, thread: Thread | None, data: object) -> None:
        """Keeps one object for a thread; None is the current one. ThreadNotAlive.

        CPython: it is released when the thread ends.
        """
        thread = thread or threads.current()
        if thread not in self.thread_storage:
            thread.endings.add(self._forget)
        self.thread_storage[thread] = data
        if not thread.alive:  # it ended meanwhile
            self._forget(thread)

    def _forget(self, thread: Thread) -> None:
        self.thread_storage.pop(thread, None)


def group_of(thread: Thread) -> ThreadGroup | None:
    """None for one that has ended, or is an agent's and was put into none."""
    if thread.started and not thread.alive:
        return None
    if thread.group is not None or thread.of_agent:
        return thread.group
    return SYSTEM if thread.known() is None else MAIN
