"""The JFR commands of a Python process and those of JVMs, asked the same: each reply, line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import StartJVM, StartVMScope
from tests.oracle.raw_attach import ask
from tests.support import JDK
from vmscope.flight.settings import Settings

pytestmark = pytest.mark.usefixtures("no_chunks_left")

# In this order. FOLDER is the VM's own; what JDK 17 does not know is marked by `21:`.
REQUESTS = """
21:JFR.configure stackdepth=100
JFR.configure maxchunksize=1k
JFR.configure maxchunksize=2m
JFR.configure thread_buffer_size=16k stackdepth=128
21:JFR.configure
JFR.check
JFR.check name=x
JFR.check 1
21:JFR.dump
JFR.stop name=x
21:JFR.stop 1
JFR.start
JFR.check
JFR.dump name=1 filename=FOLDER/a.jfr
JFR.start name=b duration=60s filename=FOLDER/b.jfr
JFR.start name=b
JFR.start name=1
JFR.start name=77
JFR.start name=c filename=FOLDER/c.jfr
21:JFR.start name=d filename=FOLDER/none/d.jfr
JFR.start name=e duration=5
JFR.start name=e duration=abc
JFR.start name=e duration=1x
JFR.start name=e duration=100ms
JFR.start name=e duration=-5s
JFR.start name=e delay=100ms
JFR.start name=e delay=0s
JFR.start name=e delay=1h
JFR.start name=f delay=1h duration=90s maxage=5m maxsize=10m filename=FOLDER/f.jfr
JFR.check name=f
JFR.check f
JFR.check verbose
JFR.check verbose=maybe
JFR.start name=g disk=false
21:JFR.start name=h disk=false maxage=1h
21:JFR.start name=h2 disk=false maxsize=1m
JFR.start name=i maxage=10m
JFR.start name=j maxsize=1g
JFR.start name=k maxsize=1
JFR.start name=l maxsize=abc
JFR.start name=l maxsize=-1
JFR.start name=o settings=profile
JFR.start name=p settings=none
21:JFR.start name=q settings=nosuch
21:JFR.start name=r settings=/nonexistent/a.jfc
JFR.start name=s settings=default settings=profile
21:JFR.start name=t jdk.ThreadSleep#threshold=5ms
21:JFR.start name=u jdk.NoSuch#threshold=5ms
21:JFR.start name=u2 +jdk.NoSuch#threshold=5ms
21:JFR.start name=w gc=high
21:JFR.start name=x gc=nosuch
21:JFR.start name=y nosuch=3
21:JFR.start nosuch
JFR.start name=z dumponexit=true filename=FOLDER/z-%p-%t.jfr
JFR.start name=z1 dumponexit=maybe
JFR.start name=z3 dumponexit
JFR.start name=z4 dumponexit=false filename=FOLDER/z4.jfr
21:JFR.start name=aa name=bb
JFR.start name="a b"
JFR.start name=d5 maxage=90m maxsize=1536
JFR.start name=d6 maxage=36h maxsize=2500000
JFR.start name=d7 maxage=7d maxsize=3k
JFR.check
JFR.dump name=c
JFR.dump name=b filename=FOLDER/none/x.jfr
JFR.dump name=b filename=FOLDER
JFR.dump filename=FOLDER/all.jfr
JFR.dump name=b begin=-1h filename=FOLDER/begin.jfr
JFR.dump name=b begin=abc
JFR.dump name=b end=-5x
JFR.dump name=b begin=-1m end=-1h
JFR.dump name=b begin=2020-01-01T00:00:00Z end=2021-01-01T00:00:00Z
JFR.dump name=b end=2021-01-01T00:00:00
JFR.dump name=b begin=-1m maxage=1m
JFR.dump name=b maxage=1m filename=FOLDER/age.jfr
JFR.dump name=b maxsize=1k filename=FOLDER/size.jfr
JFR.dump name=b maxsize=-1
JFR.dump name=b maxage=-1s
JFR.dump 2
JFR.dump name=f
JFR.dump name=g filename=FOLDER/g.jfr
JFR.dump name=99
JFR.dump nosuch=1
21:JFR.stop name=c
21:JFR.stop name=c
JFR.stop name=g
JFR.stop name=g filename=FOLDER/g2.jfr
JFR.stop name=i filename=FOLDER/i.jfr
JFR.stop name=f
JFR.stop name=1
JFR.check nosuch=1
JFR.check
21:JFR.configure stackdepth=100
""".split("\n")


def shown(text: str, pid: int, folder: Path) -> list[str]:
    """Without what differs from one process and moment to the next: the pid, its folder, times and sizes of files."""
    text = text.replace(str(folder), "FOLDER").replace(str(Path.cwd()), "HERE")
    text = re.sub(r"\d{4}(_\d\d){5}", "TIME", text)
    text = re.sub(rf"(?<!\d){pid}(?!\d)", "PID", text)
    text = re.sub(r"[\d.]+ [kM]B written", "SIZE written", text)
    return text.strip("\n").split("\n")


@pytest.mark.parametrize("version", [17, 21, 25])
def test_replies(version: int, start_jvm: StartJVM, start_vmscope: StartVMScope, tmp_path: Path) -> None:
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}: run make jdks")
    jvm, child = start_jvm("-Xmx64m", "-XX:+UseSerialGC", jdk=jdk), start_vmscope()
    different = []
    for line in filter(None, REQUESTS):
        request, newer = line.removeprefix("21:"), line.startswith("21:")
        if newer and version < 21:
            continue
        replies = []
        for pid in (jvm.pid, child.pid):
            folder = tmp_path / str(pid)
            folder.mkdir(exist_ok=True)
            status, body = ask(pid, "jcmd", request.replace("FOLDER", str(folder)))
            replies.append((status, shown(body, pid, folder)))
        if replies[0] != replies[1]:
            different.append((request, *replies))
    assert not different, "\n".join(map(str, different))
    for name in ("a.jfr", "c.jfr", "all.jfr", "i.jfr", "g.jfr"):
        run = jdk.run("jfr", "summary", str(tmp_path / str(child.pid) / name))
        assert run.returncode == 0, run.stderr
        assert "jdk.ExecutionSample" in run.stdout


@pytest.mark.parametrize("name", ["default", "profile"])
@pytest.mark.parametrize("version", [17, 21, 25])
def test_settings_files_of_the_jdk(version: int, name: str) -> None:
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}: run make jdks")
    path = Path(jdk.bin).parent / "lib" / "jfr" / f"{name}.jfc"
    theirs, mine = Settings([str(path)]), Settings([name])
    for event in ("jdk.ExecutionSample", "jdk.ThreadSleep", "jdk.JavaMonitorEnter", "jdk.CPULoad", "jdk.ThreadStart"):
        assert theirs.of(event) == mine.of(event), event
    assert Settings([str(path)], [("method-profiling", "max")]).of("jdk.ExecutionSample").period == 1_000_000
    assert not Settings([str(path)], [("gc", "off")]).of("jdk.GarbageCollection").enabled
    assert theirs.of("vmscope.WaitSample").enabled


@pytest.mark.parametrize("version", [17, 21, 25])
def test_a_dump_is_read_whole(version: int, start_vmscope: StartVMScope, tmp_path: Path) -> None:
    jdk = JDK.find(version)
    if jdk is None:
        pytest.skip(f"no JDK {version}: run make jdks")
    child = start_vmscope("-XX:StartFlightRecording:settings=profile,exceptions=all,name=a")
    for name in ("one", "two"):
        assert "Dumped" in ask(child.pid, "jcmd", f"JFR.dump name=a filename={tmp_path}/{name}.jfr")[1]
    path = str(tmp_path / "two.jfr")
    printed = jdk.run("jfr", "print", "--json", path)
    assert printed.returncode == 0, printed.stderr
    found = json.loads(printed.stdout)["recording"]["events"]
    active = [each["values"] for each in found if each["type"] == "jdk.ActiveRecording"]
    assert {(each["id"], each["name"], each["disk"]) for each in active} == {(1, "a", True)}
    assert len([each for each in found if each["type"] == "jdk.JVMInformation"]) == 2, "one a chunk"
    settings = {
        (each["values"]["name"], each["values"]["value"]) for each in found if each["type"] == "jdk.ActiveSetting"
    }
    assert {("period", "10 ms"), ("threshold", "10 ms"), ("enabled", "true")} <= settings
    if version >= 21:
        scrubbed = jdk.run(
            "jfr", "scrub", "--exclude-events", "InitialEnvironmentVariable", path, str(tmp_path / "scrubbed.jfr")
        )
        assert scrubbed.returncode == 0, scrubbed.stderr
        views = jdk.run("jfr", "view", "all-views", path)
        assert (views.returncode, "error" in views.stderr.lower()) == (0, False)
