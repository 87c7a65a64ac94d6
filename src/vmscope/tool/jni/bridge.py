"""`NativeAgentBridge`: this process as native agents see it. The C tables call it, with the GIL."""

from __future__ import annotations

from _thread import get_ident
from contextlib import contextmanager
from itertools import count

from vmscope import log, native
from vmscope.errors import AgentError
from vmscope.tool import agent_errors
from vmscope.tool.jni import jthreads
from vmscope.tool.jni import text as texts
from vmscope.tool.jni.extensions import EXTENSIONS
from vmscope.tool.jni.interface import Interface
from vmscope.tool.jni.marshal import FunctionCall, functions_of
from vmscope.tool.model import frames, handler_exceptions, monitors, threads
from vmscope.tool.model.threads import MAIN, Thread, ThreadGroup
from vmscope.tool.sources import exceptions
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import NotAttached, ToolError, VersionNotOffered
from vmscope.tool.spec.events import KINDS, Event
from vmscope.tool.spec.functions import BY_METHOD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from vmscope.native import Jni
    from vmscope.tool.agent import AgentVM
    from vmscope.tool.environment import Environment
    from vmscope.tool.host import Host

    Class = type | ModuleType

# The versions of JNI that GetEnv gives a JNIEnv for, and its answers when there is none
JNI_VERSIONS = frozenset(
    (0x10001, 0x10002, 0x10004, 0x10006, 0x10008, *(each << 16 for each in (9, 10, 19, 20, 21, 24)))
)
WHICH, TOOL_INTERFACE = 0x7000_0000, 0x3000_0000  # a version's bits that say of what it is
DETACHED, VERSION = -2, -3
INTERNAL = 113
KEPT = 1000  # environments that have been disposed of

# Where an agent's function was called from, if it was not an event
IN_THREAD, IN_START, IN_UNLOAD = 0, -1, -2
PLACES = {IN_THREAD: "thread", IN_UNLOAD: "Agent_OnUnload"}


