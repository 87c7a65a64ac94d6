"""What differs in this process before, during and after: a program that prints it, by steps, as JSON.

python -m tests.side_effects start            {"during": [...], "after": [...]}
python -m tests.side_effects instrument NAME
python -m tests.side_effects events NAME ...
vmscope run tests/side_effects.py             [...]: what `run` adds, beside a start
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import sys
import warnings
from types import ModuleType
from typing import Any

MODULES = (
    "asyncio concurrent.futures.process concurrent.futures.thread faulthandler gunicorn.workers.base logging "
    "datadog.dogstatsd.base multiprocessing.util prometheus_client.metrics prometheus_client.multiprocess "
    "prometheus_client.values runpy socket statsd.client.base subprocess tempfile threading tracemalloc uvicorn.config "
    "warnings zipimport"
)
_HOOKS = ("breakpointhook", "displayhook", "excepthook", "unraisablehook")


def callables() -> dict[str, object]:
    """Every function and class of every module but vmscope's, and every method, by name."""
    found: dict[str, object] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("vmscope", "tests", "__main__") or not isinstance(module, ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == name:
                found.update({f"{name}.{key}.{each}": method for each, method in vars(value).items()})
            if callable(value):
                found[f"{name}.{key}"] = value
    return found


def signals() -> dict[str, object]:
    """The kernel's view: which have a handler."""
    with open("/proc/self/status") as status:
        caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
    return {each.name: caught >> each.value - 1 & 1 for each in signal.Signals}


def state() -> dict[str, Any]:
    found: dict[str, Any] = {f"sys.{name}": getattr(sys, name) for name in _HOOKS}
    found |= callables() | signals() | dict(os.environ)
    found |= {
        "gc.callbacks": list(gc.callbacks),
        "gc.get_threshold": gc.get_threshold(),
        "sys.meta_path": list(sys.meta_path),
        "sys.path": list(sys.path),
        "sys.gettrace": sys.gettrace(),
        "sys.getprofile": sys.getprofile(),
        "sys.getswitchinterval": sys.getswitchinterval(),
        "sys.getrecursionlimit": sys.getrecursionlimit(),
        "warnings.filters": list(warnings.filters),
        "atexit": atexit._ncallbacks(),
    }
    if sys.version_info >= (3, 12):
        found["sys.monitoring"] = [sys.monitoring.get_tool(tool) for tool in range(6)]
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is another object, or compares otherwise; a name of a module that has only now been imported is none."""
    return sorted(name for name, value in before.items() if value is not after.get(name) and value != after.get(name))


def main() -> None:
    for name in MODULES.split():
        importlib.import_module(name)
    import vmscope
    from vmscope import tool

    if sys.argv[1] == "start":
        before = state()
        vmscope.start()
        during = state()
    else:
        vmscope.start()
        before = state()
        if sys.argv[1] == "instrument":
            vmscope.instrument(sys.argv[2])
        else:
            environment = tool.vm().get_env(tool.Version.V1_2, agent="side effects")
            environment.add_capabilities(environment.get_potential_capabilities())
            for name in sys.argv[2:]:
                environment.set_event_callbacks({tool.Event[name]: lambda *_: None})
                environment.set_event_notification_mode(True, tool.Event[name])
        during = state()
        if sys.argv[1] == "events":
            environment.dispose_environment()
    if sys.argv[1] != "events":
        vmscope.stop()
    print(json.dumps({"during": changed(before, during), "after": changed(before, state())}))


if __name__ == "__main__":
    main()
