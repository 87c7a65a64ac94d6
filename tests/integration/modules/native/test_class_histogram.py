"""The census of objects: whichever way an object is kept, it is counted, once, with its size.

What needs processes of its own.
"""

from __future__ import annotations

import subprocess
import sys

FROZEN = """
import gc, sys
class Kept: pass
kept = [Kept() for _ in range(100)]
gc.freeze()
from vmscope import native
print([row[1] for row in native.count_objects() if row[0] is Kept])
"""


def test_what_was_frozen_is_found(implementation: str) -> None:
    run = subprocess.run([sys.executable, "-c", FROZEN], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "[100]\n"
