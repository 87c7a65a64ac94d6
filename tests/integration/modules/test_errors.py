"""The errors: one place for all of them, whichever module defines one. What needs processes of its own."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from vmscope import errors, native


def test_a_pickle_is_read_where_no_such_error_has_been_used() -> None:
    pickled = pickle.dumps(errors.NotAttachable("it does not answer", pid=7))
    code = f"import pickle; error = pickle.loads({pickled!r}); print(type(error), error.pid)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "<class 'vmscope.errors.NotAttachable'> 7\n"


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twins import what they need")
def test_a_start_makes_only_the_errors_that_it_may_meet() -> None:
    code = """if True:
        import sys, vmscope
        vmscope.start()
        print(*sorted(name for name in sys.modules if name.startswith("vmscope.errors.")))
        vmscope.stop()"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "\n"
