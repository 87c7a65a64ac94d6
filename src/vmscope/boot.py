"""The first moment of an autostarted Python: all that its `.pth` file imports of vmscope, and it is little.

A process that ends, or becomes another program, before the call comes has paid a millisecond; one that lives on
imports the runtime on a thread that nobody waits for.
"""

from __future__ import annotations

from vmscope import later


def autostart() -> None:
    """Publishes this process in a moment, unless it has started by itself until then. Raises what the file catches."""
    later.call(_publish)


def _publish() -> None:
    from vmscope import runtime

    runtime.VM.autostart()
