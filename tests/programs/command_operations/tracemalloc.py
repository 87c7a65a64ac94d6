import io
import sys

from vmscope import commands, tool

wanted = tool.Capability.CAN_GENERATE_VM_OBJECT_ALLOC_EVENTS
env = tool.vm().get_env()
if wanted not in env.get_potential_capabilities():
    print("not here")
    sys.exit()
env.add_capabilities({wanted})
env.set_event_callbacks({tool.Event.VM_OBJECT_ALLOC: lambda *_: None})
env.set_event_notification_mode(True, tool.Event.VM_OBJECT_ALLOC)
try:
    commands.execute("Python.tracemalloc start", io.StringIO())
except ValueError as error:
    print(error)
env.dispose_environment()
commands.execute("Python.tracemalloc start", sys.stdout)
