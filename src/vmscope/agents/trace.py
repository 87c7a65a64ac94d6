"""Counts and times the calls of chosen functions; other code keeps its full speed.

    vmscope run -pyagent:vmscope.agents.trace=match=shop.* app.py

It can be loaded into a live process and unloaded again. Everything is done by breakpoints, which CPython keeps in the
code object that they belong to: one at a function's first instruction, one at each `return`. Functions of modules that
are imported later are found before the module runs, by one more in importlib. In the region, for each function:

    trace.calls{function=}      calls that have begun
    trace.time{function=}       how long those took that have returned: a histogram
    trace.raised{function=}     calls that were left by an exception: counted at a later call, or with raises=on at once
    trace.longest{function=}    the longest so far

A generator's call is from its first step to its end. Options: `match=PATTERN` (may be repeated); `raises=on`, which
times calls that are left by an exception too, for some microseconds at each exception of the program; `report=on`, a
table on standard error at the end.
"""

from __future__ import annotations

import dis
import importlib._bootstrap as bootstrap
import sys
from time import perf_counter_ns
from types import CodeType, FrameType
from weakref import WeakKeyDictionary

import vmscope
from vmscope import terminal
from vmscope.agents import functions, options
from vmscope.agents.entries import entries
from vmscope.agents.reports import offer
from vmscope.tool import Capability, Environment, Event, Phase, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vmscope.agents.options import VM

BOUNDS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0)  # seconds
RETURNS = ("RETURN_VALUE", "RETURN_CONST")
GENERATORS = 0x20 | 0x80 | 0x200  # flags of code: generator, coroutine, asynchronous generator
MOST = 10_000  # of their calls that are remembered: one that is never finished never ends
EXECUTES: Any = vars(bootstrap)["_call_with_frames_removed"]  # by which importlib runs a module's code
READERS = {"match": options.word, "raises": options.switch, "report": options.switch}


class TracedFunction:
    """What is known of one function, since the agent was loaded and before."""

    def __init__(self, name: str) -> None:
        events, ticks = vmscope.Units.EVENTS, vmscope.Units.TICKS
        self.name = name
        self.calls = vmscope.counter("trace.calls", units=events).labels(function=name)
        self.time = vmscope.histogram("trace.time", bounds=BOUNDS).labels(function=name)
        self.raised = vmscope.counter("trace.raised", units=events).labels(function=name)
        self.longest = vmscope.gauge("trace.longest", units=ticks).labels(function=name)
        self.before = self.calls.value, self.time.sum

    def took(self, nanoseconds: int) -> None:
        self.time.observe(nanoseconds / 1e9)
        if nanoseconds > self.longest.value:
            self.longest.set(nanoseconds)


class TracedCall:
    """One that is under way. Its frame is known by its id and its code: it is kept alive no longer than without us."""

    __slots__ = ("began", "code", "frame", "function")

    def __init__(self, frame: FrameType, function: TracedFunction) -> None:
        self.frame = id(frame)
        self.code = frame.f_code
        self.function = function
        self.began = perf_counter_ns()

    def is_of(self, frame: FrameType) -> bool:
        return id(frame) == self.frame and frame.f_code is self.code

    def is_below(self, frame: FrameType | None) -> bool:
        """Whether its frame is this one, or called it."""
        while frame is not None:
            if self.is_of(frame):
                return True
            frame = frame.f_back
        return False


