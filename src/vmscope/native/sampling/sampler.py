"""The Python twin of sampler.c: the same fields where Python can know them, and the GIL all the time.

What is missing: the heaps, which only malloc and the memory itself report.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import _count
from time import monotonic_ns, process_time_ns, sleep, thread_time_ns

from vmscope.native.counters.slots import LongSlot
from vmscope.native.threads.thread import Own, Thread

if sys.platform == "win32":
    from vmscope import win32
else:
    import resource

__all__ = ["NO_COLLECTION", "SAMPLED", "Sampler"]

NO_COLLECTION = 2_147_480_333  # a threshold that keeps the collector off: no number of a program's

SAMPLED = (
    "cpu.user cpu.system faults.minor faults.major switches.voluntary switches.involuntary memory.peak memory.resident "
    "memory.virtual files.open files.limit gc.count.0 gc.count.1 gc.count.2 gc.threshold.0 gc.threshold.1 "
    "gc.threshold.2 gc.enabled gc.garbage threads.live threads.peak threads.daemon threads.started gil.enabled "
    "gil.interval gil.waits gil.waited gil.longest gil.contention modules modules.loaded modules.unloaded traced "
    "traced.peak visits visit.time visit.longest own.cpu"
).split()
if sys.platform == "win32":  # does not report these, or not alike
    SAMPLED = [
        name
        for name in SAMPLED
        if name not in ("faults.minor", "faults.major", "switches.voluntary", "switches.involuntary", "files.limit")
    ]

_IDLE_INTERVAL = 500_000_000  # ns
_IDLE_CPU = 1_000_000  # ns: this thread's own waking up costs more than the native one's
_SLOW_FACTOR, _SLOW_PERIOD = 200, 250_000_000
_CROWD, _CROWD_PERIOD = 100, 5_000_000_000  # more threads are counted seldom
_SMOOTHING = 0.125


class Sampler(Thread):
    """A thread that sets the slot of each field (SAMPLED has the names) now and then."""

    _kind = "sampler"

    def __init__(self, slots: dict[str, LongSlot]) -> None:
        super().__init__()
        for name, slot in slots.items():
            if name not in SAMPLED:
                raise ValueError(f"a sample has no field {name!r}")
            if not isinstance(slot, LongSlot):
                raise TypeError(f"a field's slot is a LongSlot, not {type(slot).__name__}")
        self._slots = slots
        self._interval = self._delay = self._program_cpu = self._slow_due = 0
        self._slow_owed = False
        self._peak = self._started = self._live = 0
        self._crowd_due, self._crowd = 0, (0, 0, 0)
        self._crowd_owed = False
        self._modules = self._loaded = self._unloaded = 0
        self._waits = self._waited = self._longest_wait = 0
        self._visits = self._visit_time = self._longest_visit = 0
        self._contended = self._observed = 0.0

    def start(self, interval: int, delay: int, /) -> None:
        """Starts the thread; times in ns."""
        if interval <= 0 or delay < 0:
            raise ValueError("the interval is more than 0 ns, the delay at least 0")
        self._interval, self._delay = interval, delay
        self._activate()

    def stop(self, timeout: int, /) -> bool:
        """Ends it; False if it did not end in time."""
        return self._deactivate(timeout)

    def sample(self) -> None:
        """Takes a sample now, here: all fields but the waits and the visits."""
        self._slow_due = 0
        self._read_process()
        self._read_interpreter()

    def _put(self, field: str, value: int) -> None:
        slot = self._slots.get(field)
        if slot is not None:
            slot._restore(value)

    def _run(self) -> None:
        pause, idle = self._delay, max(self._interval, _IDLE_INTERVAL)
        while not self._wait(pause):
            cpu = process_time_ns() - Own.cpu
            if cpu - self._program_cpu >= _IDLE_CPU:
                self._program_cpu = cpu
                self._visit()
                pause = self._interval
            else:
                self._contended = self._observed = 0.0
                self._put("gil.contention", 0)
                self._read_owed()
                if self._crowd_owed and monotonic_ns() >= self._crowd_due:
                    self._visit()
                pause = min(pause * 2, idle)

    def _visit(self) -> None:
        asked = monotonic_ns()
        sleep(0)  # gives the GIL away, and waits for it
        start = monotonic_ns()
        self._read_process()
        self._read_interpreter()
        self._put_wait(start - asked)
        spent = monotonic_ns() - start
        self._visits += 1
        self._visit_time += spent
        self._longest_visit = max(self._longest_visit, spent)
        self._put("visits", self._visits)
        self._put("visit.time", self._visit_time)
        self._put("visit.longest", self._longest_visit)

    def _put_wait(self, wait: int) -> None:
        interval = int(sys.getswitchinterval() * 1e9 + 0.5)
        excess = max(0, wait - interval)
        self._contended += _SMOOTHING * (excess - self._contended)
        self._observed += _SMOOTHING * ((wait if excess else interval) - self._observed)
        self._waits += wait >= interval / 2
        self._waited += wait
        self._longest_wait = max(self._longest_wait, wait)
        self._put("gil.waits", self._waits)
        self._put("gil.waited", self._waited)
        self._put("gil.longest", self._longest_wait)
        self._put("gil.contention", int(100 * self._contended / self._observed + 0.5) if self._observed else 0)

    def _read_process(self) -> None:
        self._put("own.cpu", Own.cpu)
        if sys.platform == "win32":
            used = os.times()
            self._put("cpu.user", int(used.user * 1e9))
            self._put("cpu.system", int(used.system * 1e9))
            resident, peak, virtual = win32.own_memory()
            self._put("memory.resident", resident)
            self._put("memory.peak", peak)
            self._put("memory.virtual", virtual)
            self._put("files.open", win32.own_handles())
            return
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._put("cpu.user", int(usage.ru_utime * 1e9))
        self._put("cpu.system", int(usage.ru_stime * 1e9))
        self._put("faults.minor", usage.ru_minflt)
        self._put("faults.major", usage.ru_majflt)
        self._put("switches.voluntary", usage.ru_nvcsw)
        self._put("switches.involuntary", usage.ru_nivcsw)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._put("files.limit", limit)  # RLIM_INFINITY is -1
        try:
            with open("/proc/self/statm", "rb") as file:
                size, resident = map(int, file.read().split()[:2])
        except OSError:
            return  # no /proc
        page = os.sysconf("SC_PAGE_SIZE")
        self._put("memory.virtual", size * page)
        self._put("memory.resident", resident * page)
        self._slow_owed = True
        self._read_owed()

    def _read_owed(self) -> None:
        """What takes longer: in a sample, and afterwards where a sample had to put it off."""
        if not self._slow_owed or monotonic_ns() < self._slow_due:
            return
        began = thread_time_ns()
        try:
            self._put("files.open", len(os.listdir("/proc/self/fd")) - 1)  # without that of listdir
            with open("/proc/self/status", "rb") as file:  # getrusage would count the program before exec too
                self._put("memory.peak", int(file.read().partition(b"\nVmHWM:")[2].split()[0]) * 1024)
        except OSError:
            return  # no descriptor is left
        self._slow_due = monotonic_ns() + max(_SLOW_PERIOD, (thread_time_ns() - began) * _SLOW_FACTOR)
        self._slow_owed = False

    def _read_interpreter(self) -> None:
        for generation, (count, threshold) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)):
            self._put(f"gc.count.{generation}", count)
            if threshold != NO_COLLECTION:  # else the program's own, seen before, is back in a moment
                self._put(f"gc.threshold.{generation}", threshold)
        self._put("gc.enabled", gc.isenabled())
        self._put("gc.garbage", len(gc.garbage))
        self._read_threads()
        loaded = len(sys.modules)
        self._loaded += max(0, loaded - self._modules)
        self._unloaded += max(0, self._modules - loaded)
        self._modules = loaded
        self._put("modules", loaded)
        self._put("modules.loaded", self._loaded)
        self._put("modules.unloaded", self._unloaded)
        self._put("gil.interval", int(sys.getswitchinterval() * 1e9 + 0.5))
        is_gil_enabled = getattr(sys, "_is_gil_enabled", None)
        self._put("gil.enabled", 1 if is_gil_enabled is None else is_gil_enabled())
        tracemalloc = sys.modules.get("_tracemalloc")
        if tracemalloc is not None:
            traced, peak = tracemalloc.get_traced_memory()
            self._put("traced", traced)
            self._put("traced.peak", peak)

    def _read_threads(self) -> None:
        """Threads that came and went between two samples are not seen."""
        live = 1 + _count() - Own.threads  # sys._current_frames() would touch other interpreters' objects
        self._started += max(0, live - self._live)
        self._live = live
        self._peak = max(self._peak, live)
        self._put("threads.live", live)
        self._put("threads.peak", self._peak)
        self._put("threads.started", self._started)
        active = getattr(sys.modules.get("threading"), "_active", {})
        crowd = live, self._started, len(active)
        self._crowd_owed |= crowd != self._crowd
        self._crowd = crowd
        now = monotonic_ns()
        if len(active) <= _CROWD or now >= self._crowd_due:
            self._crowd_due, self._crowd_owed = now + _CROWD_PERIOD, False
            self._put("threads.daemon", sum(thread._daemonic for thread in tuple(active.values())))
