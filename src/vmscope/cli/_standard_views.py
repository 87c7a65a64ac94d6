"""The standard statistics views, as data: JDK 17's columns, and which of them each `jstat` option shows.

generation.0 is the young one: space.0 eden, space.1 and space.2 the survivors; generation.1.space.0 is the old
space. Collectors 0, 1 and 2 are young, full and concurrent; times are ticks of sun.os.hrt.frequency.
"""

from __future__ import annotations

from vmscope.cli._views import View, ViewColumn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.cli._views import Expression

KILO = 1024.0

FREQUENCY = "sun.os.hrt.frequency"
TICKS = "sun.os.hrt.ticks"

YOUNG, OLD = "sun.gc.generation.0", "sun.gc.generation.1"
EDEN, SURVIVOR_0, SURVIVOR_1 = YOUNG + ".space.0", YOUNG + ".space.1", YOUNG + ".space.2"
OLD_SPACE = OLD + ".space.0"
METASPACE, CLASS_SPACE = "sun.gc.metaspace", "sun.gc.compressedclassspace"
MINOR, FULL, CONCURRENT = "sun.gc.collector.0", "sun.gc.collector.1", "sun.gc.collector.2"
GC_TIME = ("+", ("+", MINOR + ".time", FULL + ".time"), CONCURRENT + ".time")

# What `jstat -options` lists; each names its columns. `Header:note` tells columns of one header apart.
OPTIONS = {
    "class": "Loaded Bytes Unloaded Bytes:unloaded Time:class",
    "compiler": "Compiled Failed Invalid Time:compiler FailedType FailedMethod",
    "gc": "S0C S1C S0U S1U EC EU OC OU MC MU CCSC CCSU YGC YGCT FGC FGCT CGC CGCT GCT",
    "gccapacity": "NGCMN NGCMX NGC S0C S1C:left EC OGCMN OGCMX OGC OC MCMN MCMX MC CCSMN CCSMX CCSC YGC FGC CGC",
    "gccause": "S0 S1 E O M CCS YGC YGCT FGC FGCT CGC CGCT GCT LGCC GCC",
    "gcmetacapacity": "MCMN MCMX MC CCSMN CCSMX CCSC YGC FGC FGCT CGC CGCT GCT",
    "gcnew": "S0C S1C S0U S1U TT MTT DSS EC EU YGC YGCT",
    "gcnewcapacity": "NGCMN NGCMX NGC S0CMX S0C S1CMX S1C ECMX EC YGC FGC CGC",
    "gcold": "MC MU CCSC CCSU OC OU YGC FGC FGCT CGC CGCT GCT",
    "gcoldcapacity": "OGCMN OGCMX OGC OC YGC FGC FGCT CGC CGCT GCT",
    "gcutil": "S0 S1 E O M CCS YGC YGCT FGC FGCT CGC CGCT GCT",
    "printcompilation": "Compiled Size Type Method",
}
# Where unsupported ones are asked for (jstat.showUnsupported).
UNSUPPORTED_OPTIONS = {
    "classload": "Loaded Time:load Inited Time:init Shared Kbytes:shared LoadTime:shared SysClass Kbytes:system "
    "LoadTime:system Lookup Parse Linked Time:init Verified Time:verify AppClass Kbytes:application AppCL "
    "DefineClass Time:define FindClass Time:find Delegation URLCL",
}
# Not listed: the column that `-t` puts first.
TIMESTAMP = "timestamp"


def standard_view(option: str, *, unsupported: bool = False) -> View | None:
    """The view of this name, if there is one."""
    names = TIMESTAMP if option == TIMESTAMP else OPTIONS.get(option)
    if names is None and unsupported:
        names = UNSUPPORTED_OPTIONS.get(option)
    if names is None:
        return None
    return View(option, [_column(name) for name in names.split()])


def uptime_column() -> ViewColumn:
    """For VMs without a tick counter (JDK 25): from `jstat.timestamp`, the time now in ms since the epoch."""
    data = ("/", ("-", "jstat.timestamp", "sun.rt.createVmBeginTime"), 1000.0)
    return ViewColumn("^Timestamp", data, "0.0", width=15, align="right")


def _size(header: str, counter: Expression, width: int) -> tuple[str, Expression, str, float, int]:
    return (header, counter, "0.0", KILO, width)


