"""The first moment of an autostarted Python: all that its `.pth` file imports of vmscope, and it is little.

A process that ends, or becomes another program, before the call comes has paid a millisecond; one that lives on
imports the runtime on a thread that nobody waits for.
"""

from __future__ import annotations

import sys

from vmscope import later


def autostart() -> None:
    """Publishes this process in a moment, unless it has started by itself until then. Raises what the file catches."""
    later.call(_publish)


def _publish() -> None:
    from vmscope import runtime

    runtime.VM.autostart()


def leave() -> None:
    """For vmscope's own commands: a tool is no VM, and `run` starts one with options of its own."""
    later.cancel()
    runtime = sys.modules.get("vmscope.runtime")
    if runtime is not None and runtime.VM.autostarted:
        runtime.VM.stop()
