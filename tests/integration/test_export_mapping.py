"""Mapping files, and jmx_exporter's configurations made into some: on a real JVM and a real Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartJVM, StartVMScope
from tests.integration.test_export import export, one, samples

COMMAND = [sys.executable, "-m", "vmscope", "export"]

MAPPING = r"""
standard = false
lowercaseOutputName = true

[[rules]]
pattern = '^sun\.gc\.collector\.(\d+)\.time$'
name = "GC_time_milliseconds_total"
valueFactor = 1000
labels = { number = "$1" }
help = "Time of collector $1."

[[rules]]
pattern = '^sun\.gc\.collector\.0\.'
name = "young"
value = "7"
type = "GAUGE"

[[rules]]
pattern = '^java\.threads\.(live|daemon)$'
name = "threads"
labels = { kind = "$1" }
type = "UNTYPED"

[[rules]]
pattern = 'shop\.delay'
name = "latency"

[[rules]]
pattern = 'shop\.'
"""

JMX = r"""
# as users have it
startDelaySeconds: 0
lowercaseOutputName: true
rules:
  - pattern: 'java.lang<type=Threading><>(ThreadCount|DaemonThreadCount): '
    name: jvm_thread_$1
    help: "Threads: \"$1\""
    type: GAUGE
    labels:
      kind: "$1"
  - pattern: "java.lang<type=MemoryPool, name=(.+)><Usage>(used|max)"
    name: pool_$2
    labels: {}
  - pattern: java.lang<type=GarbageCollector, name=(.+)><>CollectionCount
    name: gc
  - pattern: Catalina<type=GlobalRequestProcessor>(.*)
    name: tomcat
"""


def test_rules_choose_and_name_counters(tmp_path: Path, start_jvm: StartJVM, start_vmscope: StartVMScope) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(MAPPING)
    service = f"mapped{os.getpid()}"
    jvm = start_jvm(f"-Dvmscope.service={service}", "-XX:+UseSerialGC")
    code = "vmscope.counter('shop.sold').labels(what='tea'); vmscope.histogram('shop.delay', bounds=[1]).observe(2)"
    start_vmscope(f"-Dvmscope.service={service}", code=f"{code}; vmscope.counter('bank.sold').inc()")
    assert jvm.pid
    text = export(f"--vms={service}", f"--mapping={mapping}")
    found = samples(text)
    labels = rf'service="{service}",user="\w+"'
    names = {name.partition("{")[0] for name in found if not name.startswith("vmscope_")}
    assert names == {
        "gc_time_milliseconds_total", "young", "threads", "latency_bucket", "latency_count", "latency_sum",
        "shop_sold_total", "python_info", "jvm_runtime_info",
    }  # fmt: skip
    assert one(found, rf"young{{{labels}}}") == 7
    assert one(found, rf'threads{{{labels},kind="live"}}') > 1
    assert one(found, rf'gc_time_milliseconds_total{{{labels},number="1"}}') >= 0
    assert "# HELP gc_time_milliseconds_total Time of collector " in text
    assert "# TYPE threads untyped" in text


def test_jmx_exporters_rules_are_translated(tmp_path: Path, start_jvm: StartJVM) -> None:
    config = tmp_path / "jmx.yaml"
    config.write_text(JMX)
    ended = subprocess.run([*COMMAND, f"--import-jmx={config}"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0
    left = ended.stderr.splitlines()
    assert [line.split(",")[0] for line in left] == ["vmscope: rule 2", "vmscope: rule 3", "vmscope: rule 4"]
    assert "jvm_gc_collection_seconds_count" in left[1]
    assert left[2].endswith("no counter of a JVM says this")
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(ended.stdout)
    service = f"jmx{os.getpid()}"
    start_jvm(f"-Dvmscope.service={service}")
    found = samples(export(f"--vms={service}", f"--mapping={mapping}"))
    labels = rf'service="{service}",user="\w+"'
    assert one(found, rf'jvm_thread_threadcount{{{labels},kind="ThreadCount"}}') > 3
    assert one(found, rf"pool_used{{{labels}}}") >= 0


@pytest.mark.parametrize(
    "text",
    [
        "rules = 1",
        "[[rules]]\npattern = '('",
        "[[rules]]\npatern = 'x'",
        "[[rules]]\nlabels = { a = 'b' }",
        "[[rules]]\nname = 'x'\ntype = 'SUMMARY'",
        "[[rules]]\nvalueFactor = 'many'",
        "colour = 'red'",
        "= 1",
    ],
)
def test_a_mapping_that_is_not_understood_is_an_error(tmp_path: Path, text: str) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(text)
    command = [*COMMAND, "--once", f"--mapping={mapping}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended
