import os
import sys
import threading
import time

from vmscope import tool

env = tool.vm().get_env(tool.Version.V1_2, "test")
env.add_capabilities({tool.Capability.CAN_SUSPEND})
go = threading.Event()
other = threading.Thread(target=go.wait, name="other", daemon=True)
other.start()
env.suspend_thread(next(thread for thread in env.get_all_threads() if thread.name == "other"))


def watched():
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    return sum(monitoring.get_events(number) for number in range(6) if monitoring.get_tool(number) is not None)


assert watched()
pid = os.fork()
if not pid:
    os._exit(9 if watched() else 0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
os._exit(0)