class NativeAgentBridge:
    """One for a process, made when the first native agent is loaded. `java_vm` is the address of its JavaVM."""

    def __init__(self, host: Host, jni: Jni) -> None:
        self.host = host
        self.jni = jni
        self.java_vm = jni.start(self)
        self._calls: dict[int, FunctionCall] = functions_of(self)
        self._environments: dict[Environment, int] = {}  # and the addresses of their blocks
        self._in_use: dict[Environment, int] = {}  # those that have not been disposed of,
        self._gone: list[Environment] = []  # and those that have, in that order
        self._phase = host.phase
        self._loading: dict[int, AgentVM] = {}  # agents that are being loaded, by the thread that does it
        # all that were, by the file of their code; None where it has two
        self._homes: dict[str | None, AgentVM | None] = {}
        self._field_ids: dict[tuple[int, str], int] = {}  # by the class's id(): it never goes
        self._fields: dict[int, tuple[Class, str]] = {}
        self._numbers = count(1)
        interface = Interface(self)
        self.jni_call = interface.call
        self.jni_types = interface.types
        for row in (*BY_METHOD.values(), *(known.row for known in EXTENSIONS)):
            jni.define(row.slot, row.phases, -1 if row.capability is None else row.capability)
        monitors.interrupters.append(jni.interrupt)
        host.add_event_source(self)
        host.endings.append(jni.end)

    def update(self, host: Host) -> None:
        """Tells the environments' blocks what has changed: their functions in C look there. For one that was disposed
        of only the VM's phase changes."""
        which = self._in_use if host.phase == self._phase else self._environments
        self._phase = host.phase
        for environment, address in which.copy().items():  # other threads make some meanwhile
            disposed = environment.disposed
            self.jni.update(address, environment.phase(), environment.held, disposed)
            if disposed and self._in_use.pop(environment, None) is not None:
                self._gone.append(environment)

    @contextmanager
    def loading(self, agent: AgentVM, entry: int) -> Iterator[None]:
        """The environments that this thread makes meanwhile, and what it does wrong, are that agent's, and so are the
        environments that its code makes later; `entry` is an address in it."""
        home = self.jni.home(entry)
        known = self._homes.setdefault(home, agent)
        self._homes[home] = agent if known is not None and known.agent == agent.agent else None
        thread = get_ident()
        before = self._loading.get(thread)
        self._loading[thread] = agent
        try:
            yield
        finally:
            if before is None:
                del self._loading[thread]
            else:
                self._loading[thread] = before

    # -- what C calls -----------------------------------------------------------------------------

    def get_env(self, version: int, caller: int) -> int:
        """GetEnv: the address of a new jvmtiEnv; 0 where the caller's JNIEnv is asked for; below 0, JNI's error.
        `caller` is the address that it was called from."""
        if version & WHICH != TOOL_INTERFACE:
            if self.host.phase == Phase.ONLOAD:  # there is no thread yet, as agents know it
                return DETACHED
            return 0 if version in JNI_VERSIONS else VERSION
        agent = self._loading.get(get_ident())
        home = self.jni.home(caller) if agent is None else None
        agent = agent or self._homes.get(home)
        try:
            environment = self.host.get_env(version, home or "") if agent is None else agent.get_env(version)
        except VersionNotOffered:
            return VERSION
        except NotAttached:
            return DETACHED
        return self.address(environment)

    def function(self, environment: Environment, slot: int, arguments: tuple[int | float, ...]) -> int:
        """A function of the tool interface, with arguments as C has them; JVM TI's error, or 0."""
        try:
            self._calls[slot](environment, arguments)
        except ToolError as error:
            return error.code
        except MemoryError:
            raise
        except BaseException as error:
            if self.from_signal(error):
                raise
            agent_errors.report(environment.agent, "native", "slot %d failed", slot, error=error)
            return INTERNAL
        return 0

    def from_signal(self, error: BaseException) -> bool:
        """Whether it is meant for the program: a signal's handler raised it, in the middle of what an agent calls."""
        return isinstance(error, KeyboardInterrupt) or handler_exceptions.from_handler(error)

    # -- threads ----------------------------------------------------------------------------------

    def attached(self, name: bytes | None, group: object, daemon: bool) -> None:
        """The calling thread is the interpreter's from now on; until then it knew nothing of it."""
        thread = Thread(name=threads.new_name() if name is None else texts.decode(name))
        thread.group = group if isinstance(group, ThreadGroup) else MAIN
        thread.daemon = daemon
        thread.begin()
        self.host.post(Event.THREAD_START, thread)

    def detached(self) -> None:
        """The calling thread will not be the interpreter's any more."""
        thread = threads.current()
        self.host.post(Event.THREAD_END, thread)

    thread_types = Thread, jthreads.UnknownThread

    def thread_object(self, thread: Thread | jthreads.UnknownThread) -> object:
        """What a reference to it refers to by now."""
        return jthreads.object_of(thread)

    def take_interrupt(self) -> bool:
        """Whether the calling thread was interrupted, and has not seen it yet: now it has."""
        thread = threads.current()
        interrupted, thread.interrupted = thread.interrupted, False
        return interrupted

    def left_pending(self, environment: Environment | None, event: int, error: BaseException) -> None:
        """An agent's function has returned with an exception of JNI's still pending, which is gone now."""
        loading = self._loading.get(get_ident())
        agent = environment.agent if environment else loading.agent if loading else ""
        if event == IN_START:
            place = "Agent_OnLoad" if self.host.phase == Phase.ONLOAD else "Agent_OnAttach"
        else:
            place = PLACES.get(event) or (Event(event).name if event in KINDS else f"event {event}")
        agent_errors.report(agent, place, "%s left an exception pending", place, error=error)

    def post_exhausted(self, error: MemoryError) -> None:
        """A function of JNI's has found no memory. Where the program's code raised it, that has been reported."""
        trace = error.__traceback__
        while trace is not None and frames.is_own(trace.tb_frame.f_code):
            trace = trace.tb_next
        if trace is None:
            exceptions.post_exhausted(self.host, exceptions.HEAP, error)

    def report(self, text: str) -> None:
        """Logs a finding of -Xcheck:jni, each time: who asked for the checks reads them all."""
        log.say("error", "%s", text, name=log.TOOL, each=True)

    def encoded(self, text: str) -> bytes:
        """As agents get it."""
        return texts.encode(text)

    def class_name(self, module: str) -> bytes:
        """What an agent gets for the name of a module that is being loaded."""
        return texts.encode(module.replace(".", "/"))

    # -- ids --------------------------------------------------------------------------------------

    def address(self, environment: Environment) -> int:
        """Of the jvmtiEnv that stands for an environment. An agent may call one that was disposed of, for long: not
        before that number have been is one used again."""
        with self.host.lock:
            known = self._environments.get(environment)
            if known is None:
                old = [self._environments.pop(self._gone.pop(0))] if len(self._gone) > KEPT else []
                known = self._environments[environment] = self._in_use[environment] = self.jni.environment(
                    environment, *old
                )
                self.update(self.host)
        return known

    def field_id(self, klass: Class, name: str) -> int:
        """The same each time. It is not an address: a foreign one is found out."""
        key = (id(klass), name)
        known = self._field_ids.get(key)
        if known is None:
            number = next(self._numbers) << 3 | 6
            self._fields[number] = klass, name  # before another thread can be given it
            known = self._field_ids.setdefault(key, number)
        return known

    def field(self, number: int) -> tuple[Class, str] | None:
        """What a field id names; None for what is none."""
        return self._fields.get(number)


_bridge: NativeAgentBridge | None = None


def bridge(host: Host, agent: str) -> NativeAgentBridge:
    """This process's. AgentError, which names the agent that needs it, where there can be none."""
    global _bridge
    if not hasattr(native, "load_jni"):
        raise AgentError(agent, "native agents need vmscope's C part, and a Python with a GIL")
    with host.lock:  # several threads may load agents
        if _bridge is None:
            _bridge = NativeAgentBridge(host, native.load_jni())
        return _bridge
