"""vmscope.terminal: what a terminal is shown of text that others have written. What needs processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="who warns there has a console")
@pytest.mark.parametrize(
    ("what", "written"),
    [
        ("os.close(2); opened = open(path, 'w'); assert opened.fileno() == 2", ""),
        ("os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), 2)", "\\x1b[1m\n"),
        ("os.close(2)", None),
    ],
)
def test_a_warning_goes_to_standard_error_alone(tmp_path: os.PathLike[str], what: str, written: str | None) -> None:
    """A daemon may have closed it, and then its number is another file's."""
    path = os.path.join(tmp_path, "file")
    code = f"import os\nfrom vmscope import terminal\npath = {path!r}\n{what}\nterminal.warn('\\x1b[1m\\n')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    if written is None:
        assert not os.path.exists(path)
    else:
        with open(path, encoding="utf-8") as file:
            assert file.read() == written
