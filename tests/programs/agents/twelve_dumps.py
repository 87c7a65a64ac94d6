import vmscope
from vmscope import tool

for _ in range(12):
    tool.vm().post(tool.Event.DATA_DUMP_REQUEST)
vmscope.start()
print(vmscope.status().agent_errors)
for name in ("vmscope.agents.errors", "vmscope.agents.disabled"):
    counter = vmscope.counter(name, units=vmscope.Units.EVENTS)
    print(counter.value, counter.labels(agent="failing", at="DATA_DUMP_REQUEST").value, flush=True)
