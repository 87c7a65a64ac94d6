"""What the watchdog does: a dump of all stacks, a command, the end of the process."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import subprocess  # here, on the thread that loads the agent: with it comes threading, which must not come on our own
import time

from vmscope import environ
from vmscope.agents.dumps import append, opened
from vmscope.agents.stacks import all_stacks
from vmscope.terminal import identity
from vmscope.tool import Environment

COMMAND_TIME = 60.0  # seconds that are waited for a command


def exit_of(text: str) -> int | signal.Signals:
    """A status, or a signal by its name with or without SIG. ValueError."""
    if text.isdigit():
        if int(text) > 255:
            raise ValueError("a status is from 0 to 255")
        return int(text)
    try:
        return signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"]
    except KeyError:
        raise ValueError("it is a status from 0 to 255 or a signal such as TERM") from None


class Actions:
    """`dump`: a path, `-` for standard error, or `off`. `frozen`: seconds after which faulthandler acts, or 0."""

    def __init__(self, env: Environment, dump: str, command: str, end: object, frozen: float) -> None:
        self._env = env
        self._dump = dump
        self._command = command
        self._end = end
        self._frozen = frozen
        self._file: tuple[int, object] | None = None  # what faulthandler would write to, and which file that is

    def act(self, limit: str, reason: str) -> None:
        head = f"vmscope watchdog, {time.strftime('%Y-%m-%d %H:%M:%S')}, pid {os.getpid()}: {limit}: {reason}\n"
        if self._dump == "off":
            self._write(head)
        else:
            self._write(f"{head}\n{all_stacks(self._env, but=self._env.get_current_thread())}\n")
        if self._command:
            self._run(limit, reason)
        if isinstance(self._end, signal.Signals):
            os.kill(os.getpid(), self._end)
        elif isinstance(self._end, int):
            os._exit(self._end)

    def arm(self) -> None:
        """Has faulthandler act when this is not called again in time: by a thread that needs no GIL."""
        last, self._file = self._file, None
        if self._dump not in ("-", "off"):
            number = opened(self._dump)
        else:
            try:
                number = opened("-")
            except OSError:  # it cannot be reported; but it may have to end the process
                number = opened(os.devnull)
        self._file = number, identity(number)
        faulthandler.dump_traceback_later(self._frozen, exit=self._end is not None, file=number)
        close(last)

    def disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        last, self._file = self._file, None
        close(last)

    def _write(self, text: str) -> None:
        append("-" if self._dump == "off" else self._dump, text)

    def _run(self, limit: str, reason: str) -> None:
        """The shell that starts it ends at once, so that the program, which may wait for any child, never sees it.

        The pipe that it holds shows how long it runs.
        """
        about = {"VMSCOPE_PID": str(os.getpid()), "VMSCOPE_LIMIT": limit, "VMSCOPE_REASON": reason}
        ended, held = os.pipe()
        try:
            starter = subprocess.Popen(
                ["/bin/sh", "-c", f"( {self._command}\n) &"],
                stdin=subprocess.DEVNULL,
                env={**environ.inherited(), **about},
                pass_fds=[held],
                start_new_session=True,
            )
            os.close(held)
            held = -1
            starter.wait(COMMAND_TIME)
            select.select([ended], [], [], COMMAND_TIME)
        except (OSError, subprocess.SubprocessError) as error:
            self._write(f"vmscope watchdog: the command could not be run: {error}\n")
        finally:
            os.close(ended)
            if held >= 0:
                os.close(held)


def close(file: tuple[int, object] | None) -> None:
    """Unless the program has closed it, as daemons close all there is, and its number is another file's now."""
    if file is not None and identity(file[0]) == file[1]:
        os.close(file[0])
