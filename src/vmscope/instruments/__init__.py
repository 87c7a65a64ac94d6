"""Integrations that cost nothing until they are switched on by name: `vmscope.instrument("asyncio")`.

Each is a module here, with its counters in ROWS (as the catalogue's rows are) and `attach(module)`. Which modules of
the program's it attaches to stands below; one that the program has not imported is waited for.
"""

from __future__ import annotations

import sys

from vmscope.errors import InstrumentError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

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
    ("uvicorn", ("uvicorn.config",), "Requests to the application that uvicorn serves."),
    ("warnings", ("sys",), "Warnings shown, by category."),
)

_on: dict[str, object] = {}


def instrument(*names: str) -> None:
    """Switches instruments on, for good; one that is on already stays as it is.

    Raises InstrumentError for a name that no instrument has, or one that cannot work on this Python;
    CounterExistsError where the program has another counter of the same name.
    """
    rows = [_row(name) for name in names]
    for name, modules, _ in rows:
        claim = object()
        if _on.setdefault(name, claim) is not claim:
            continue
        try:
            for module in modules:
                _attach(name, module)
        except BaseException:
            del _on[name]
            raise


def _row(name: str) -> tuple[str, tuple[str, ...], str]:
    for row in INSTRUMENTS:
        if row[0] == name:
            return row
    known = ", ".join(row[0] for row in INSTRUMENTS)
    raise InstrumentError(f"no instrument is called {name!r}; there are {known}")


def _attach(name: str, module: str) -> None:
    if module in sys.modules:
        __import__(module)  # waits where another thread is importing it just now
        _code(name).attach(sys.modules[module])
        return
    from vmscope.instruments import _imports

    def later(imported: ModuleType) -> None:
        try:
            _code(name).attach(imported)
        except VMScopeError as error:  # the program did not call us: it only imported something
            log(f"the instrument {name} stays off: {error}")

    _imports.when_imported(module, later)


def _code(name: str) -> ModuleType:
    module: ModuleType = __import__(f"vmscope.instruments.{name}", fromlist=["attach"])
    return module


def log(message: str) -> None:
    """Into the logger `vmscope`, with the error at hand, where the program has loaded logging."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("vmscope").debug(message, exc_info=True)
