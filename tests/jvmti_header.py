"""What an installed JDK's jvmti.h declares, parsed where it lies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import JDK


class Header:
    """`slots`, `capabilities`, `events`, `errors` and so on, as this header has them."""

    def __init__(self, path: Path, version: int) -> None:
        self.version = version
        self._text = path.read_text(encoding="utf-8")

    def enumeration(self, prefix: str) -> dict[str, int]:
        """The constants whose names begin so, without the prefix."""
        return {name: int(number, 0) for name, number in re.findall(rf"\b{prefix}(\w+)\s+= (\w+)", self._text)}

    @property
    def capabilities(self) -> list[str]:
        """In bit order."""
        return re.findall(r"unsigned int (can_\w+) : 1;", self._text)

    @property
    def slots(self) -> list[tuple[str, list[str]] | None]:
        """Each function's name and parameter types, after the environment, without `const`; None: a reserved slot."""
        table = re.search(r"typedef struct jvmtiInterface_1_ \{(.*?)\} jvmtiInterface_1;", self._text, re.DOTALL)
        assert table, "no function table in jvmti.h"
        slots: list[tuple[str, list[str]] | None] = []
        for member in re.sub(r"/\*.*?\*/", "", table[1], flags=re.DOTALL).split(";"):
            function = re.match(r"\s*jvmtiError \(JNICALL \*(\w+)\) \((.*)\)", member, re.DOTALL)
            if function:
                parameters = [self._type(text) for text in function[2].split(",")[1:] if text.strip() != "..."]
                slots.append((function[1], parameters))
            elif member.strip():
                slots.append(None)
        return slots

    @property
    def callbacks(self) -> dict[str, list[str]]:
        """Parameter types of each event's callback after the environments, by the event's name."""
        found = re.findall(r"typedef void \(JNICALL \*jvmtiEvent(\w+)\)\s*\((.*?)\);", self._text, re.DOTALL)
        return {
            name: [self._type(text) for text in parameters.split(",") if not re.search(r"jvmti_env|jni_env", text)]
            for name, parameters in found
        }

    @staticmethod
    def _type(declaration: str) -> str:
        return re.sub(r"\s*\w+$", "", declaration.strip().replace("const ", "")).replace(" *", "*")


def header(version: int) -> Header:
    """The header of an installed JDK of this version; the test is skipped without one."""
    jdk = JDK.find(version)
    path = None if jdk is None else jdk.home / "include" / "jvmti.h"
    if path is None or not path.is_file():
        pytest.skip(f"no JDK {version} with include/jvmti.h: apt-get install openjdk-{version}-jdk-headless")
    return Header(path, version)
