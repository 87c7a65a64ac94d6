import json
import os
import sys

import vmscope
from vmscope import environ, native

vmscope.start()
from vmscope.agents.watchdog import actions
from vmscope.tool import properties, vm

with open("/proc/self/auxv", "rb") as file:
    words = memoryview(file.read()).cast("L")
print(
    json.dumps(
        {
            "secure": dict(zip(words[::2], words[1::2], strict=False)).get(23),
            "arguments": vmscope.status().flags.arguments,
            "capacity": vmscope.status().capacity,
            "implementation": native.IMPLEMENTATION,
            "agents": len(vm().agents),
            "tmp": properties.properties()["java.io.tmpdir"],
            "home": properties.properties()["user.home"],
            "handed on": "VMSCOPE_TOOL_OPTIONS" in environ.inherited(),
        }
    )
)
