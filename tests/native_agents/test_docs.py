"""The first agent of docs/native-agents.md: it is built and run as the page says, and prints what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native import compiler, full_jdk
from tests.support import PATIENCE
from vmscope import native

PAGE = Path(__file__).parents[2] / "docs" / "native-agents.md"


@pytest.mark.skipif(not hasattr(native, "load_jni"), reason="no C part, or no GIL")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, which exceptions need")
def test_the_first_agent(tmp_path: Path) -> None:
    part = PAGE.read_text(encoding="utf-8").partition("## The first agent")[2].partition("\n## ")[0]
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL))
    (tmp_path / "watch.c").write_text(blocks["c"])
    (tmp_path / "shop.py").write_text(blocks["python"])
    build, run = (line.removeprefix("$ ") for line in blocks["console"].splitlines() if line.startswith("$"))
    expected = [line for line in blocks["console"].splitlines() if not line.startswith("$")]
    jdk = full_jdk(17)
    variables = {**os.environ, "JAVA_HOME": str(jdk.home), "PYTHONUNBUFFERED": "1"}  # as on a terminal
    build = build.replace("cc ", f"{compiler()} ", 1)
    subprocess.run(build, shell=True, check=True, cwd=tmp_path, env=variables, timeout=PATIENCE)
    run = run.replace("vmscope ", f"{sys.executable} -m vmscope ", 1)
    done = subprocess.run(
        run, shell=True, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines() == expected
    assert len(expected) == 3
