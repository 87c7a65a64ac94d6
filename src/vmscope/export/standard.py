"""The standard metrics: which of a VM's counters they are made of. One table, from which docs/export.md comes too.

Names are client_java's for JVMs, prometheus_client's for Pythons, and OpenTelemetry's where metrics are pushed. What the
catalogue has besides is exported under its own name (`python.gil.waitTime`: python_gil_wait_time_seconds_total).
"""

from __future__ import annotations

from vmscope.counters.catalogue import CATALOGUE
from vmscope.export.model import COUNTER, GAUGE, INFO, MAX, MIN, SUM, SUMMARY, Family, Otel
from vmscope.export.names import limited, snake, with_unit

PYTHON, JAVA, ALL = "Python", "Java", "all"

MILLISECONDS = 1000.0
TICKS = 0.0  # the divisor is the VM's own: what its ticks are


class Row:
    """A metric: `sources` are names of counters; of several in one tuple the values are added, `-` before one takes away.

    `*` stands for any number, which `labels` may have as a value; `{pool}` and the like for what `java_pools` knows.
    """

    __slots__ = ("divisor", "family", "labels", "mode", "sources", "vms")

    def __init__(
        self, vms: str, name: str, type: str, sources: tuple[tuple[str, ...], ...], help: str, *, divisor: float = 1,
        labels: tuple[tuple[str, str], ...] = (), mode: str = SUM, otel: Otel | None = None, unit: str = "",
    ) -> None:  # fmt: skip
        self.vms = vms
        self.sources = sources
        self.divisor = divisor
        self.labels = labels
        self.mode = mode
        self.family = Family(name, type, help, unit=unit, otel=otel, standard=True)


def _one(*names: str) -> tuple[tuple[str, ...], ...]:
    return (names,)


_GENERATION = (("generation", "*"),)
_BY_GENERATION = {"generation": "cpython.gc.generation"}
_LOADED = ("java.cls.loadedClasses", "java.cls.sharedLoadedClasses")
_UNLOADED = ("java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses")
_CPU, _FDS = "CPU time, user and system.", "Open descriptors."
_RSS, _VIRTUAL = "Resident memory.", "Address space."
_MAX_FDS, _START = "How many descriptors may be open.", "When the process started."
_OTEL_CPU = Otel("process.cpu.time", "s")
_OTEL_RSS, _OTEL_VIRTUAL = Otel("process.memory.usage", "By"), Otel("process.memory.virtual", "By")
_OTEL_FDS = Otel("process.unix.file_descriptor.count", "{file_descriptor}")

