import json
import os
import sys
import time

import vmscope
from tests.wait import wait_for
from vmscope import flags

vmscope.start("-XX:PerfDataSamplingInterval=60000")
path = vmscope.status().path
ticks = vmscope.gauge("a.b")
flags.change("PerfDataSamplingInterval", "1")
ticks.set(7)
wait_for(lambda: vmscope.vm("file:" + path).values()["a.b"] == 7)  # type: ignore[operator]
flags.change("PerfDataSaveFile", sys.argv[1])
flags.change("Instrument", "warnings")
try:
    flags.change("Instrument", "nosuch")
except vmscope.VMScopeError as error:
    print(type(error).__name__)
import warnings

warnings.warn("one")
shown = vmscope.counter("python.warnings.shown", units=vmscope.Units.EVENTS)
print(vmscope.vm("file:" + path).values()["a.b"], shown.value)  # type: ignore[operator]
