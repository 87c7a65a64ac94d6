"""Recordings of JVMs, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flight.recordings import compile_shop, record
from tests.support import JDK


@pytest.fixture(scope="session")
def shop(javac: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the Java program's classes."""
    folder = tmp_path_factory.mktemp("shop")
    compile_shop(javac, folder)
    return folder


@pytest.fixture(scope="session")
def recording_of(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[JDK, Path]]:
    """A JDK of a version, and a recording that it has made."""
    made: dict[int, tuple[JDK, Path]] = {}

    def recording(version: int) -> tuple[JDK, Path]:
        if version not in made:
            jdk = JDK.find(version)
            if jdk is None or not jdk.has("jfr"):
                pytest.skip(f"no JDK {version} with jfr: run make jdks")
            made[version] = jdk, record(jdk, shop, tmp_path_factory.mktemp("jfr") / f"{version}.jfr")
        return made[version]

    return recording