# fmt: off
# ruff: noqa: E501
ROWS: tuple[Row, ...] = (
    Row(PYTHON, "process_cpu_seconds", COUNTER, _one("python.process.cpu.user", "python.process.cpu.system"), _CPU, divisor=TICKS, unit="seconds", otel=_OTEL_CPU),
    Row(PYTHON, "process_resident_memory_bytes", GAUGE, _one("python.memory.resident"), _RSS, unit="bytes", otel=_OTEL_RSS),
    Row(PYTHON, "process_virtual_memory_bytes", GAUGE, _one("python.memory.virtual"), _VIRTUAL, unit="bytes", otel=_OTEL_VIRTUAL),
    Row(PYTHON, "process_open_fds", GAUGE, _one("python.process.files.open"), _FDS, otel=_OTEL_FDS),
    Row(PYTHON, "process_max_fds", GAUGE, _one("python.process.files.limit"), _MAX_FDS, mode=MIN),
    Row(JAVA, "process_cpu_seconds", COUNTER, _one("proc.cpu"), _CPU, divisor=1e9, unit="seconds", otel=_OTEL_CPU),
    Row(JAVA, "process_resident_memory_bytes", GAUGE, _one("proc.resident"), _RSS, unit="bytes", otel=_OTEL_RSS),
    Row(JAVA, "process_virtual_memory_bytes", GAUGE, _one("proc.virtual"), _VIRTUAL, unit="bytes", otel=_OTEL_VIRTUAL),
    Row(JAVA, "process_open_fds", GAUGE, _one("proc.files.open"), _FDS, otel=_OTEL_FDS),
    Row(JAVA, "process_max_fds", GAUGE, _one("proc.files.limit"), _MAX_FDS, mode=MIN),
    Row(ALL, "process_start_time_seconds", GAUGE, _one("sun.rt.createVmBeginTime"), _START, divisor=MILLISECONDS, mode=MIN, unit="seconds"),
    # prometheus_client's
    Row(PYTHON, "python_gc_collections", COUNTER, _one("{generation}.invocations"), "Collections of a generation.", labels=_GENERATION, otel=Otel("cpython.gc.collections", "{collection}", _BY_GENERATION)),
    Row(PYTHON, "python_gc_objects_collected", COUNTER, _one("python.gc.generation.*.collected"), "Objects that collections freed.", labels=_GENERATION, otel=Otel("cpython.gc.collected_objects", "{object}", _BY_GENERATION)),
    Row(PYTHON, "python_gc_objects_uncollectable", COUNTER, _one("python.gc.generation.*.uncollectable"), "Objects that collections could not free.", labels=_GENERATION, otel=Otel("cpython.gc.uncollectable_objects", "{object}", _BY_GENERATION)),
    Row(PYTHON, "python_gc_collection_seconds", COUNTER, _one("{generation}.time"), "Time in collections of a generation.", divisor=TICKS, labels=_GENERATION, unit="seconds"),
    Row(PYTHON, "python_gc_pending", GAUGE, _one("python.gc.generation.*.count"), "What a generation counts until its next collection.", labels=_GENERATION),
    Row(PYTHON, "python_gc_threshold", GAUGE, _one("python.gc.generation.*.threshold"), "Above this a collection of a generation is due.", labels=_GENERATION, mode=MIN),
    Row(PYTHON, "python_gc_objects", GAUGE, _one("python.gc.generation.2.objects"), "Objects in the oldest generation, as the last collections left them."),
    # client_java's
    Row(JAVA, "jvm_memory_used_bytes", GAUGE, _one("{area}.used"), "Memory in use.", labels=(("area", "{area}"),), unit="bytes"),
    Row(JAVA, "jvm_memory_committed_bytes", GAUGE, _one("{area}.capacity"), "Memory that the JVM has from the system.", labels=(("area", "{area}"),), unit="bytes"),
    Row(JAVA, "jvm_memory_max_bytes", GAUGE, _one("{area}.maxCapacity"), "The most that it may have.", labels=(("area", "{area}"),), unit="bytes"),
    Row(JAVA, "jvm_memory_init_bytes", GAUGE, _one("{area}.initCapacity"), "What it began with.", labels=(("area", "{area}"),), unit="bytes"),
    Row(JAVA, "jvm_memory_pool_used_bytes", GAUGE, _one("{pool}.used"), "Memory in use, of a pool.", labels=(("pool", "{pool}"),), unit="bytes", otel=Otel("jvm.memory.used", "By", {"pool": "jvm.memory.pool.name"})),
    Row(JAVA, "jvm_memory_pool_committed_bytes", GAUGE, _one("{pool}.capacity"), "Memory that a pool has from the system.", labels=(("pool", "{pool}"),), unit="bytes", otel=Otel("jvm.memory.committed", "By", {"pool": "jvm.memory.pool.name"})),
    Row(JAVA, "jvm_memory_pool_max_bytes", GAUGE, _one("{pool}.maxCapacity"), "The most that a pool may have.", labels=(("pool", "{pool}"),), unit="bytes", otel=Otel("jvm.memory.limit", "By", {"pool": "jvm.memory.pool.name"})),
    Row(JAVA, "jvm_memory_pool_init_bytes", GAUGE, _one("{pool}.initCapacity"), "What a pool began with.", labels=(("pool", "{pool}"),), unit="bytes", otel=Otel("jvm.memory.init", "By", {"pool": "jvm.memory.pool.name"})),
    Row(JAVA, "jvm_gc_collection_seconds", SUMMARY, (("{gc}.invocations",), ("{gc}.time",)), "Collections, and the time in them.", divisor=TICKS, labels=(("gc", "{gc}"),), unit="seconds", otel=Otel("jvm.gc.duration", "s", {"gc": "jvm.gc.name"})),
    Row(JAVA, "jvm_threads_current", GAUGE, _one("java.threads.live"), "Live threads.", otel=Otel("jvm.thread.count", "{thread}")),
    Row(JAVA, "jvm_threads_daemon", GAUGE, _one("java.threads.daemon"), "Daemon threads."),
    Row(JAVA, "jvm_threads_peak", GAUGE, _one("java.threads.livePeak"), "The most live threads that there were.", mode=MAX),
    Row(JAVA, "jvm_threads_started", COUNTER, _one("java.threads.started"), "Threads that were started."),
    Row(JAVA, "jvm_classes_currently_loaded", GAUGE, _one(*_LOADED, *("-" + name for name in _UNLOADED)), "Classes that are loaded.", otel=Otel("jvm.class.count", "{class}")),
    Row(JAVA, "jvm_classes_loaded", COUNTER, _one(*_LOADED), "Classes that were loaded.", otel=Otel("jvm.class.loaded", "{class}")),
    Row(JAVA, "jvm_classes_unloaded", COUNTER, _one(*_UNLOADED), "Classes that were unloaded.", otel=Otel("jvm.class.unloaded", "{class}")),
    Row(JAVA, "jvm_compilation_time_seconds", COUNTER, _one("java.ci.totalTime"), "Time spent compiling.", divisor=TICKS, unit="seconds"),
    Row(JAVA, "jvm_safepoints", COUNTER, _one("sun.rt.safepoints"), "Times that all threads were stopped."),
    Row(JAVA, "jvm_safepoint_seconds", COUNTER, _one("sun.rt.safepointTime"), "Time for which all threads were stopped.", divisor=TICKS, unit="seconds"),
)
# fmt: on

