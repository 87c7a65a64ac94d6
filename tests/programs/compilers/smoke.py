import sys

import vmscope
from vmscope import native, tool

assert native.IMPLEMENTATION == "c", native.TWIN_REASON
counter = vmscope.counter("smoke.events")
counter.add(7)
vmscope.start()
status = vmscope.status()
assert status.running and status.path and status.attach_path, status
env = tool.vm().get_env()
env.add_capabilities(env.get_potential_capabilities())
with vmscope.vm("self") as vm:
    assert vm.values()["smoke.events"] == 7
    assert vm.version.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
print("ready", flush=True)
sys.stdin.read()
