"""VM.uptime: how long this process has been running."""

from __future__ import annotations

import os
import time

from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command
from vmscope.counters import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output


def run(out: Output, date: bool) -> None:
    now = time.time_ns() // 1_000_000
    seconds = seconds_up()
    if date:
        local = time.localtime(now / 1000)
        out.write(time.strftime(f"%Y-%m-%dT%H:%M:%S.{now % 1000:03}%z: ", local))
    out.write(f"{seconds:.3f} s\n")


def seconds_up() -> float:
    """Since the process started; changes of the clock do not count."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - identity.start_ticks() / os.sysconf("SC_CLK_TCK")


COMMANDS = (
    Command(
        "VM.uptime",
        "How long this process has been running.",
        run,
        arguments=(Argument("-date", "Put the date and the time in front.", "BOOLEAN", default="false"),),
    ),
)