# Constant 1: what a VM is, as labels.
PYTHON_INFO = Family("python", INFO, "Which Python it is.", standard=True)
JVM_INFO = Family("jvm_runtime", INFO, "Which JVM it is.", standard=True)
VMS = Family("vmscope_vms", GAUGE, "VMs of a service.", standard=True)

# Which number of jstat's collectors a generation of CPython's has.
_COLLECTORS = {"0": "0", "1": "2", "2": "1"}
# Of java.lang's beans: the pools of eden, survivor and old space, and the collectors.
_POOLS = {
    "GarbageFirst": ("G1 Eden Space", "G1 Survivor Space", "G1 Old Gen"),
    "ParScav:MSC": ("PS Eden Space", "PS Survivor Space", "PS Old Gen"),
    "Copy:MSC": ("Eden Space", "Survivor Space", "Tenured Gen"),
}
_GC = {
    "G1 young collection pauses": "G1 Young Generation",
    "G1 incremental collections": "G1 Young Generation",
    "G1 full collection pauses": "G1 Old Generation",
    "G1 stop-the-world full collections": "G1 Old Generation",
    "G1 concurrent cycle pauses": "G1 Concurrent GC",
    "G1 stop-the-world phases": "G1 Concurrent GC",
    "Parallel young collection pauses": "PS Scavenge",
    "PSScavenge": "PS Scavenge",
    "Parallel full collection pauses": "PS MarkSweep",
    "PSParallelCompact": "PS MarkSweep",
    "Serial young collection pauses": "Copy",
    "Copy": "Copy",
    "Serial full collection pauses": "MarkSweepCompact",
    "MSC": "MarkSweepCompact",
    "MCS": "MarkSweepCompact",
}
_METASPACE, _CLASSES = "sun.gc.metaspace", "sun.gc.compressedclassspace"

