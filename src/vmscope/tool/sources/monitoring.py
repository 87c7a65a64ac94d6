"""The mechanism behind the events of running code: one tool id of sys.monitoring.

It is held while one of these events is wanted, and only then is anything instrumented. Events of one place come in
JVM TI's order: MethodEntry, ExceptionCatch, SingleStep, Breakpoint, Exception, MethodExit, FramePop. CPython would
step through a call's prologue, which ends with its RESUME, before it says that the call has begun: so that step, and a
breakpoint at or before RESUME, are sent when it has said so.

Nothing here ever answers DISABLE, other than for instructions of a code object that has breakpoints: for events that
cannot be local CPython would raise ValueError into the program and drop the callback.
"""

from __future__ import annotations

import sys
from types import CodeType, FunctionType

from vmscope import log
from vmscope.native import EventDispatcher, HandlerChain
from vmscope.tool.functions.breakpoints import prologue
from vmscope.tool.functions.extensions import Extension
from vmscope.tool.model import threads
from vmscope.tool.model.frames import OWN
from vmscope.tool.sources.exceptions import ExceptionEvents
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.environment import Environment
    from vmscope.tool.host import Host
    from vmscope.tool.model.threads import Thread

    Handler = Callable[..., object]

monitoring: Any = getattr(sys, "monitoring", None)  # nothing here is used where there is none
IDS = (
    3,
    4,
    5,
    2,
    0,
    1,
)  # 3, 4 and, so far, 5 are free; cProfile needs 2, debuggers 0, coverage.py 1
ENTRY, EXIT, STEP, BREAKPOINT = map(bit, (Event.METHOD_ENTRY, Event.METHOD_EXIT, Event.SINGLE_STEP, Event.BREAKPOINT))
POP, EXCEPTION, CATCH = map(bit, (Event.FRAME_POP, Event.EXCEPTION, Event.EXCEPTION_CATCH))
EXHAUSTED = bit(Event.RESOURCE_EXHAUSTED)
RESUME, YIELD = map(bit, (Extension.RESUME, Extension.YIELD))
OF_CALLS = frozenset(("PY_START", "PY_RETURN", "PY_UNWIND"))  # their dispatchers know which code is vmscope's own
OF_C = bit(Extension.CALL_C) | bit(Extension.RETURN_C) | bit(Extension.RAISE_C)


