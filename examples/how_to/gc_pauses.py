"""An agent that notes long collections; docs/how-to/write-an-agent.md explains it.

    vmscope run -pyagent:gc_pauses=limit=0.005 shop.py

The limit is in seconds.
"""

from __future__ import annotations

import time
from typing import Any, TextIO

import vmscope
from vmscope import commands, tool

count = vmscope.counter("pauses.long", units=vmscope.Units.EVENTS)
longest: list[tuple[float, str]] = []  # seconds, time of day


class Pauses:
    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.began = 0.0

    def start(self, env: tool.Environment) -> None:
        self.began = time.perf_counter()

    def finish(self, env: tool.Environment) -> None:
        pause = time.perf_counter() - self.began
        if pause >= self.limit:
            count.inc()
            longest.append((pause, time.strftime("%H:%M:%S")))
            longest.sort(reverse=True)
            del longest[10:]


def report(out: TextIO) -> None:
    for pause, at in longest:
        out.write(f"{at}  {pause * 1000:.1f} ms\n")


def agent_on_load(vm: Any, options: str) -> None:
    pauses = Pauses(float(options.removeprefix("limit=") or 0.01))
    start, finish = tool.Event.GARBAGE_COLLECTION_START, tool.Event.GARBAGE_COLLECTION_FINISH
    env = vm.get_env(tool.Version.V1_2)
    env.add_capabilities({tool.Capability.CAN_GENERATE_GARBAGE_COLLECTION_EVENTS})
    env.set_event_callbacks({start: pauses.start, finish: pauses.finish})
    env.set_event_notification_mode(True, start)
    env.set_event_notification_mode(True, finish)
    commands.register(commands.Command("Pauses.print", "The longest collections.", report), vm)


agent_on_attach = agent_on_load