Groups = dict[str, list[str]]  # what a `{...}` of a row can be, and the beginnings of its counters' names


def groups(vms: str, values: dict[str, int | str]) -> dict[str, Groups]:
    """What stands for `{area}`, `{pool}`, `{gc}` and `{generation}` in the rows of this VM."""
    if vms == PYTHON:
        return {"generation": {number: [f"sun.gc.collector.{at}"] for number, at in _COLLECTORS.items()}}
    names = _POOLS.get(str(values.get("sun.gc.policy.name", "")), ())
    pools: Groups = {}
    collectors: Groups = {}
    for number in range(4):
        name = values.get(f"sun.gc.collector.{number}.name")
        if name:
            collectors.setdefault(_GC.get(str(name), str(name)), []).append(f"sun.gc.collector.{number}")
        for space in range(4):
            place = f"sun.gc.generation.{number}.space.{space}"
            if f"{place}.used" in values:
                at = 2 if number else min(space, 1)
                own = f"{values.get(f'sun.gc.generation.{number}.name')} {values.get(f'{place}.name')}"
                pools.setdefault(names[at] if names else own, []).append(place)
    heap = [place for places in pools.values() for place in places]
    pools |= {"Metaspace": [_METASPACE], "Compressed Class Space": [_CLASSES]}
    return {"pool": pools, "gc": collectors, "area": {"heap": heap, "nonheap": [_METASPACE]}}


def _others() -> dict[str, tuple[Family, str]]:
    """The rest of the catalogue: the family of each counter, and how its values become one."""
    used = {name for row in ROWS for names in row.sources for name in names}
    found = {}
    for name, kind, units, feed, _, _, meaning in CATALOGUE:
        if kind not in ("counter", "gauge") or feed.startswith("=") or name in used or not name.startswith(_OURS):
            continue
        if name.startswith(("python.gc.generation.", "vmscope.process.")):
            continue
        longest = any(word in name.lower() for word in ("longest", "peak", "contention", "currentwait"))
        same = any(word in name for word in ("enabled", "threshold", "switchInterval"))
        family = with_unit(snake(name), units, kind)
        unit = "seconds" if family.endswith("_seconds") else "bytes" if family.endswith("_bytes") else ""
        made = Family(
            family, kind, meaning, unit=unit, original=name, standard=True, otel=Otel(name, _UCUM.get(unit, "1"))
        )
        found[name] = made, MAX if longest else MIN if same else SUM
    return found


_UCUM = {"seconds": "s", "bytes": "By"}
_OURS = ("python.", "vmscope.")
OTHERS = _others()
# Whatever else begins so is the VM's own business, and exported by mapping files only.
RESERVED = ("sun.", "java.", "jdk.", "com.sun.", "proc.", "prometheus.")
KNOWN = frozenset(row[0] for row in CATALOGUE)

_TEXTS = (
    "java.property.java.version", "java.property.java.vm.name", "java.property.java.vm.version",
    "java.property.java.vm.vendor", "sun.gc.policy.name", "sun.os.hrt.frequency", "sun.rt.jvmVersion",
    "java.cls.loadedClasses",
)  # fmt: skip


def texts(values: dict[str, int | str]) -> dict[str, int | str]:
    """Of a VM's values those that its metrics' names and labels depend on, the same for all VMs of one kind."""
    found = {name: values[name] for name in _TEXTS if name in values}
    if "java.cls.loadedClasses" in found:
        found["java.cls.loadedClasses"] = 0  # that it is there tells a JVM
    if str(found.get("java.property.java.vm.name")) != "CPython":
        names = [name for name in values if name.startswith("sun.gc.") and name.endswith((".name", ".used"))]
        found |= {name: values[name] if name.endswith(".name") else 0 for name in names}
    return {name: limited(value) if isinstance(value, str) else value for name, value in found.items()}
