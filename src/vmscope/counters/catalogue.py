"""The standard counters: one table, from which registration, docs/counters.md and the tests come.

A row is (name, kind, units, feed, since, source, meaning).

Kinds: constant, text, counter and gauge as in kinds.py; clock is the counter that the mirror moves; alias shows
another counter of the table under a second name. Names under `java.` and `sun.` are those that the JDK's tools look for.

Feeds say who sets a counter, and what that costs:
    once          when the region is made
    mirror        at each visit of the mirror
    import        by importlib, at each import of a module that is not loaded yet
    collection    by the probe in gc.callbacks, at each collection
    sample:FIELD  by the sampler, without the GIL
    scan:FIELD    the same; it takes longer the larger the process is, and is done the less often
    visit:FIELD   by the sampler, under the GIL
    =NAME         that counter

`since` is the Python version where it has a meaning, "" for all.
"""

from __future__ import annotations

from vmscope.counters.kinds import BYTES, EVENTS, HERTZ, NONE, STRING, TICKS

# fmt: off
# ruff: noqa: E501
CATALOGUE: tuple[tuple[str, str, int, str, str, str, str], ...] = (
    # what jps, jcmd and VisualVM show
    ("sun.rt.javaCommand", "constant", STRING, "once", "", "sys.argv", "The program and its arguments; a script without its .py."),
    ("java.rt.vmArgs", "constant", STRING, "once", "", "vmscope", "The VM options as given."),
    ("java.rt.vmFlags", "constant", STRING, "once", "", "vmscope", "Options from a flags file; always empty."),
    ("sun.rt.jvmCapabilities", "text", STRING, "once", "", "vmscope", "One character a capability; the first is 1 where attach works."),
    ("sun.rt.jvmVersion", "constant", NONE, "once", "", "sys.hexversion", "The Python version, as a number."),
    ("sun.rt.internalVersion", "constant", STRING, "once", "", "sys.version", "Version, build and compiler, on one line."),
    ("java.property.java.version", "constant", STRING, "once", "", "sys.version_info", "The Python version."),
    ("java.property.java.home", "constant", STRING, "once", "", "sys.prefix", "Where Python, or the virtual environment, is installed."),
    ("java.property.java.class.path", "constant", STRING, "once", "", "sys.path", "Where modules are looked for, as far as it fits."),
    ("java.property.java.vm.name", "constant", STRING, "once", "", "sys.implementation", "The implementation: CPython."),
    ("java.property.java.vm.version", "constant", STRING, "once", "", "sys.version_info", "The Python version with its release level."),
    ("java.property.java.vm.vendor", "constant", STRING, "once", "", "vmscope", "Who makes the interpreter."),
    ("java.property.java.vm.info", "constant", STRING, "once", "", "sys.version", "Build and compiler."),
    ("java.property.java.vm.specification.name", "constant", STRING, "once", "", "vmscope", "Python Language Reference."),
    ("java.property.java.vm.specification.vendor", "constant", STRING, "once", "", "vmscope", "Who specifies the language."),
    ("java.property.java.vm.specification.version", "constant", STRING, "once", "", "sys.version_info", "The language version, such as 3.12."),
    # the interpreter
    ("python.version", "alias", STRING, "=java.property.java.vm.version", "", "sys.version_info", "The Python version with its release level."),
    ("python.implementation", "alias", STRING, "=java.property.java.vm.name", "", "sys.implementation", "The implementation: CPython."),
    ("python.build", "alias", STRING, "=java.property.java.vm.info", "", "sys.version", "Build and compiler."),
    ("python.abiFlags", "constant", STRING, "once", "", "sys.abiflags", "Flags of the build: d with debugging code, t without a GIL."),
    ("python.debug", "constant", NONE, "once", "", "sys.gettotalrefcount", "1 in a build with debugging code."),
    ("python.platform", "constant", STRING, "once", "", "sys.platform", "What the build is for: linux."),
    ("python.executable", "constant", STRING, "once", "", "sys.executable", "The interpreter's file."),
    ("python.commandLine", "constant", STRING, "once", "", "sys.orig_argv", "The whole command line as the interpreter got it."),
    ("python.flags", "constant", STRING, "once", "", "sys.flags", "Flags that are not 0, as name=value."),
    ("python.options", "constant", STRING, "once", "", "sys._xoptions", "-X options as given."),
    ("python.warnings", "constant", STRING, "once", "", "sys.warnoptions", "-W options and PYTHONWARNINGS, separated by commas."),
    ("python.virtualEnvironment", "constant", STRING, "once", "", "sys.prefix, sys.base_prefix", "The virtual environment's folder; empty outside of one."),
    ("python.hashSeedGiven", "constant", NONE, "once", "", "PYTHONHASHSEED", "1 where hashes of strings are the same in each run."),
    ("python.jit", "constant", NONE, "once", "3.14", "sys._jit", "1 where the JIT compiler is on."),
    # time
    ("sun.os.hrt.frequency", "constant", HERTZ, "once", "", "vmscope", "Ticks in a second: 10^9."),
    ("sun.os.hrt.ticks", "clock", TICKS, "mirror", "", "CLOCK_MONOTONIC", "Time since the region was made."),
    ("sun.rt.createVmBeginTime", "gauge", NONE, "once", "", "/proc/self/stat", "When the process started, ms since the epoch."),
    ("sun.rt.createVmEndTime", "gauge", NONE, "once", "", "the clock", "When vmscope had started, ms since the epoch."),
    ("sun.rt.vmInitDoneTime", "gauge", NONE, "once", "", "the clock", "When the region was there, ms since the epoch."),
    ("python.process.startTime", "alias", NONE, "=sun.rt.createVmBeginTime", "", "/proc/self/stat", "When the process started, ms since the epoch."),
    # CPython's collector, under the names that jstat shows: young, full and concurrent
    ("sun.gc.collector.0.name", "constant", STRING, "once", "", "vmscope", "generation 0"),
    ("sun.gc.collector.0.invocations", "counter", EVENTS, "collection", "", "gc.callbacks", "Collections of generation 0 (jstat: YGC)."),
    ("sun.gc.collector.0.time", "counter", TICKS, "collection", "", "gc.callbacks", "Time in them (YGCT)."),
    ("sun.gc.collector.1.name", "constant", STRING, "once", "", "vmscope", "generation 2"),
    ("sun.gc.collector.1.invocations", "counter", EVENTS, "collection", "", "gc.callbacks", "Collections of generation 2, full ones (FGC)."),
    ("sun.gc.collector.1.time", "counter", TICKS, "collection", "", "gc.callbacks", "Time in them (FGCT)."),
    ("sun.gc.collector.2.name", "constant", STRING, "once", "", "vmscope", "generation 1"),
    ("sun.gc.collector.2.invocations", "counter", EVENTS, "collection", "", "gc.callbacks", "Collections of generation 1 (CGC); not concurrent here."),
    ("sun.gc.collector.2.time", "counter", TICKS, "collection", "", "gc.callbacks", "Time in them (CGCT)."),
    ("sun.gc.cause", "text", STRING, "collection", "", "gc.callbacks", "The generation that is being collected, or No GC (GCC)."),
    ("sun.gc.lastCause", "text", STRING, "collection", "", "gc.callbacks", "The generation collected last, or No GC (LGCC)."),
    # the same and more, generation by generation
    ("python.gc.generation.0.collections", "alias", EVENTS, "=sun.gc.collector.0.invocations", "", "gc.callbacks", "Collections of generation 0."),
    ("python.gc.generation.0.time", "alias", TICKS, "=sun.gc.collector.0.time", "", "gc.callbacks", "Time in them."),
    ("python.gc.generation.0.collected", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they freed."),
    ("python.gc.generation.0.uncollectable", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they could not free."),
    ("python.gc.generation.0.count", "gauge", NONE, "visit:gc.count.0", "", "gc.get_count", "Objects made, less those freed, since the last collection."),
    ("python.gc.generation.0.threshold", "gauge", NONE, "visit:gc.threshold.0", "", "gc.get_threshold", "Above this count a collection is due; 0: never."),
    ("python.gc.generation.1.collections", "alias", EVENTS, "=sun.gc.collector.2.invocations", "", "gc.callbacks", "Collections of generation 1."),
    ("python.gc.generation.1.time", "alias", TICKS, "=sun.gc.collector.2.time", "", "gc.callbacks", "Time in them."),
    ("python.gc.generation.1.collected", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they freed."),
    ("python.gc.generation.1.uncollectable", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they could not free."),
    ("python.gc.generation.1.count", "gauge", NONE, "visit:gc.count.1", "", "gc.get_count", "Collections of generation 0 since the last one."),
    ("python.gc.generation.1.threshold", "gauge", NONE, "visit:gc.threshold.1", "", "gc.get_threshold", "Above this count a collection is due."),
    ("python.gc.generation.2.collections", "alias", EVENTS, "=sun.gc.collector.1.invocations", "", "gc.callbacks", "Collections of generation 2."),
    ("python.gc.generation.2.time", "alias", TICKS, "=sun.gc.collector.1.time", "", "gc.callbacks", "Time in them."),
    ("python.gc.generation.2.collected", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they freed."),
    ("python.gc.generation.2.uncollectable", "counter", EVENTS, "collection", "", "gc.callbacks", "Objects that they could not free."),
    ("python.gc.generation.2.count", "gauge", NONE, "visit:gc.count.2", "", "gc.get_count", "Collections of generation 1 since the last one."),
    ("python.gc.generation.2.threshold", "gauge", NONE, "visit:gc.threshold.2", "", "gc.get_threshold", "Above this count a collection is due."),
    ("python.gc.generation.2.objects", "gauge", NONE, "visit:gc.objects", "", "the collector", "Objects in it, as the last collections left them; what was freed since is still counted. 3.14.0 to 3.14.4 do not count them."),
    ("python.gc.longestPause", "gauge", TICKS, "collection", "", "gc.callbacks", "The longest collection, of any generation."),
    ("python.gc.enabled", "gauge", NONE, "visit:gc.enabled", "", "gc.isenabled", "1 while collections start by themselves."),
    ("python.gc.garbage", "gauge", NONE, "visit:gc.garbage", "", "gc.garbage", "Objects in gc.garbage."),
    # memory
    ("python.memory.small.used", "gauge", BYTES, "scan:pools.bytes", "", "pymalloc's pools", "In use by objects of at most 512 bytes."),
    ("python.memory.small.blocks", "gauge", NONE, "scan:pools.blocks", "", "pymalloc's pools", "How many such objects."),
    ("python.memory.small.arenas", "gauge", NONE, "scan:pools.arenas", "", "pymalloc's pools", "Arenas that pymalloc has from the system, of 1 MB each."),
    ("python.memory.small.capacity", "gauge", BYTES, "scan:pools.capacity", "", "pymalloc's pools", "Their size."),
    ("python.memory.malloc.used", "gauge", BYTES, "scan:malloc.used", "", "mallinfo2", "In use of what malloc gave: larger objects, and all that is not Python's."),
    ("python.memory.malloc.capacity", "gauge", BYTES, "scan:malloc.capacity", "", "mallinfo2", "What malloc has from the system."),
    ("python.memory.malloc.mapped", "gauge", BYTES, "scan:malloc.mapped", "", "mallinfo2", "Of that, in mappings of their own."),
    ("python.memory.resident", "gauge", BYTES, "sample:memory.resident", "", "/proc/self/statm", "In memory now (RSS)."),
    ("python.memory.peak", "gauge", BYTES, "scan:memory.peak", "", "/proc/self/status", "The most that ever was."),
    ("python.memory.virtual", "gauge", BYTES, "sample:memory.virtual", "", "/proc/self/statm", "Address space."),
    ("python.memory.traced", "gauge", BYTES, "visit:traced", "", "tracemalloc", "What tracemalloc counts; 0 while it is off."),
    ("python.memory.tracedPeak", "gauge", BYTES, "visit:traced.peak", "", "tracemalloc", "The most it counted."),
    # the same where jstat looks for it: eden and old space
    ("sun.gc.generation.0.space.0.used", "alias", BYTES, "=python.memory.small.used", "", "pymalloc's pools", "Small objects (jstat: EU; E is its share of EC)."),
    ("sun.gc.generation.0.space.0.capacity", "alias", BYTES, "=python.memory.small.capacity", "", "pymalloc's pools", "pymalloc's arenas (EC)."),
    ("sun.gc.generation.0.capacity", "alias", BYTES, "=python.memory.small.capacity", "", "pymalloc's pools", "The same (NGC)."),
    ("sun.gc.generation.1.space.0.used", "alias", BYTES, "=python.memory.malloc.used", "", "mallinfo2", "The rest of the heap (OU; O is its share of OC)."),
    ("sun.gc.generation.1.space.0.capacity", "alias", BYTES, "=python.memory.malloc.capacity", "", "mallinfo2", "What malloc has from the system (OC)."),
    ("sun.gc.generation.1.capacity", "alias", BYTES, "=python.memory.malloc.capacity", "", "mallinfo2", "The same (OGC)."),
    # threads
    ("python.threads.live", "gauge", NONE, "visit:threads.live", "", "thread states", "Threads that run Python code, the main one and daemons included."),
    ("python.threads.daemon", "gauge", NONE, "visit:threads.daemon", "", "threading", "Daemon threads."),
    ("python.threads.peak", "gauge", NONE, "visit:threads.peak", "", "thread states", "The most that a sample saw."),
    ("python.threads.started", "counter", EVENTS, "visit:threads.started", "", "thread states", "Threads that ever ran Python code. A native thread counts each time it enters."),
    ("java.threads.live", "alias", NONE, "=python.threads.live", "", "thread states", "The same."),
    ("java.threads.daemon", "alias", NONE, "=python.threads.daemon", "", "threading", "The same."),
    ("java.threads.livePeak", "alias", NONE, "=python.threads.peak", "", "thread states", "The same."),
    ("java.threads.started", "alias", EVENTS, "=python.threads.started", "", "thread states", "The same."),
    # the GIL
    ("python.gil.enabled", "gauge", NONE, "visit:gil.enabled", "", "sys._is_gil_enabled", "0 on a free-threaded build that runs without it."),
    ("python.gil.switchInterval", "gauge", TICKS, "visit:gil.interval", "", "sys.getswitchinterval", "How long a thread may keep it while others wait."),
    ("python.gil.waits", "counter", EVENTS, "visit:gil.waits", "", "the sampler's clock", "Times that the sampler waited for half a switch interval or more."),
    ("python.gil.currentWait", "gauge", TICKS, "visit:gil.waiting", "", "the sampler's clock", "How long it has been waiting for it now, as the mirror has last seen; 0: it does not."),
    ("python.gil.waitTime", "counter", TICKS, "visit:gil.waited", "", "the sampler's clock", "Time that the sampler waited for it."),
    ("python.gil.longestWait", "gauge", TICKS, "visit:gil.longest", "", "the sampler's clock", "The longest of these waits."),
    ("python.gil.contention", "gauge", NONE, "visit:gil.contention", "", "the sampler's clock", "Percent of its time that a busy thread waits for others: an estimate, 0 with one busy thread, 50 with two."),
    # the process
    ("python.process.cpu.user", "counter", TICKS, "sample:cpu.user", "", "getrusage", "CPU time in the program."),
    ("python.process.cpu.system", "counter", TICKS, "sample:cpu.system", "", "getrusage", "CPU time in the kernel."),
    ("python.process.switches.voluntary", "counter", EVENTS, "sample:switches.voluntary", "", "getrusage", "Times that a thread waited for something."),
    ("python.process.switches.involuntary", "counter", EVENTS, "sample:switches.involuntary", "", "getrusage", "Times that a thread had to make room for another."),
    ("python.process.faults.minor", "counter", EVENTS, "sample:faults.minor", "", "getrusage", "Page faults without a disk."),
    ("python.process.faults.major", "counter", EVENTS, "sample:faults.major", "", "getrusage", "Page faults that read from a disk."),
    ("python.process.files.open", "gauge", NONE, "scan:files.open", "", "/proc/self/fd", "Open descriptors."),
    ("python.process.files.limit", "gauge", NONE, "sample:files.limit", "", "getrlimit", "How many may be open; -1: no limit."),
    # modules, where jstat -class looks for classes
    ("python.modules", "gauge", NONE, "visit:modules", "", "sys.modules", "Modules that are loaded."),
    ("java.cls.loadedClasses", "counter", EVENTS, "visit:modules.loaded", "", "sys.modules", "Modules that came, as samples saw it (jstat -class: Loaded)."),
    ("java.cls.unloadedClasses", "counter", EVENTS, "visit:modules.unloaded", "", "sys.modules", "Modules that went (Unloaded)."),
    ("python.imports.time", "counter", TICKS, "import", "", "importlib._bootstrap", "Time spent importing since vmscope started, those within an import not counted again."),
    ("sun.cls.time", "alias", TICKS, "=python.imports.time", "", "importlib._bootstrap", "The same (jstat -class: Time)."),
    ("java.cls.sharedLoadedClasses", "constant", NONE, "once", "", "vmscope", "Always 0; jstat adds it."),
    ("java.cls.sharedUnloadedClasses", "constant", NONE, "once", "", "vmscope", "Always 0; jstat adds it."),
    # vmscope
    ("vmscope.service", "constant", STRING, "once", "", "-Dvmscope.service", "The service whose totals keep what this process has counted; empty where it has no name of its own."),
    ("vmscope.version", "constant", STRING, "once", "", "vmscope", "The version of vmscope that publishes."),
    ("vmscope.implementation", "constant", STRING, "once", "", "vmscope", "c or python: which form of its native part is in use."),
    ("vmscope.implementation.reason", "constant", STRING, "once", "", "vmscope", "Why it is python where c could be in use: not built, not loadable, or VMSCOPE_NATIVE=0; else empty."),
    ("vmscope.problem", "text", STRING, "once", "", "vmscope", "What does not work in this process, as an agent that the environment names and that cannot be loaded; empty: nothing."),
    ("vmscope.process.stackStart", "gauge", NONE, "once", "", "/proc/self/stat", "Where the stack of the program begins, which exec changes: by it readers see that the process has become another program."),
    ("vmscope.process.startTicks", "gauge", TICKS, "once", "", "/proc/self/stat", "When the process started, in clock ticks since boot; on Windows in units of 100 ns since 1601."),
    ("vmscope.sampler.visits", "counter", EVENTS, "visit:visits", "", "the sampler", "Times that the sampler took the GIL."),
    ("vmscope.sampler.visitTime", "counter", TICKS, "visit:visit.time", "", "the sampler's clock", "Time that it held it."),
    ("vmscope.sampler.longestVisit", "gauge", TICKS, "visit:visit.longest", "", "the sampler's clock", "The longest of these visits."),
    ("vmscope.cpu", "counter", TICKS, "sample:own.cpu", "", "CLOCK_THREAD_CPUTIME_ID", "CPU time of vmscope's own threads."),
)
# fmt: on
