"""Pools of threads and of processes: how many workers they have, what waits for one, and what is done."""

from __future__ import annotations

import os
from _thread import RLock
from functools import partial, wraps
from weakref import ref

from vmscope.counters.kinds import EVENTS, NONE
from vmscope.instruments._table import InstrumentCounters
from vmscope.patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from types import ModuleType
    from typing import Any

    from vmscope.instruments._table import Row, Undo

ROWS: tuple[Row, ...] = tuple(
    (f"python.executors.{kind}.{name}", of, units, "event", "", "concurrent.futures", meaning.format(kind))
    for kind in ("threads", "processes")
    for name, of, units, meaning in (
        ("workers", "gauge", NONE, "The {} of the process's executors."),
        ("queued", "gauge", NONE, "Calls that wait for one of the {}: those not done, less the workers."),
        ("completed", "counter", EVENTS, "Calls that the {} have done, whether they returned or raised."),
    )
)

# For each module: the executor there, our name for its workers, its attributes with them and with its shutdown.
_EXECUTORS = {
    "concurrent.futures.thread": ("ThreadPoolExecutor", "threads", "_threads", "_shutdown"),
    "concurrent.futures.process": ("ProcessPoolExecutor", "processes", "_processes", "_shutdown_thread"),
}


_pools: dict[str, Pools] = {}


def attach(module: ModuleType) -> Undo:
    executor, kind, workers, ended = _EXECUTORS[module.__name__]
    pools = _pools.get(kind)
    if pools is None:
        pools = _pools[kind] = Pools(kind, workers, ended)
    return pools.watch(getattr(module, executor))


class Pool:
    """What one executor adds to the counters. It outlives the executor, in the callbacks of its calls."""

    __slots__ = ("executor", "forks", "pending", "queued", "workers")

    def __init__(self, pools: Pools, executor: Executor) -> None:
        self.executor = ref(executor, lambda _: pools.show(self))
        self.forks = pools.forks
        self.pending = self.queued = self.workers = 0


class Pools:
    """All executors of one kind; each is known from the first call on that it is given."""

    def __init__(self, name: str, workers: str, ended: str) -> None:
        table = InstrumentCounters(ROWS)
        self._workers = table.gauge(f"python.executors.{name}.workers")
        self._queued = table.gauge(f"python.executors.{name}.queued")
        self._completed = table.counter(f"python.executors.{name}.completed")
        self._attributes = workers, ended
        self._lock = RLock()  # a signal handler or a destructor may use executors too
        self.forks = 0  # a parent's pools, whose workers a child does not have, have another number
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = RLock()
        self.forks += 1

    def watch(self, kind: type[Executor]) -> Undo:
        pools = self
        submit: Any = kind.submit
        shutdown: Any = kind.shutdown

        @wraps(submit)
        def watched_submit(self: Executor, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = submit(self, *args, **kwargs)
            future.add_done_callback(partial(pools._done, pools._submitted(self)))
            return future

        @wraps(shutdown)
        def watched_shutdown(self: Executor, *args: Any, **kwargs: Any) -> None:
            shutdown(self, *args, **kwargs)
            if pool := self.__dict__.get("_vmscope_pool"):
                pools.show(pool)

        patches = Patches()
        patches.replace(kind, "submit", watched_submit)
        patches.replace(kind, "shutdown", watched_shutdown)
        return patches.undo_all

    def _submitted(self, executor: Executor) -> Pool:
        with self._lock:
            pool: Pool | None = executor.__dict__.get("_vmscope_pool")
            if pool is None or pool.forks != self.forks:
                pool = executor.__dict__["_vmscope_pool"] = Pool(self, executor)
            pool.pending += 1
            self.show(pool)
        return pool

    def _done(self, pool: Pool, future: Future[Any]) -> None:
        with self._lock:
            if pool.forks == self.forks:
                pool.pending -= 1
                self.show(pool)
                if not future.cancelled():
                    self._completed.inc()

    def show(self, pool: Pool) -> None:
        """Puts into the gauges what has changed of this pool."""
        with self._lock:
            if pool.forks != self.forks:
                return
            executor = pool.executor()
            workers = queued = 0
            if executor is not None:
                of_workers, of_end = self._attributes
                if pool.pending or not getattr(executor, of_end, False):
                    workers = len(getattr(executor, of_workers, None) or ())
                queued = max(0, pool.pending - workers)
            self._workers.add(workers - pool.workers)
            self._queued.add(queued - pool.queued)
            pool.workers, pool.queued = workers, queued
