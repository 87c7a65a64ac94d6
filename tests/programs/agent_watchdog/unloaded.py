import threading
import time

from vmscope import tool

env = tool.vm().get_env()


def threads():
    return [each.name for each in env.get_all_threads()]


agent = tool.load_agent("vmscope.agents.watchdog", "stuck=60s,frozen=60s")
assert "vmscope watchdog" in threads(), threads()
environments = len(tool.vm().environments)
tool.unload_agent(agent)
assert "vmscope watchdog" not in threads(), threads()
print(environments - len(tool.vm().environments))
