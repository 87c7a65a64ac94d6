"""jmx_exporter's configuration as a mapping file: what of it has a counterpart among a JVM's counters."""

from __future__ import annotations

import re

from vmscope.export import yaml

# What jmx_exporter matches its patterns with, the counter that says the same, and by what its value is multiplied.
_BEANS: tuple[tuple[str, str, float], ...] = (
    ("java.lang<type=Threading><>ThreadCount", "java.threads.live", 1),
    ("java.lang<type=Threading><>DaemonThreadCount", "java.threads.daemon", 1),
    ("java.lang<type=Threading><>PeakThreadCount", "java.threads.livePeak", 1),
    ("java.lang<type=Threading><>TotalStartedThreadCount", "java.threads.started", 1),
    ("java.lang<type=Compilation><>TotalCompilationTime", "java.ci.totalTime", 1000),
    ("java.lang<type=Runtime><>StartTime", "sun.rt.createVmBeginTime", 1),
    ("java.lang<type=Runtime><>Uptime", "sun.os.hrt.ticks", 1000),
    *(
        (f"java.lang<type=MemoryPool, name={pool}><Usage>{use}", f"sun.gc.{counter}.{name}", 1)
        for pool, counter in (("Metaspace", "metaspace"), ("Compressed Class Space", "compressedclassspace"))
        for use, name in (("used", "used"), ("committed", "capacity"), ("max", "maxCapacity"))
    ),
)
# What the standard metrics have, because it depends on the collector or on several counters.
_STANDARD = (
    ("java.lang<type=GarbageCollector, name=Copy><>CollectionCount", "jvm_gc_collection_seconds_count"),
    ("java.lang<type=GarbageCollector, name=Copy><>CollectionTime", "jvm_gc_collection_seconds_sum"),
    ("java.lang<type=Memory><HeapMemoryUsage>used", "jvm_memory_used_bytes"),
    ("java.lang<type=Memory><HeapMemoryUsage>committed", "jvm_memory_committed_bytes"),
    ("java.lang<type=Memory><HeapMemoryUsage>max", "jvm_memory_max_bytes"),
    ("java.lang<type=Memory><NonHeapMemoryUsage>used", "jvm_memory_used_bytes"),
    ("java.lang<type=MemoryPool, name=Eden Space><Usage>used", "jvm_memory_pool_used_bytes"),
    ("java.lang<type=MemoryPool, name=G1 Eden Space><Usage>used", "jvm_memory_pool_used_bytes"),
    ("java.lang<type=ClassLoading><>LoadedClassCount", "jvm_classes_currently_loaded"),
    ("java.lang<type=ClassLoading><>TotalLoadedClassCount", "jvm_classes_loaded_total"),
    ("java.lang<type=ClassLoading><>UnloadedClassCount", "jvm_classes_unloaded_total"),
    ("java.lang<type=OperatingSystem><>OpenFileDescriptorCount", "process_open_fds"),
    ("java.lang<type=OperatingSystem><>ProcessCpuTime", "process_cpu_seconds_total"),
)
_COPIED = ("standard", "lowercaseOutputName", "lowercaseOutputLabelNames")
_IGNORED = ("rules", "startDelaySeconds", "ssl", "hostPort", "jmxUrl", "username", "password")
_GROUP = re.compile(r"\$(\d+)")


def translate(path: str) -> tuple[str, list[str]]:
    """The mapping file, as TOML, and what could not be translated, a line each."""
    found = yaml.load(path)
    lines = [f"{key} = {found[key]}" for key in _COPIED if found.get(key) in ("true", "false")]
    left = [f"{key}: has no counterpart" for key in found if key not in (*_COPIED, *_IGNORED)]
    rules = found.get("rules")
    for number, rule in enumerate(rules if isinstance(rules, list) else (), 1):
        made, why = _rule(rule) if isinstance(rule, dict) else ([], "is no mapping")
        lines += made
        if why:
            pattern = rule.get("pattern", "") if isinstance(rule, dict) else ""
            left.append(f"rule {number}, {pattern}: {why}")
    return "\n".join(lines) + "\n", left


def _rule(rule: dict[str, yaml.Value]) -> tuple[list[str], str]:
    """The lines of a rule, one for each counter that it fits; and why there is none, or what it lacks."""
    try:
        # As jmx_exporter's: it fits anywhere in the bean's text, behind which the value may stand.
        pattern = re.compile(str(rule.get("pattern", "")).removeprefix("^").removesuffix("$"))
    except re.error as error:
        return [], f"the pattern is not understood: {error}"
    lines: list[str] = []
    for bean, counter, factor in _BEANS:
        match = pattern.search(bean) or pattern.search(f"{bean}: 0")
        if match is not None:
            lines += _lines(rule, match, counter, factor)
    named = list(dict.fromkeys(metric for bean, metric in _STANDARD if pattern.search(bean)))
    why = f"the standard metrics have it: {', '.join(named)}" if named else ""
    if not lines and not why:
        why = "no counter of a JVM says this"
    if "attrNameSnakeCase" in rule or "cache" in rule:
        why = f"{why}; " * bool(why) + "attrNameSnakeCase and cache are left out"
    return lines, why


def _lines(rule: dict[str, yaml.Value], match: re.Match[str], counter: str, factor: float) -> list[str]:
    def expanded(value: yaml.Value) -> str:
        return _quoted(_GROUP.sub(lambda group: _group(match, int(group[1])), str(value)))

    lines = ["", "[[rules]]", f"pattern = {_quoted('^' + re.escape(counter) + '$')}"]
    lines += [f"{key} = {expanded(rule[key])}" for key in ("name", "help", "value") if key in rule]
    lines.append(f"type = {_quoted(str(rule.get('type', 'UNTYPED')))}")
    try:
        factor *= float(str(rule.get("valueFactor", 1)))
    except ValueError:
        pass
    if factor != 1:
        lines.append(f"valueFactor = {factor!r}")
    labels = rule.get("labels")
    if isinstance(labels, dict) and labels:
        pairs = ", ".join(f"{expanded(key)} = {expanded(value)}" for key, value in labels.items())
        lines.append(f"labels = {{ {pairs} }}")
    return lines


def _group(match: re.Match[str], number: int) -> str:
    try:
        return match[number] or ""
    except IndexError:
        return ""


def _quoted(text: str) -> str:
    """As a string of TOML."""
    shown = "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"
        for char in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{shown}"'
