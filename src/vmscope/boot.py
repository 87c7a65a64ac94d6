"""The first moment of an autostarted Python: all that its `.pth` file imports of vmscope, and it is little.

Only where VMSCOPE_TOOL_OPTIONS names agents is there more: they are loaded here and now, before the program.

A process that ends, or becomes another program, before the call comes has paid a millisecond; one that lives on
imports the runtime on a thread that nothing waits for.
"""

from __future__ import annotations

import os
import sys

from vmscope import environ, own_threads

_autostarted = False


def autostart() -> None:
    """Publishes this process in a moment, unless it has started by itself until then. Raises what the file catches."""
    global _autostarted
    if _autostarted:  # by the other of two `.pth` files
        return
    _autostarted = True
    options = environ.get(environ.OPTIONS) + environ.get(environ.RUN_OPTIONS)
    if ("agent" in options or "@" in options) and not _is_own_command():
        _load_agents()
    names = environ.instruments()
    if names and not _is_own_command():
        from vmscope import instruments

        instruments.instrument(*names)  # before the program makes its metrics
    own_threads.call(_publish)


def _load_agents() -> None:
    """One that fails ends nothing: `vmscope.status()` and `vmscope ps` say so."""
    from vmscope import runtime

    runtime.VM.load_inherited_agents()


def _is_own_command() -> bool:
    """Whether this is vmscope's command line: a tool is not a VM, and `run` loads its agents itself."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return os.path.basename(word) in ("vmscope", "vmscope.exe")
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, "")
            continue
        for position, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return letter == "m" and (word[position:] or next(words, "")) == "vmscope"
            if letter in "WX":
                if position == len(word):
                    next(words, "")
                break
    return False


def _publish() -> None:
    from vmscope import runtime

    runtime.VM.autostart()


def leave() -> None:
    """For vmscope's own commands: a tool is not a VM, and `run` starts one with options of its own."""
    own_threads.cancel()
    runtime = sys.modules.get("vmscope.runtime")
    if runtime is not None and runtime.VM.autostarted:
        runtime.VM.stop()
