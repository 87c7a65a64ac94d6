import os
import threading

from vmscope import tool

vm = tool.vm()
env = vm.get_env()
within, go = threading.Event(), threading.Event()


def hold():
    with vm.lock:
        within.set()
        go.wait()


holder = threading.Thread(target=hold, daemon=True)
holder.start()
within.wait()
pid = os.fork()
if not pid:
    env.add_capabilities({tool.Capability.CAN_TAG_OBJECTS})
    env.dispose_environment()
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
go.set()
holder.join()