class Trace:
    """One loaded agent. ValueError for bad options; NotAvailable before CPython 3.12, and where another agent has the
    breakpoints.
    """

    def __init__(self, vm: VM, text: str) -> None:
        given = options.parse(text, READERS)
        self.patterns = [str(each) for each in given.get("match", ())]
        if not self.patterns:
            raise ValueError("no functions: give at least one match=")
        self.report = bool(given.get("report", [False])[-1])
        raises = bool(given.get("raises", [False])[-1])
        self.functions: dict[int, tuple[CodeType, TracedFunction]] = {}  # by the code's id
        self._open: WeakKeyDictionary[Thread, list[TracedCall]] = WeakKeyDictionary()  # the innermost last
        self._suspended: dict[int, TracedCall] = {}  # those of generators and coroutines, by the frame's id
        self._env = vm.get_env(agent=__name__)
        wanted = {Capability.CAN_GENERATE_BREAKPOINT_EVENTS, Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS}
        self._env.add_capabilities(wanted | ({Capability.CAN_GENERATE_EXCEPTION_EVENTS} if raises else set()))
        self._env.set_event_callbacks(
            {
                Event.BREAKPOINT: self._on_stop,
                Event.EXCEPTION: self._on_throw,
                Event.METHOD_ENTRY: self._on_entry,
                Event.VM_INIT: self._on_init,
            }
        )
        self._env.set_event_notification_mode(True, Event.BREAKPOINT)
        self._env.set_event_notification_mode(raises, Event.EXCEPTION)
        offer(vm, "Trace.print", "The functions that were called, by their time.", self.table)
        if self._env.get_phase() == Phase.LIVE:
            self._watch()
        else:
            self._env.set_event_notification_mode(True, Event.VM_INIT)

    def _on_init(self, env: Environment, thread: Thread) -> None:
        """The program itself is still to come: __main__ is not imported."""
        env.set_event_notification_mode(True, Event.METHOD_ENTRY)
        self._watch()

    def _watch(self) -> None:
        """Breakpoints belong to the phase LIVE."""
        self._env.set_breakpoint(EXECUTES.__code__, 0)
        for code, name in functions.present(self.patterns).items():
            self._add(code, name)

    def close(self) -> None:
        if not self._env.disposed:
            self._env.dispose_environment()
        if self.report:
            terminal.ERR.show(self.table())

    def table(self) -> str:
        """The functions that were called, by their time, that of what they call included."""
        rows = [
            (each.time.sum - each.before[1], each.calls.value - each.before[0], each.longest.value, each.name)
            for each in {function.name: function for _, function in [*self.functions.values()]}.values()
        ]
        lines = [f"{'calls':>9} {'seconds':>9} {'mean ms':>9} {'longest':>9}  function"]
        for total, calls, longest, name in sorted(rows, reverse=True):
            if calls:
                lines.append(f"{calls:9} {total:9.3f} {1000 * total / calls:9.3f} {longest / 1e6:9.3f}  {name}")
        return "\n".join(lines) + "\n"

    def _add(self, code: CodeType, name: str) -> None:
        if id(code) not in self.functions:
            self.functions[id(code)] = code, TracedFunction(name)
            for location in {0, *returns(code)}:
                self._env.set_breakpoint(code, location)

    # -- events -----------------------------------------------------------------------------------

    def _on_stop(self, env: Environment, thread: Thread, method: CodeType, location: int) -> None:
        now = perf_counter_ns()
        frame = frame_of(method)
        known = self.functions.get(id(method))
        if known is None or frame is None:
            if method is EXECUTES.__code__ and frame is not None:
                self._on_module(frame)
            return
        if not location:
            self._begins(thread, frame, known[1])
        else:
            self._returns(thread, frame, now)

    def _begins(self, thread: Thread, frame: FrameType, function: TracedFunction) -> None:
        function.calls.inc()
        if frame.f_code.co_flags & GENERATORS:
            if len(self._suspended) < MOST:
                self._suspended[id(frame)] = TracedCall(frame, function)
            return
        calls = self._open.setdefault(thread, [])
        while calls and not calls[-1].is_below(frame.f_back):
            calls.pop().function.raised.inc()  # its frame has gone without a return
        calls.append(TracedCall(frame, function))

    def _returns(self, thread: Thread, frame: FrameType, now: int) -> None:
        call = self._suspended.pop(id(frame), None)
        if call is not None and call.is_of(frame):
            call.function.took(now - call.began)
            return
        calls = self._open.get(thread, [])
        if any(each.is_of(frame) for each in calls):  # else it began before the agent was there
            while not calls[-1].is_of(frame):
                calls.pop().function.raised.inc()
            call = calls.pop()
            call.function.took(now - call.began)

    def _on_module(self, frame: FrameType) -> None:
        """importlib is about to run something: a module's code, if the first argument is such."""
        code, *rest = frame.f_locals.get("args") or (None,)
        if isinstance(code, CodeType) and rest:
            for each, name in functions.within(code, str(rest[0].get("__name__", "?")), self.patterns):
                self._add(each, name)

    def _on_entry(self, env: Environment, thread: Thread, method: CodeType) -> None:
        """Until the program itself begins: then its code is known, before any of it has run."""
        frame = frame_of(method)
        if method.co_name == "<module>" and frame is not None and frame.f_globals.get("__name__") == "__main__":
            env.set_event_notification_mode(False, Event.METHOD_ENTRY)
            for each, name in functions.within(method, "__main__", self.patterns):
                self._add(each, name)

    def _on_throw(
        self,
        env: Environment,
        thread: Thread,
        method: CodeType,
        location: int,
        exception: BaseException,
        catch_method: CodeType | None,
        catch_location: int,
    ) -> None:
        """Whatever stands between here and the handler is left."""
        now = perf_counter_ns()
        calls = self._open.get(thread, [])
        frame = frame_of(method) if calls or self._suspended else None
        while frame is not None and frame.f_code is not catch_method:
            call = self._suspended.pop(id(frame), None)
            call = call if call is not None and call.is_of(frame) else None
            if call is None and calls and calls[-1].is_of(frame):
                call = calls.pop()
            if call is not None:
                call.function.raised.inc()
                call.function.took(now - call.began)
            frame = frame.f_back


def returns(code: CodeType) -> list[int]:
    """Where it returns."""
    return [each.offset for each in dis.get_instructions(code) if each.opname in RETURNS]


def frame_of(code: CodeType) -> FrameType | None:
    """The innermost frame that runs it: the one that an event is about."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


agent_on_load, agent_on_unload = entries(Trace)
agent_on_attach = agent_on_load
