"""Counts exceptions by type and place: those that are thrown, those that are caught, and of these the swallowed ones.

    vmscope run -pyagent:vmscope.agents.exceptions=match=shop.* app.py

An exception is swallowed by a handler that looks at it in no way: it neither binds it to a name nor raises, and calls
nothing that reports the current exception. Counters, in the region:

    exceptions.thrown{at="shop.cart.total:41",type="KeyError"}
    exceptions.caught{at="shop.cart.total:41",by="shop.cart.show:17",type="KeyError"}
    exceptions.swallowed{...}                                           as caught

and the sum of each without labels.

Options: `match=PATTERN`, a function that throws or catches (`shop.*`; may be repeated; default: all); `type=NAME`, only
exceptions of this class or one below it (may be repeated); `ignore=NAME`, none of these (default: StopIteration,
StopAsyncIteration and GeneratorExit, which are not errors); `report=on`, a table on standard error at the end. While
the program runs `jcmd PID Exceptions.print` shows it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import CodeType, FrameType, TracebackType

import vmscope
from vmscope import terminal
from vmscope.agents import clauses, options
from vmscope.agents.entries import entries
from vmscope.agents.reports import offer
from vmscope.tool import Capability, Environment, Event, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.agents.options import VM
    from vmscope.counters.kinds import Counter

NO_ERRORS = ("StopIteration", "StopAsyncIteration", "GeneratorExit")
READERS = {"match": options.word, "type": options.word, "ignore": options.word, "report": options.switch}


class Exceptions:
    """One loaded agent. ValueError for bad options, NotAvailable before CPython 3.12."""

    def __init__(self, vm: VM, text: str) -> None:
        given = options.parse(text, READERS)
        self.patterns = [str(each) for each in given.get("match", ())]
        self.types = {str(each) for each in given.get("type", ())}
        self.ignored = {str(each) for each in given.get("ignore", NO_ERRORS)}
        self.report = bool(given.get("report", [False])[-1])
        self.thrown = vmscope.counter("exceptions.thrown", units=vmscope.Units.EVENTS)
        self.caught = vmscope.counter("exceptions.caught", units=vmscope.Units.EVENTS)
        self.swallowed = vmscope.counter("exceptions.swallowed", units=vmscope.Units.EVENTS)
        self._seen: dict[tuple[str, ...], tuple[Counter, float]] = {}  # the swallowed ones; what was counted before
        self._env = vm.get_env(agent=__name__)
        self._env.add_capabilities({Capability.CAN_GENERATE_EXCEPTION_EVENTS})
        self._env.set_event_callbacks({Event.EXCEPTION: self._on_throw, Event.EXCEPTION_CATCH: self._on_catch})
        self._env.set_event_notification_mode(True, Event.EXCEPTION)
        self._env.set_event_notification_mode(True, Event.EXCEPTION_CATCH)
        offer(vm, "Exceptions.print", "Which exceptions were swallowed, and by whom.", self.table)

    def close(self) -> None:
        if not self._env.disposed:
            self._env.dispose_environment()
        if self.report:
            terminal.ERR.show(self.table())

    def table(self) -> str:
        """Who swallowed what, the most frequent first."""
        rows = [(counter.value - before, *labels) for labels, (counter, before) in self._seen.copy().items()]
        lines = ["exceptions swallowed:" if rows else "no exception was swallowed"]
        lines += [f"{count:8}  {kind} of {at}\n{'':10}by {by}" for count, kind, at, by in sorted(rows, reverse=True)]
        return "\n".join(lines) + "\n"

    # -- events -----------------------------------------------------------------------------------

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
        kind = type(exception)
        if self._wants(kind):
            at = origin(exception)
            if self._matches(at):
                self.thrown.inc()
                self.thrown.labels(type=kind.__qualname__, at=at).inc()

    def _on_catch(
        self, env: Environment, thread: Thread, method: CodeType, location: int, exception: BaseException
    ) -> None:
        kind = type(exception)
        trace = exception.__traceback__
        if trace is None or not self._wants(kind):
            return
        clause = clauses.catching(trace.tb_frame, location, exception)
        labels = {
            "type": kind.__qualname__,
            "at": origin(exception),
            "by": place(trace.tb_frame, clause.line if clause else trace.tb_lineno),
        }
        if self._matches(labels["at"], labels["by"]):
            self.caught.inc()
            self.caught.labels(**labels).inc()
            if clause is not None and clause.swallows:
                counter = self.swallowed.labels(**labels)
                self._seen.setdefault(tuple(labels.values()), (counter, counter.value))
                counter.inc()
                self.swallowed.inc()

    def _wants(self, kind: type[BaseException]) -> bool:
        names = {each.__qualname__ for each in kind.__mro__}
        return names.isdisjoint(self.ignored) and (not self.types or not names.isdisjoint(self.types))

    def _matches(self, *places: str) -> bool:
        return not self.patterns or any(
            fnmatchcase(each.rpartition(":")[0], pattern) for each in places for pattern in self.patterns
        )


def origin(exception: BaseException) -> str:
    """Where it was thrown: `module.function:line`."""
    trace: TracebackType | None = exception.__traceback__
    if trace is None:
        return "?"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return place(trace.tb_frame, trace.tb_lineno)


def place(frame: FrameType, line: int | None) -> str:
    """`module.function:line`."""
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{line or '?'}"


agent_on_load, agent_on_unload = entries(Exceptions)
agent_on_attach = agent_on_load
