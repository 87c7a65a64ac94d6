"""The options of `python` itself among those of `vmscope run`: an interpreter that has them takes this one's place.

They are obeyed where an interpreter starts, and this one has started.
"""

from __future__ import annotations

import os
import sys

from vmscope.errors import CommandLineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SWITCHES = frozenset("bBdEiIOPqRsStuvV")
_PYCS = "--check-hash-based-pycs"

# The names that may follow `-X` in the same word; other such words are the VM's.
_X_OPTIONS = frozenset(
    "code_debug_ranges context_aware_warnings cpu_count dev disable-remote-debug faulthandler frozen_modules gil "
    "importtime int_max_str_digits lazy_imports no_debug_ranges pathconfig_warnings perf perf_jit presite "
    "pycache_prefix showrefcount thread_inherit_context tlbc tracemalloc utf8 warn_default_encoding".split()
)

_WITHOUT_SITE = """\
import sys
sys.path.insert(0, {folder!r})
from vmscope.cli import main
sys.path.remove({folder!r})
sys.exit(main())
"""


def replace(args: list[str]) -> list[str]:
    """Runs the command in such an interpreter, with the rest of these words. Gives them back where none is python's."""
    options, rest = split(args)
    if not options:
        return rest
    if not sys.executable:
        raise CommandLineError(f"run: {options[0]} cannot be obeyed: this Python does not know its executable")
    command = [sys.executable, *options, *_own_words(args, site="-S" not in options), "run", *rest]
    if sys.platform == "win32":  # where exec is the start of another process, for which no process waits
        import subprocess

        sys.exit(subprocess.call(command))
    os.execv(sys.executable, command)
    raise AssertionError  # which exec does not come back to


def split(args: list[str]) -> tuple[list[str], list[str]]:
    """The options of python's, a switch a word; and all other words, from `-m`, `-c` or a script on as they are."""
    options: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word in ("-", "-m", "-c") or not word.startswith(("-", "@")):
            return options, [*rest, word, *words]
        found = [] if word.startswith("-X") and not _is_x_option(word) else _read(word, words)
        if found and found[-2:-1] in (["-m"], ["-c"]):  # `-Bm NAME`
            return [*options, *found[:-2]], [*rest, *found[-2:], *words]
        options += found
        if not found:
            rest.append(word)
    return options, rest


def _is_x_option(word: str) -> bool:
    return word == "-X" or word[2:].partition("=")[0] in _X_OPTIONS


def _read(word: str, words: Iterator[str]) -> list[str]:
    """The options that a word holds, as python reads it; empty: it is not a word of python's."""
    if word == _PYCS:
        return [word, _value(word, words)]
    found: list[str] = []
    for position, letter in enumerate(word[1:], 2):
        if letter in "WXcm":
            return [*found, f"-{letter}", word[position:] or _value(f"-{letter}", words)]
        if letter not in _SWITCHES:
            return []
        found.append(f"-{letter}")
    return found


def _value(option: str, words: Iterator[str]) -> str:
    for word in words:
        return word
    raise CommandLineError(f"run: {option} needs a word after it")


def _own_words(args: list[str], *, site: bool) -> list[str]:
    """The arguments by which an interpreter runs vmscope's command line, as this one does."""
    if not site:  # without which the package is not found
        return ["-c", _WITHOUT_SITE.format(folder=os.path.dirname(os.path.dirname(os.path.dirname(__file__))))]
    arguments = ["run", *args]
    before = len(sys.orig_argv) - len(arguments)
    return sys.orig_argv[1:before] if sys.orig_argv[before:] == arguments else ["-m", "vmscope"]
