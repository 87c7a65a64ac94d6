"""Views: headers, cells, expressions, the language. What JDK 17 makes of them is in tests/oracle.

What needs processes of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import corpus
from tests.integration.modules.test_imports import HEAVY, modules_loaded
from vmscope import native


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twins import what they need")
def test_a_sample_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "region"
    path.write_bytes(corpus.load("17.0.15-debian-g1"))
    arguments = ["jstat", "-gcutil", "-t", f"file://{path}"]
    loaded = modules_loaded(f"sys.argv[1:] = {arguments!r}\nfrom vmscope.cli import main\nsys.exit(main())")
    assert "vmscope.cli.jstat" in loaded
    assert loaded & HEAVY == set()