def _count(header: str, counter: Expression, width: int) -> tuple[str, Expression, str, float, int]:
    return (header, counter, "0", 1.0, width)


def _seconds(
    header: str, ticks: Expression, width: int, pattern: str = "0.000", frequency: Expression = FREQUENCY
) -> tuple[str, Expression, str, float, int]:
    return (header, ("/", ticks, frequency), pattern, 1.0, width)


def _percent(header: str, space: str) -> tuple[str, Expression, str, float, int]:
    capacity = space + ".capacity"
    free = ("/", ("-", capacity, space + ".used"), capacity)
    return (header, ("*", ("-", 1.0, free), 100.0), "0.00", 1.0, 6)


def _column(name: str) -> ViewColumn:
    if name in _TEXTS:
        header, counter, width = _TEXTS[name]
        return ViewColumn(header, counter, width=width, align="left")
    header, data, pattern, scale, width = _COLUMNS[name]
    return ViewColumn(header, data, pattern, scale=scale, width=width, align="right", required=name == "GCT")


_TEXTS = {
    "FailedMethod": ("^FailedMethod", "sun.ci.lastFailedMethod", 1),
    "GCC": ("^GCC", "sun.gc.cause", 20),
    "LGCC": ("^LGCC", "sun.gc.lastCause", 20),
    "Method": ("^Method", "sun.ci.lastMethod", 1),
}

