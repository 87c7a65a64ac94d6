"""What the counters say of collections, the GIL and memory, over the last seconds."""

from __future__ import annotations

import os
from collections import deque

import vmscope
from vmscope.agents import options
from vmscope.errors import VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vmscope import VM

COLLECTIONS = [f"sun.gc.collector.{each}.time" for each in range(3)]
GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
PATIENCE = 10.0  # seconds in which a process gets its region


def memory_limit(text: str) -> int:
    """Bytes: `2g`, or `80%` of what there is."""
    return int(options.share(text) * available()) if text.endswith("%") else options.size(text)


def available() -> int:
    """The bytes of memory that this process may have: the machine's, or its control group's where that is less."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in GROUPS:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found


class Readings:
    """`limits`: by the names gc, gil and memory. A limit is passed when `window` seconds of readings say so."""

    def __init__(self, limits: Mapping[str, float], window: float) -> None:
        self.limits = limits
        self.window = window
        self._taken: deque[tuple[float, dict[str, int]]] = deque()
        self._vm: VM | None = None
        self._pid = 0
        self._began = 0.0

    def passed(self, now: float) -> Iterator[tuple[str, str]]:
        """The limits that are passed, each with a sentence. LookupError where this process has no counters to read."""
        if not self.limits or not self._take(now):
            return
        first, last = self._taken[0], self._taken[-1]
        if last[0] - first[0] < self.window * 0.99:
            return
        for name, limit in self.limits.items():
            value = getattr(self, f"_{name}")(last[0] - first[0])
            if value >= limit:
                yield name, SENTENCES[name](value, self.window)
                self._taken.clear()  # what was acted on counts once
                return

    def _take(self, now: float) -> bool:
        if self._pid != os.getpid():  # at the beginning, and in a forked child
            self._pid, self._vm, self._began = os.getpid(), None, now
            self._taken.clear()
        values = self._read(now)
        if values is None:
            return False
        self._taken.append((now, values))
        while len(self._taken) > 2 and now - self._taken[1][0] >= self.window:
            self._taken.popleft()
        return True

    def _read(self, now: float) -> dict[str, int] | None:
        try:
            if self._vm is None:
                self._vm = vmscope.vm("self")
            values = self._vm.values()
        except VMScopeError as error:
            self._vm = None
            if now - self._began < PATIENCE:
                return None
            self._began = now + 3600  # say it once an hour
            raise LookupError("gc=, gil= and memory= read the region, and this process has none") from error
        found = {name: value for name, value in values.items() if isinstance(value, int)}
        return {
            "gc": sum(found.get(name, 0) for name in COLLECTIONS),
            "wait": found.get("python.gil.waitTime", 0),
            "visits": found.get("vmscope.sampler.visits", 0),
            "memory": found.get("python.memory.resident", 0),
        }

    def _gc(self, seconds: float) -> float:
        return self._grown("gc") / (seconds * 1e9)

    def _gil(self, seconds: float) -> float:
        return self._grown("wait") / (max(self._grown("visits"), 1) * 1e9)

    def _grown(self, name: str) -> int:
        return self._taken[-1][1][name] - self._taken[0][1][name]

    def _memory(self, seconds: float) -> float:
        return min(values["memory"] for _, values in self._taken)


SENTENCES = {
    "gc": lambda value, window: f"garbage collections took {value:.0%} of the last {window:g} s",
    "gil": lambda value, window: (
        f"a thread had to wait {value * 1000:.0f} ms for the GIL, on average of the last {window:g} s"
    ),
    "memory": lambda value, window: f"resident memory was at least {value / (1 << 20):.0f} MB for {window:g} s",
}
