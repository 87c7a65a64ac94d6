"""What an installed JDK's jni.h declares, parsed where it lies."""

from __future__ import annotations

import re

import pytest

from tests.support import JDK


def slots(version: int) -> dict[int, tuple[str, str, list[str]]]:
    """Of a JNIEnv: by slot, each function's name, result and parameter types after the first. Skips without it."""
    jdk = JDK.find(version)
    path = None if jdk is None else jdk.home / "include" / "jni.h"
    if path is None or not path.is_file():
        pytest.skip(f"no JDK {version} with include/jni.h: apt-get install openjdk-{version}-jdk-headless")
    text = re.sub(r"/\*.*?\*/|^\s*#.*?$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    table = re.search(r"struct JNINativeInterface_ \{(.*?)\n\};", text, re.DOTALL)
    assert table, "no function table in jni.h"
    found = {}
    for slot, member in enumerate(each for each in table[1].split(";") if each.strip()):
        function = re.match(r"\s*(.*?)\s*\(JNICALL \*(\w+)\)\s*\((.*)\)", member, re.DOTALL)
        if function:
            parameters = [_type(each) for each in function[3].split(",")[1:]]
            found[slot] = function[2], _type(function[1] + " result"), parameters
        else:
            assert "reserved" in member or "cplusplus" in member, member
    return found


def _type(declaration: str) -> str:
    words = " ".join(declaration.split())
    return words if words == "..." else re.sub(r"\s*\*", "*", re.sub(r"\s*\w+$", "", words))
