"""Eight threads in the tool interface at once: run as a program, on a CPython with or without a GIL.

Prints, as JSON, what came of it: how many held a solo capability at once, at most, and what is free at the end.
"""

from __future__ import annotations

import json
import logging
import sys
import sysconfig
import threading

from vmscope import tool
from vmscope.tool.model.threads import current
from vmscope.tool.spec.available_capabilities import features, features_of

THREADS, ROUNDS = 8, 400
SOLO = tool.Capability.CAN_GENERATE_FIELD_ACCESS_EVENTS
DUMP = tool.Event.DATA_DUMP_REQUEST


def main() -> None:
    vm = tool.vm()
    logging.getLogger("vmscope.tool").disabled = True
    ready = threading.Barrier(THREADS)
    inside: list[int] = []
    most: list[int] = []
    had: list[int] = []
    sent: list[int] = []
    idents: list[tool.Thread] = []

    def work(number: int) -> None:
        received = 0

        def on_dump(env: tool.Environment) -> None:
            nonlocal received
            received += 1

        ready.wait()
        idents.append(current())
        holds = 0
        for _ in range(ROUNDS):
            env = vm.get_env(agent=str(number))
            env.set_event_callbacks({DUMP: on_dump})
            env.set_event_notification_mode(True, DUMP)
            vm.post(DUMP)
            try:
                env.add_capabilities({SOLO})
            except tool.ToolError:
                pass
            else:
                inside.append(number)
                most.append(len(inside))
                holds += 1
                inside.remove(number)
            env.dispose_environment()
        had.append(holds)
        sent.append(received)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    found = {
        "gil": gil,
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "features": features() == features_of(sys.version_info[:2], gil),
        "most": max(most),
        "had": sum(had),
        "sent": min(sent),
        "threads": len({thread.id for thread in idents}),
        "alive": sum(thread.alive for thread in idents),
        "environments": len(vm.environments),
        "free": SOLO in vm.get_env().get_potential_capabilities(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
