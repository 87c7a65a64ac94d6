"""What the JDK's own reader, the classes behind jps and jstat, finds in a region file.

`read_all` starts one JVM for any number of files. The reader's wait for a target that is still starting
is cut from 5 s to one poll of 20 ms, and text is decoded as UTF-8 whatever the locale: both only make
the answers quick and the same everywhere.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("Jvmstat.java")


MADE_UP = frozenset(
    "sun.perfdata." + name for name in ("majorVersion", "minorVersion", "size", "used", "overflow", "timestamp")
)


def java_text(raw: bytes) -> str:
    """The text that Java makes of UTF-8 bytes: an encoded surrogate, whole or cut, is one U+FFFD."""
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", raw).decode("utf-8", "replace")


class Entry(NamedTuple):
    """One counter. `raw` is a string's whole vector, NULs and what stands behind them included."""

    name: str
    type: str  # "J", "B"; "I" for the prologue's own 32-bit fields
    units: str
    variability: str
    vector_length: int
    supported: bool
    value: int | str
    raw: bytes


class Result(NamedTuple):
    """`state` is "readable", "unready" (not accessible), "heap" (it hangs on the JVM's heap) or "unreadable"."""

    state: str
    exception: str
    message: str
    entries: dict[str, Entry]

    @property
    def readable(self) -> bool:
        return self.state == "readable"

    @property
    def counters(self) -> dict[str, Entry]:
        """The entries without the names that the reader makes up from the prologue."""
        return {name: entry for name, entry in self.entries.items() if name not in MADE_UP}


@cache
def jdks() -> list[Path]:
    """Homes of the JDKs on this machine that have a compiler and the reader, oldest release first."""
    if sys.platform == "win32":
        return []  # the Windows JRE has no compiler; what Wine shows are those of the system around it
    found = {Path(home) for home in [*glob.glob("/usr/lib/jvm/*"), os.environ.get("JAVA_HOME", "")] if home}
    on_path = shutil.which("javac")
    if on_path:
        found.add(Path(on_path).resolve().parent.parent)
    homes = {home.resolve() for home in found if (home / "bin" / "javac").exists()}
    return sorted((home for home in homes if (home / "bin" / "jps").exists()), key=release)


@cache
def release(home: Path) -> int:
    """The feature release of a JDK: 17, 25."""
    for line in (home / "release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "JAVA_VERSION":
            return int(value.strip('"').split(".")[0])
    raise LookupError(f"{home}/release names no JAVA_VERSION")


def read_all(paths: Iterable[str | Path], jdk: Path | None = None, timeout: float = 120) -> dict[str, Result]:
    """Each path's Result, read by one JVM of `jdk` (the newest found when None)."""
    names = [os.path.abspath(path) for path in paths]
    home = jdk or jdks()[-1]
    command = [
        str(home / "bin" / "java"),
        "--add-exports=jdk.internal.jvmstat/sun.jvmstat.monitor=ALL-UNNAMED",
        "-Dsun.jvmstat.perdata.syncWaitMs=1",
        "-Dfile.encoding=UTF-8",
        "-Dsun.jnu.encoding=UTF-8",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
        "-Xmx256m",
        str(SOURCE),
    ]
    text = "".join(f"{name}\n" for name in names)
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=timeout, check=True)
    lines = done.stdout.splitlines()
    if len(lines) != len(names):
        raise RuntimeError(f"{len(lines)} answers to {len(names)} paths: {done.stderr}")
    return {name: _result(line) for name, line in zip(names, lines, strict=True)}


def _result(line: str) -> Result:
    state, exception, message, rows = json.loads(line)
    entries = [Entry._make([*row[:-1], bytes.fromhex(row[-1])]) for row in rows]
    return Result(state, exception, message, {entry.name: entry for entry in entries})