class Monitoring:
    """Follows what is wanted; everything here runs under the host's lock, except what sys.monitoring calls."""

    def __init__(self) -> None:
        def dispatcher(event: Event | Extension, shape: str = "plain") -> EventDispatcher:
            return EventDispatcher(event, shape, threads.current, OWN)

        self.id: int | None = None
        self._entry = dispatcher(Event.METHOD_ENTRY, "entry")
        self._returned = dispatcher(Event.METHOD_EXIT, "return")
        self._unwound = dispatcher(Event.METHOD_EXIT, "unwind")
        self._step = dispatcher(Event.SINGLE_STEP)
        self._breakpoint = dispatcher(Event.BREAKPOINT)
        self._exceptions = ExceptionEvents(dispatcher(Event.EXCEPTION), dispatcher(Event.EXCEPTION_CATCH))
        self._extensions = {extension: dispatcher(extension) for extension in Extension}
        self._stepping = False
        self._host: Host | None = None
        self._registered: dict[str, Handler] = {}
        self._local: dict[int, tuple[CodeType, int, frozenset[int]]] = {}  # by id: code, events, where it stops
        self._reported = False

    # -- what is switched on ----------------------------------------------------------------------

    def update(self, host: Host) -> None:
        """Listeners first, then what instruments: so nothing is called without a listener, and nothing is missed."""
        self._host = host
        wanted = host.wanted()
        self._listen(host)
        handlers = self._handlers(host, wanted)
        if not handlers:
            self._release()
        elif self.id is not None or self._take():
            self._switch(host, wanted, handlers)
        host.suspension.armed = "LINE" in self._registered

    def _listen(self, host: Host) -> None:
        dispatchers_of: tuple[tuple[Event | Extension, tuple[EventDispatcher, ...]], ...] = (
            (Event.METHOD_ENTRY, (self._entry,)),
            (Event.METHOD_EXIT, (self._returned, self._unwound)),
            (Event.SINGLE_STEP, (self._step,)),
            (Event.BREAKPOINT, (self._breakpoint,)),
            (Event.EXCEPTION, (self._exceptions.thrown,)),
            (Event.EXCEPTION_CATCH, (self._exceptions.caught,)),
            *((extension, (dispatcher,)) for extension, dispatcher in self._extensions.items()),
        )
        for event, dispatchers in dispatchers_of:
            rows = listeners(host, event)
            for dispatcher in dispatchers:
                host.drop(dispatcher.listen(rows))
            if event == Event.EXCEPTION:
                self._exceptions.listen(host, threads_of(rows))

    def _handlers(self, host: Host, wanted: int) -> dict[str, list[Handler]]:
        """What is called for each event of sys.monitoring, in this order."""
        stops = bool(wanted & BREAKPOINT and host.points.by_code)
        pops = bool(wanted & POP and host.pops)
        rows: tuple[tuple[str, object, Handler], ...] = (
            ("PY_START", wanted & ENTRY, self._entry),
            ("PY_START", wanted & STEP or stops, self._started),
            ("PY_RETURN", wanted & EXIT, self._returned),
            ("PY_RETURN", pops, self._popped_by_return),
            ("PY_UNWIND", wanted & EXIT, self._unwound),
            ("PY_UNWIND", pops, self._popped_by_exception),
            ("RAISE", wanted & (EXCEPTION | CATCH | EXHAUSTED), self._exceptions.raised),
            ("RERAISE", wanted & (EXCEPTION | CATCH | EXHAUSTED), self._exceptions.reraised),
            ("EXCEPTION_HANDLED", wanted & (EXCEPTION | CATCH | EXHAUSTED), self._exceptions.handled),
            ("INSTRUCTION", wanted & STEP or stops, self._instruction),
            ("LINE", host.suspension, host.suspension.gate),
            ("JUMP", host.suspension, host.suspension.gate),
            ("PY_RESUME", wanted & RESUME, self._extensions[Extension.RESUME]),
            ("PY_THROW", wanted & RESUME, self._thrown_into),
            ("PY_YIELD", wanted & YIELD, self._extensions[Extension.YIELD]),
            ("CALL", wanted & OF_C, self._called),  # CPython has these three together or not at all
            ("C_RETURN", wanted & OF_C, self._returned_c),
            ("C_RAISE", wanted & OF_C, self._raised_c),
        )
        found: dict[str, list[Handler]] = {}
        for name, on, handler in rows:
            if on:
                found.setdefault(name, []).append(handler)
        return found

    def _switch(self, host: Host, wanted: int, handlers: dict[str, list[Handler]]) -> None:
        numbers: Any = monitoring.events
        for name, called in handlers.items():
            handler = chain(name, called, self._registered.get(name))
            if handler is not self._registered.get(name):
                monitoring.register_callback(self.id, getattr(numbers, name), handler)
                self._registered[name] = handler
        everywhere = 0
        for name in handlers:
            if name == "INSTRUCTION":
                on = bool(wanted & STEP)
            elif name == "PY_START":
                on = bool(wanted & (ENTRY | STEP))
            else:
                on = True
            everywhere |= getattr(numbers, name) if on else 0
        self._stepping = bool(wanted & STEP)
        self._disarm(host, everywhere)
        monitoring.set_events(self.id, everywhere)
        self._arm(host, wanted)
        for name in [name for name in self._registered if name not in handlers]:
            monitoring.register_callback(self.id, getattr(numbers, name), None)
            del self._registered[name]

    # -- breakpoints are local to their code objects ------------------------------------------------

    def _disarm(self, host: Host, everywhere: int) -> None:
        """Takes the local events from code whose stops are others now.

        Where an instruction was disabled, only taking the event away and giving it again arms it: for a stop that is
        new there, and before stepping, which has the same event for all code.
        """
        steps = everywhere & monitoring.events.INSTRUCTION
        began = steps and not monitoring.get_events(self.id) & monitoring.events.INSTRUCTION
        for key, (code, _, stops) in list(self._local.items()):
            if began or stops != host.points.at(code):
                monitoring.set_local_events(self.id, code, 0)
                del self._local[key]

    def _arm(self, host: Host, wanted: int) -> None:
        if not wanted & BREAKPOINT:
            return
        for code, stops in list(host.points.by_code.values()):
            if id(code) not in self._local:
                end = prologue(code)
                events = monitoring.events.PY_START if min(stops) <= end else 0
                events |= monitoring.events.INSTRUCTION if max(stops) > end else 0
                monitoring.set_local_events(self.id, code, events)
                self._local[id(code)] = code, events, frozenset(stops)

    # -- the tool id ------------------------------------------------------------------------------

    def _take(self) -> bool:
        """A free id, cleaned of what its last holder left behind. Logs who holds them all where none is free."""
        for number in IDS:
            try:
                monitoring.use_tool_id(number, "vmscope")
            except ValueError:
                continue
            self.id = number
            self._reported = False
            clean(number)
            return True
        if not self._reported:
            self._reported = True
            holders = ", ".join(f"{number} {monitoring.get_tool(number)!r}" for number in sorted(IDS))
            message = "events of running code cannot be sent: all tool ids of sys.monitoring are taken: %s"
            log.say("error", message, holders, name=log.TOOL)
        return False

    def _release(self) -> None:
        self._stepping = False
        if self.id is None:
            return
        for code, _, _ in self._local.values():
            monitoring.set_local_events(self.id, code, 0)
        self._local.clear()
        clean(self.id)
        monitoring.free_tool_id(self.id)
        self._registered.clear()
        self._exceptions.forget()
        self.id = None

    # -- what sys.monitoring calls -------------------------------------------------------------------

    def _started(self, code: CodeType, offset: int) -> None:
        if self._stepping:
            self._step(code, offset)
        stops = self._host.points.at(code) if self._host else ()
        for stop in sorted(stops):
            if stop <= offset:
                self._breakpoint(code, stop)

    def _instruction(self, code: CodeType, offset: int) -> object:
        if offset > prologue(code):
            if self._stepping:
                self._step(code, offset)
            if self._host and offset in self._host.points.at(code):
                self._breakpoint(code, offset)
                return None
        return None if self._stepping else monitoring.DISABLE

    def _thrown_into(self, code: CodeType, offset: int, error: BaseException) -> None:
        self._extensions[Extension.RESUME](code, offset)

    def _called(self, code: CodeType, offset: int, callee: object, first: object) -> None:
        if type(callee) is not FunctionType:  # C_RETURN and C_RAISE follow for just these
            self._extensions[Extension.CALL_C](code, offset, callee)

    def _returned_c(self, code: CodeType, offset: int, callee: object, first: object) -> None:
        self._extensions[Extension.RETURN_C](code, offset, callee)

    def _raised_c(self, code: CodeType, offset: int, callee: object, first: object) -> None:
        self._extensions[Extension.RAISE_C](code, offset, callee)

    def _popped_by_return(self, code: CodeType, offset: int, value: object) -> None:
        if self._host:
            self._host.pops.popped(self._host, code, False)

    def _popped_by_exception(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._host:
            self._host.pops.popped(self._host, code, True)


def listeners(host: Host, event: Event | Extension) -> tuple[tuple[Environment, Callable[..., object], Any, bool], ...]:
    """Those of an event as a dispatcher takes them."""
    place = bit(event)
    rows = []
    for environment in host.environments:
        if environment.wanted() & place:
            everywhere = environment.enabled & place
            only = tuple(thread for thread, on in environment.enabled_by_thread.items() if on & place)
            failing = event in environment.failures
            callback = environment.callbacks.get(event)
            if callback is not None:  # else a signal's handler has just taken it away
                rows.append((environment, callback, None if everywhere else only, failing))
    return tuple(rows)


def threads_of(rows: tuple[tuple[object, object, Any, bool], ...]) -> set[Thread] | None:
    """The threads that an environment listens to; None for every thread."""
    found: set[Thread] = set()
    for _, _, only, _ in rows:
        if only is None:
            return None
        found.update(only)
    return found


def chain(name: str, handlers: list[Handler], now: Handler | None) -> Handler:
    """What to register for them: a dispatcher itself where it passes over vmscope's own code; else a chain, which does.
    It is the chain of before where the handlers are the same."""
    if name in OF_CALLS and len(handlers) == 1 and isinstance(handlers[0], EventDispatcher):
        return handlers[0]
    return (
        now if isinstance(now, HandlerChain) and now.handlers == tuple(handlers) else HandlerChain(tuple(handlers), OWN)
    )


def clean(number: int) -> None:
    """No events and no callbacks: to 3.13, free_tool_id leaves them for whoever takes the id next."""
    monitoring.set_events(number, 0)
    for name in dir(monitoring.events):
        event = getattr(monitoring.events, name) if name.isupper() else 0
        if event and not event & event - 1:  # to 3.13, BRANCH is one event; from 3.14 on, two
            monitoring.register_callback(number, event, None)
