"""Runs prometheus_client's own tests with vmscope's drop-in: `python scripts/prometheus_suite.py [VERSION ...]`.

The source distributions come from the package index, by pip, into build/prometheus. A test that fails without the
drop-in too says nothing of it. The exit status is 0 where no other fails, 1 where one does, 3 where pip gets nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "prometheus"
VERSIONS = ("0.26.0", "0.25.0", "0.24.1", "0.23.1")
NEEDED = ("pytest", "pytest-benchmark", "pytest-timeout", "asgiref")
UNAVAILABLE = 3
# It expects SSLError, and races with the server: under TLS 1.3 the client has sent its request when its certificate is
# refused, and may meet the reset of the connection first, an URLError.
RACES = "tests/test_exposition.py::TestWsgiTLS::test_mtls_untrusted_client_cert_raises"


def environment() -> Path:
    """The interpreter of an environment with what the tests need."""
    python = BUILD / f"env-{sys.implementation.cache_tag}" / "bin" / "python"
    if not python.exists():
        base = getattr(sys, "_base_executable", sys.executable)
        subprocess.run([base, "-m", "venv", "--clear", str(python.parent.parent)], check=True)
    if subprocess.run([python, "-c", "import pytest, pytest_benchmark, asgiref"], capture_output=True).returncode:
        pip(python, "install", *NEEDED)
    return python


def pip(python: Path, *arguments: str) -> None:
    done = subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])
    if done.returncode:
        print(f"pip {arguments[0]} failed: is there a network?", file=sys.stderr)
        raise SystemExit(UNAVAILABLE)


def source(python: Path, version: str) -> Path:
    """The unpacked source distribution."""
    folder = BUILD / f"prometheus_client-{version}"
    if not (folder / "tests").exists():
        wanted = f"prometheus_client=={version}"
        pip(python, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(BUILD), wanted)
        with tarfile.open(next(BUILD.glob(f"prometheus_client-{version}.tar.gz"))) as archive:
            archive.extractall(BUILD, filter="data")
    return folder


def failures(python: Path, folder: Path, *plugins: str) -> tuple[set[str], str]:
    """What fails, and pytest's last line."""
    options = (
        "-c pyproject.toml -q -rfE --timeout=120 -p no:cacheprovider --benchmark-disable".split()
    )  # not our settings
    path = os.pathsep.join(map(str, (folder, ROOT / "src", ROOT / "scripts")))
    done = subprocess.run(
        [str(python), "-m", "pytest", *options, *plugins, f"--deselect={RACES}", "tests"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""},
        capture_output=True,
        text=True,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode not in (0, 1):
        print(done.stdout, done.stderr)
        return {"collection"}, last
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)), last


def main(versions: list[str]) -> int:
    BUILD.mkdir(parents=True, exist_ok=True)
    python = environment()
    status = 0
    for version in versions or VERSIONS:
        folder = source(python, version)
        found, last = failures(python, folder, "-p", "prometheus_dropin")
        ours = found and found - failures(python, folder)[0]
        print(f"prometheus_client {version}: {last}", *sorted(ours), sep="\n  ", flush=True)
        status = 1 if ours else status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