_COLUMNS = {
    "timestamp": _seconds("^Timestamp", TICKS, 15, "0.0"),
    # class loading
    "Loaded": _count("^Loaded^", ("+", "java.cls.loadedClasses", "java.cls.sharedLoadedClasses"), 5),
    "Bytes": _size("^Bytes^", ("+", "sun.cls.loadedBytes", "sun.cls.sharedLoadedBytes"), 7),
    "Unloaded": _count("^Unloaded^", ("+", "java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses"), 5),
    "Bytes:unloaded": _size("^Bytes^", ("+", "sun.cls.unloadedBytes", "sun.cls.sharedUnloadedBytes"), 7),
    "Time:class": _seconds("^Time^", "sun.cls.time", 10, "0.00"),
    # the compiler
    "Compiled": _count("^Compiled^", "sun.ci.totalCompiles", 6),
    "Failed": _count("^Failed^", "sun.ci.totalBailouts", 6),
    "Invalid": _count("^Invalid^", "sun.ci.totalInvalidates", 6),
    "Time:compiler": _seconds("^Time^", "java.ci.totalTime", 8, "0.00"),
    "FailedType": _count("^FailedType^", "sun.ci.lastFailedType", 4),
    "Size": _count("^Size^", "sun.ci.lastSize", 6),
    "Type": _count("^Type^", "sun.ci.lastType", 4),
    # capacities: minimum, maximum, current; and what is used
    "NGCMN": _size("^NGCMN^", YOUNG + ".minCapacity", 12),
    "NGCMX": _size("^NGCMX^", YOUNG + ".maxCapacity", 12),
    "NGC": _size("^NGC^", YOUNG + ".capacity", 12),
    "S0CMX": _size("^S0CMX^", SURVIVOR_0 + ".maxCapacity", 11),
    "S0C": _size("^S0C^", SURVIVOR_0 + ".capacity", 11),
    "S0U": _size("^S0U^", SURVIVOR_0 + ".used", 11),
    "S1CMX": _size("^S1CMX^", SURVIVOR_1 + ".maxCapacity", 11),
    "S1C": _size("^S1C^", SURVIVOR_1 + ".capacity", 11),
    "S1C:left": _size("^S1C", SURVIVOR_1 + ".capacity", 11),
    "S1U": _size("^S1U^", SURVIVOR_1 + ".used", 11),
    "ECMX": _size("^ECMX^", EDEN + ".maxCapacity", 12),
    "EC": _size("^EC^", EDEN + ".capacity", 12),
    "EU": _size("^EU^", EDEN + ".used", 12),
    "OGCMN": _size("^OGCMN^", OLD + ".minCapacity", 12),
    "OGCMX": _size("^OGCMX^", OLD + ".maxCapacity", 12),
    "OGC": _size("^OGC^", OLD + ".capacity", 12),
    "OC": _size("^OC^", OLD_SPACE + ".capacity", 12),
    "OU": _size("^OU^", OLD_SPACE + ".used", 12),
    "MCMN": _size("^MCMN^", METASPACE + ".minCapacity", 10),
    "MCMX": _size("^MCMX^", METASPACE + ".maxCapacity", 10),
    "MC": _size("^MC^", METASPACE + ".capacity", 10),
    "MU": _size("^MU^", METASPACE + ".used", 10),
    "CCSMN": _size("^CCSMN^", CLASS_SPACE + ".minCapacity", 9),
    "CCSMX": _size("^CCSMX^", CLASS_SPACE + ".maxCapacity", 9),
    "CCSC": _size("^CCSC^", CLASS_SPACE + ".capacity", 9),
    "CCSU": _size("^CCSU^", CLASS_SPACE + ".used", 9),
    # how full
    "S0": _percent("^S0^", SURVIVOR_0),
    "S1": _percent("^S1^", SURVIVOR_1),
    "E": _percent("^E^", EDEN),
    "O": _percent("^O^", OLD_SPACE),
    "M": _percent("^M^", METASPACE),
    "CCS": _percent("^CCS^", CLASS_SPACE),
    # tenuring
    "TT": _count("^TT^", "sun.gc.policy.tenuringThreshold", 2),
    "MTT": _count("^MTT^", "sun.gc.policy.maxTenuringThreshold", 2),
    "DSS": _size("^DSS^", "sun.gc.policy.desiredSurvivorSize", 11),
    # collections and their times
    "YGC": _count("^YGC^", MINOR + ".invocations", 6),
    "YGCT": _seconds("^YGCT^", MINOR + ".time", 9),
    "FGC": _count("^FGC^", FULL + ".invocations", 5),
    "FGCT": _seconds("^FGCT^", FULL + ".time", 9),
    "CGC": _count("^CGC^", CONCURRENT + ".invocations", 5),
    "CGCT": _seconds("^CGCT^", CONCURRENT + ".time", 9),
    "GCT": _seconds("^GCT^", GC_TIME, 9),
    # class loading in detail
    "Time:load": _seconds("Time^", "sun.cls.time", 10),
    "Inited": _count("^Inited^", "sun.cls.initializedClasses", 5),
    "Time:init": _seconds("Time^", "sun.cls.classInitTime.self", 10),
    "Shared": _count("Shared^", "java.cls.sharedLoadedClasses", 5),
    "Kbytes:shared": _size("Kbytes^", "sun.cls.sharedLoadedBytes", 7),
    "LoadTime:shared": _seconds("LoadTime^", "sun.cls.sharedClassLoadTime", 10),
    "SysClass": _count("^SysClass^", "java.cls.loadedClasses", 5),
    "Kbytes:system": _size("Kbytes^", "sun.cls.sysClassBytes", 7),
    "LoadTime:system": _seconds("LoadTime^", "sun.cls.sysClassLoadTime", 10),
    "Lookup": _seconds("Lookup^", "sun.cls.lookupSysClassTime", 10),
    "Parse": _seconds("Parse^", "sun.cls.parseClassTime.self", 10),
    "Linked": _count("^Linked^", "sun.cls.linkedClasses", 5),
    "Verified": _count("^Verified^", "sun.cls.verifiedClasses", 5),
    "Time:verify": _seconds("Time^", "sun.cls.classVerifyTime.self", 10),
    "AppClass": _count("AppClass^", "sun.cls.appClassLoadCount", 5),
    "Kbytes:application": _size("Kbytes^", "sun.cls.appClassBytes", 7),
    "AppCL": _seconds("AppCL^", "sun.cls.appClassLoadTime", 10),
    "DefineClass": _count("^DefineClass^", "sun.cls.defineAppClasses", 5),
    "Time:define": _seconds("Time^", "sun.cls.defineAppClassTime.self", 10),
    "FindClass": _count("^FindClass^", "sun.classloader.findClasses", 5),
    "Time:find": _seconds("Time^", "sun.classloader.findClassTime", 10, frequency=1e9),
    "Delegation": _seconds("Delegation^", "sun.classloader.parentDelegationTime", 10, frequency=1e9),
    "URLCL": _seconds("URLCL Read^", "sun.urlClassLoader.readClassBytesTime", 10, frequency=1e9),
}
