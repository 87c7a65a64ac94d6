"""Heap dumps that the JDK's tools asked for, read by VisualVM's own library: an independent reader of the format."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests import programs
from tests.conftest import StartVMScope
from tests.hprof import Dump
from tests.support import JDK

SOURCE = Path(__file__).with_name("HeapReader.java")
JAR = "org-graalvm-visualvm-lib-jfluid-heap.jar"
FOLDERS = (SOURCE.parents[2] / "build" / "visualvm", Path("/usr/share/visualvm/visualvm/modules"))

PROGRAM = programs.source("visualvm/program")


@pytest.fixture(scope="session")
def reader(jdk: JDK, javac: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that reads a dump."""
    jars = [folder / JAR for folder in FOLDERS if (folder / JAR).exists()]
    if not jars:
        pytest.skip("no VisualVM: run scripts/visualvm")
    classes = tmp_path_factory.mktemp("classes")
    subprocess.run([javac, "-cp", jars[0], "-d", classes, SOURCE], check=True, timeout=60)
    return [jdk.tool("java"), "-Xmx1g", "-cp", f"{classes}:{jars[0]}", "HeapReader"]


def read(reader: list[str], path: Path, *classes: str) -> dict[str, list[list[str]]]:
    run = subprocess.run([*reader, path, *classes], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, list[list[str]]] = defaultdict(list)
    for line in run.stdout.splitlines():
        kind, *words = line.split("\t")
        found[kind].append(words)
    return found


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
def test_visualvm_reads_what_jmap_asked_for(
    jdk: JDK, reader: list[str], start_vmscope: StartVMScope, tmp_path: Path, compressed: bool
) -> None:
    if not jdk.has("jmap"):
        pytest.skip(f"no jmap in {jdk.bin}")
    child = start_vmscope(code=PROGRAM)
    path = tmp_path / "a.hprof"
    if compressed:
        run = jdk.run("jcmd", str(child.pid), "GC.heap_dump", "-gz=1", f"{path}.gz")
        assert run.returncode == 0, run.stdout + run.stderr
        subprocess.run(["gzip", "-d", f"{path}.gz"], check=True, timeout=60)
    else:
        run = jdk.run("jmap", f"-dump:live,format=b,file={path}", str(child.pid))
    assert "Heap dump file created [" in run.stdout, run.stdout + run.stderr
    dump = Dump(path.read_bytes())
    found = read(reader, path, "__main__.Order", "__main__.Rush")

    assert found["dangling"] == []
    assert found["instances"] == [[str(len(dump.instances) + len(dump.arrays))]]
    classes = {name: (base, int(count)) for name, base, count in found["class"]}
    assert classes["__main__.Line"] == ("java.lang.Object", 350)
    assert classes["__main__.Order"] == ("java.lang.Object", 30)
    assert classes["__main__.Rush"] == ("__main__.Order", 5)
    ours = Counter(dump.classes[kind].name for kind, _, _ in dump.instances.values())
    assert {name: count for name, (_, count) in classes.items() if count and "[]" not in name} == dict(ours)
    roots = {kind: int(count) for kind, count in found["root"]}
    kinds = Counter(kind for kind, _, _ in dump.roots)
    # The others are JVM's kinds by other words.
    assert {kind: kinds[kind] for kind in ("JNI global", "Java frame", "sticky class")} == {
        kind: roots[kind] for kind in ("JNI global", "Java frame", "sticky class")
    }
    texts = {int(id): bytes.fromhex(units).decode("utf-16-be", "surrogatepass") for id, units in found["text"]}
    assert texts == {each: dump.text(each) for each in texts}
    assert {"order \u20ac 7", "line 3"} <= set(texts.values())
    assert len(texts) == ours["java.lang.String"]
    fields = {(id, name): value for id, name, value in found["field"]}
    shown = {id for id, _ in fields}
    assert len(shown) == 35
    for each in shown:
        name = fields[each, "name"]
        assert dump.text(int(name)).startswith("order \u20ac ")
    retained = {id: int(size) for id, size in found["retained"]}
    assert [each for each in shown if retained[each] <= 10 * 60] == []  # with ten lines each
    assert {answer for _, answer in found["reachable"]} == {"true"}
