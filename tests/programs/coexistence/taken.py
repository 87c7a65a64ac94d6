import logging
import sys
import tracemalloc

from vmscope import tool
from vmscope.tool import Capability

logging.basicConfig(format="%(message)s", stream=sys.stdout)


def ask(name):
    env = tool.vm().get_env(agent=name)
    capability = Capability[sys.argv[1]]
    offered = capability in env.get_potential_capabilities()
    try:
        env.add_capabilities({capability})
    except tool.ToolError as error:
        print(error.code, offered)
        assert not env.get_capabilities()
    else:
        print("held", offered)
    return env
