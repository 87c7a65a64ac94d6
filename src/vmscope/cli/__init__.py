"""The command line: one module a sub-command, each with `main(args) -> exit status` and `HELP`.

Dispatched by hand: argparse alone would double the time that `vmscope ps` takes.
"""

from __future__ import annotations

import os
import sys
from errno import EPIPE

from vmscope import errors
from vmscope.errors import VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# name, one line for people
COMMANDS: tuple[tuple[str, str], ...] = (
    ("run", "start a Python program that every tool can see"),
    ("autostart", "make every Python of this environment visible"),
    ("ps", "list the Python and Java VMs of this host"),
    ("stat", "show what a VM is doing, sample after sample"),
    ("counters", "show a VM's counters"),
    ("profile", "where a VM's time goes, its memory, its locks"),
    ("convert", "flame graphs of flight recordings"),
    ("diff", "what has changed between two flight recordings"),
    ("export", "metrics of all VMs for Prometheus and OpenTelemetry"),
    ("cmd", "have a VM execute a diagnostic command"),
    ("stack", "show what the threads of any CPython process do"),
    ("attach", "prepare a live process, load an agent into it"),
    ("jps", "like the JDK's jps, for scripts"),
    ("jstat", "like the JDK's jstat, for scripts"),
    ("jcmd", "like the JDK's jcmd, for scripts"),
)
# These answer --help as the JDK's do.
DROP_INS = ("jps", "jstat", "jcmd")


def usage() -> str:
    """What `vmscope help` prints."""
    rows = "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS)
    return (
        "usage: vmscope COMMAND [ARGUMENT ...]\n\n"
        f"{rows}\n  help      show this, or the help of a command\n\n"
        "vmscope COMMAND --help shows a command's own help, with an example.\n"
    )


def _command(name: str) -> str:
    if not any(name == row[0] for row in COMMANDS):
        raise errors.CommandLineError(f"there is no command {name!r}", hint="vmscope help lists them")
    return name


def _terminal() -> ModuleType:
    """A program under `run` does not wait for its import."""
    from vmscope import terminal

    return terminal


def _dispatch(args: list[str]) -> int | Callable[[], int]:
    if not args:
        _terminal().ERR.show(usage())
        return 2
    first, rest = args[0], args[1:]
    if first in ("--version", "-V"):
        from vmscope import __version__

        _terminal().OUT.show(f"vmscope {__version__}\n")
        return 0
    asked = first in ("help", "--help", "-h")
    if asked:
        if not rest:
            _terminal().OUT.show(usage())
            return 0
        first = rest[0]
    name = _command(first)
    module = __import__(f"vmscope.cli.{name}", fromlist=["main"])
    if asked or _asks_for_help(name, rest):
        _terminal().OUT.show(module.HELP)
        return 0
    if name in ("run", "ps"):
        _tell_of_twin()
    status: int | Callable[[], int] = module.main(rest)
    return status


def _asks_for_help(name: str, args: list[str]) -> bool:
    """Whether --help stands where it is this command's own: what follows a program or a VM's command is theirs."""
    if name in DROP_INS:
        return False
    own = args[:1] if name in ("run", "cmd") else args[: args.index("--")] if "--" in args else args
    return "--help" in own or "-h" in own


def _tell_of_twin() -> None:
    """Reports that vmscope was installed without its extension: pip shows nothing of a build."""
    from vmscope import native

    if native.TWIN_REASON not in ("", native.SWITCHED_OFF):
        _terminal().ERR.show(
            f"vmscope: its Python twin runs, for {native.TWIN_REASON}: counters cost 15 times as much, and native "
            "agents, the heaps' counters and what a crash saves are missing (install a C compiler and Python's "
            "headers, then: python -m pip install --force-reinstall --no-cache-dir vmscope)\n"
        )


def _drop_output() -> None:
    """The flush at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failed(error: Exception) -> int:
    """One line for what cannot be helped; for a mistake of vmscope's, where it is."""
    terminal = _terminal()
    if isinstance(error, terminal.OutputError):
        if not (error.errno == EPIPE and terminal.OUT.taken):  # as of `| head`
            terminal.complain(VMScopeError(f"standard output cannot be written: {error.strerror}"))
        _drop_output()
    elif isinstance(error, OSError):
        terminal.complain(VMScopeError(str(error)))
    else:
        import traceback

        terminal.ERR.show(traceback.format_exc())  # by the rule: it may be another's text
    return 1


def main(args: list[str] | None = None) -> int:
    """Runs one command. Its exit status: 0, 1 (the target), 2 (the command line); the drop-ins have the JDK's.

    An error is one line on stderr. A reader that closes the pipe when it has read enough ends the command quietly.
    """
    boot = sys.modules.get("vmscope.boot")
    if boot is not None:
        boot.leave()
    try:
        status = _dispatch(sys.argv[1:] if args is None else args)
        if not callable(status):
            _terminal().OUT.flush()
    except KeyboardInterrupt:
        return 130
    except VMScopeError as error:
        _terminal().complain(error)
        return 2 if isinstance(error, (errors.CommandLineError, errors.OptionError)) else 1
    except Exception as error:
        return _failed(error)
    return status if isinstance(status, int) else status()  # a program, whose errors are not ours to catch
