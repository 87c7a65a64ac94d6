"""Integrations that cost nothing until they are switched on by name: `vmscope.instrument("asyncio")`.

Each is a module here, with its counters in ROWS (as the catalogue's rows are) and `attach(module)`, which gives back
what undoes it. Which modules of the program's it attaches to stands below; one that is not imported is waited for.
"""

from __future__ import annotations

import sys

from vmscope.errors import InstrumentError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from vmscope.instruments._table import Undo

    Key = tuple[str, str]  # an instrument, a module that it attaches to

# name, the modules that it attaches to, what it counts
INSTRUMENTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("asyncio", ("asyncio",), "Event loops: how many run, their tasks, and how late they are."),
    (
        "audit",
        ("sys",),
        "Audit events by family. CPython cannot remove an audit hook: it is there until the end.",
    ),
    ("exceptions", ("sys",), "Exceptions raised, by type. Python 3.12 and later, by a free tool of sys.monitoring."),
    (
        "executors",
        ("concurrent.futures.thread", "concurrent.futures.process"),
        "ThreadPoolExecutor and ProcessPoolExecutor: workers, what waits for one, what is done.",
    ),
    ("gunicorn", ("gunicorn.workers.base",), "Requests to the WSGI application of each gunicorn worker."),
    (
        "prometheus",
        ("prometheus_client.values", "prometheus_client.metrics", "prometheus_client.multiprocess"),
        "The program's own metrics of prometheus_client, which then need no files for several processes.",
    ),
    (
        "statsd",
        ("statsd.client.base", "datadog.dogstatsd.base"),
        "What clients of statsd and datadog count, which then need no daemon: nothing is sent.",
    ),
    ("uvicorn", ("uvicorn.config",), "Requests to the application that uvicorn serves."),
    ("warnings", ("sys",), "Warnings shown, by category."),
)

_on: dict[Key, Undo] = {}  # what takes each away again
_resting: set[Key] = set()


def instrument(*names: str) -> None:
    """Switches instruments on; one that is on already stays as it is.

    `vmscope.stop()` takes them out of the program, the next `vmscope.start()` puts them back.

    Raises InstrumentError for a name that no instrument has, or one that cannot work on this Python;
    CounterExistsError where the program has another counter of the same name.
    """
    rows = [_row(name) for name in names]
    for name, modules, _ in rows:
        for module in modules:
            _switch_on((name, module))


def suspend() -> None:
    """Leaves the program as it was before, except what other code has built upon."""
    for key, undo in [*_on.items()]:
        if undo():
            _resting.add(key)
            del _on[key]


def resume() -> None:
    """Puts back what `suspend` took away."""
    for key in [*_resting]:
        try:
            _switch_on(key)
        except VMScopeError as error:  # the program has taken what it needs
            _stays_off(key[0], error)
        _resting.discard(key)


def _row(name: str) -> tuple[str, tuple[str, ...], str]:
    for row in INSTRUMENTS:
        if row[0] == name:
            return row
    known = ", ".join(row[0] for row in INSTRUMENTS)
    raise InstrumentError(f"no instrument is called {name!r}; there are {known}")


def _switch_on(key: Key) -> None:
    def claim() -> bool:  # until there is something to undo
        return False

    try:
        if _on.setdefault(key, claim) is claim:
            _on[key] = _attach(*key)
    except BaseException:
        if _on.get(key) is claim:
            del _on[key]
        raise


def _attach(name: str, module: str) -> Undo:
    if module in sys.modules:
        __import__(module)  # waits where another thread is importing it just now
        found: Undo = _code(name).attach(sys.modules[module])
        return found
    from vmscope.instruments import _imports

    def forget() -> bool:
        _imports.forget(module)
        return True

    undo: list[Undo] = [forget]

    def later(imported: ModuleType) -> None:
        try:
            undo[0] = _code(name).attach(imported)
        except VMScopeError as error:  # the program did not call us: it only imported something
            _stays_off(name, error)

    _imports.when_imported(module, later)
    return lambda: undo[0]()


def _code(name: str) -> ModuleType:
    module: ModuleType = __import__(f"vmscope.instruments.{name}", fromlist=["attach"])
    return module


def _stays_off(name: str, error: VMScopeError) -> None:
    from vmscope import log  # not before: an instrument that waits imports nothing

    log.say("debug", "the instrument %s stays off: %s", name, error, error=error, depth=2)
