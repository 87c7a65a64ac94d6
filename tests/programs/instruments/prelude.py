# `values("python.x")` is what the counters whose names begin so are at.
import gc
import json
import os
import sys
import threading
import time

import vmscope
from vmscope.counters import REGISTRY  # type: ignore[attr-defined]


def values(prefix):
    own = {counter.name: counter for counter in REGISTRY if not isinstance(counter, vmscope.Histogram)}
    return {name.removeprefix(prefix): own[name].value for name in own if name.startswith(prefix)}  # type: ignore[union-attr]


def answer(**found):
    print(json.dumps(found), flush=True)


vmscope.start()
