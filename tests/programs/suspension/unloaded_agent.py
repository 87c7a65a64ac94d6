import sys
import threading
import time
import types

from vmscope import tool

agent = types.ModuleType("stopper")


def agent_on_attach(vm, options):
    env = vm.get_env()
    env.add_capabilities({tool.Capability.CAN_SUSPEND})
    env.suspend_thread(next(thread for thread in env.get_all_threads() if thread.name == "counts"))


agent.agent_on_attach = agent_on_attach  # type: ignore[attr-defined]
sys.modules["stopper"] = agent
count = 0


def counts():
    global count
    while count >= 0:
        count += 1
        time.sleep(0.0001)  # a suspended thread may be in a call


thread = threading.Thread(target=counts, name="counts", daemon=True)
thread.start()
loaded = tool.load_agent("stopper")
end, before = time.monotonic() + 20, -1
while count != before:
    assert time.monotonic() < end
    before = count
    time.sleep(0.05)  # a thread that runs counts on
tool.unload_agent(loaded)
from tests.wait import wait_for

wait_for(lambda: count != before)
count = -2
thread.join(20)
assert not thread.is_alive()
