"""The standard counters: one table, from which registration, docs/counters.md and the tests come.

A row is (name, kind, units, meaning). Kinds: constant and text as in kinds.py; counter; gauge; clock is
the counter that the mirror moves. Names under `java.` and `sun.` are those that the JDK's tools look for.
"""

from __future__ import annotations

from vmscope.counters.kinds import EVENTS, HERTZ, NONE, STRING, TICKS

CATALOGUE: tuple[tuple[str, str, int, str], ...] = (
    # what jps, jcmd and VisualVM show
    ("sun.rt.javaCommand", "constant", STRING, "The program and its arguments; a script without its .py."),
    ("java.rt.vmArgs", "constant", STRING, "The VM options as given."),
    ("java.rt.vmFlags", "constant", STRING, "Options from a flags file; always empty."),
    ("sun.rt.jvmCapabilities", "text", STRING, "One character a capability; the first is 1 where attach works."),
    ("sun.rt.jvmVersion", "constant", NONE, "sys.hexversion."),
    ("sun.rt.internalVersion", "constant", STRING, "sys.version, on one line."),
    ("java.property.java.version", "constant", STRING, "The Python version."),
    ("java.property.java.home", "constant", STRING, "sys.prefix."),
    ("java.property.java.class.path", "constant", STRING, "sys.path, as far as it fits."),
    ("java.property.java.vm.name", "constant", STRING, "The implementation: CPython."),
    ("java.property.java.vm.version", "constant", STRING, "The Python version with its release level."),
    ("java.property.java.vm.vendor", "constant", STRING, "Who makes the interpreter."),
    ("java.property.java.vm.info", "constant", STRING, "Build and compiler."),
    ("java.property.java.vm.specification.name", "constant", STRING, "Python Language Reference."),
    ("java.property.java.vm.specification.vendor", "constant", STRING, "Who specifies the language."),
    ("java.property.java.vm.specification.version", "constant", STRING, "The language version, such as 3.12."),
    # time
    ("sun.os.hrt.frequency", "constant", HERTZ, "Ticks in a second: 10^9."),
    ("sun.os.hrt.ticks", "clock", TICKS, "Time since the region was made."),
    ("sun.rt.createVmBeginTime", "gauge", NONE, "When the process started, ms since the epoch."),
    ("sun.rt.createVmEndTime", "gauge", NONE, "When vmscope had started, ms since the epoch."),
    ("sun.rt.vmInitDoneTime", "gauge", NONE, "When the region was there, ms since the epoch."),
    # CPython's collector, under the names that jstat shows: young, full and concurrent
    ("sun.gc.collector.0.name", "constant", STRING, "generation 0"),
    ("sun.gc.collector.0.invocations", "counter", EVENTS, "Collections of generation 0 (jstat: YGC)."),
    ("sun.gc.collector.0.time", "counter", TICKS, "Time in them (YGCT)."),
    ("sun.gc.collector.1.name", "constant", STRING, "generation 2"),
    ("sun.gc.collector.1.invocations", "counter", EVENTS, "Collections of generation 2, full ones (FGC)."),
    ("sun.gc.collector.1.time", "counter", TICKS, "Time in them (FGCT)."),
    ("sun.gc.collector.2.name", "constant", STRING, "generation 1"),
    ("sun.gc.collector.2.invocations", "counter", EVENTS, "Collections of generation 1 (CGC); not concurrent here."),
    ("sun.gc.collector.2.time", "counter", TICKS, "Time in them (CGCT)."),
    ("python.gc.generation.0.collected", "counter", EVENTS, "Objects that generation 0 collections freed."),
    ("python.gc.generation.0.uncollectable", "counter", EVENTS, "Objects that they could not free."),
    ("python.gc.generation.1.collected", "counter", EVENTS, "Objects that generation 1 collections freed."),
    ("python.gc.generation.1.uncollectable", "counter", EVENTS, "Objects that they could not free."),
    ("python.gc.generation.2.collected", "counter", EVENTS, "Objects that generation 2 collections freed."),
    ("python.gc.generation.2.uncollectable", "counter", EVENTS, "Objects that they could not free."),
    # vmscope
    ("vmscope.version", "constant", STRING, "The version of vmscope that publishes."),
    ("vmscope.implementation", "constant", STRING, "c or python: which form of its native part is in use."),
    ("vmscope.process.startTicks", "gauge", TICKS, "When the process started, in clock ticks since boot."),
)
