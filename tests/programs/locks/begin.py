import sys
import threading
import time

from vmscope import native
from vmscope.tool import Event
from vmscope.tool.model.thread_state import ThreadState

before = threading.RLock()
from tests.wait import wait_for
from vmscope.tool import Capability, Host, Phase
from vmscope.tool.sources import event_sources as mechanisms

host = Host()
mechanisms.install(host)
host.enter(Phase.ONLOAD)
env = host.get_env(agent="tester")
env.add_capabilities(
    {
        Capability.CAN_GET_OWNED_MONITOR_INFO,
        Capability.CAN_GET_CURRENT_CONTENDED_MONITOR,
        Capability.CAN_GET_OWNED_MONITOR_STACK_DEPTH_INFO,
        Capability.CAN_GET_MONITOR_INFO,
        Capability.CAN_GENERATE_MONITOR_EVENTS,
    }
)
for phase in (Phase.PRIMORDIAL, Phase.START, Phase.LIVE):
    host.enter(phase)
main = env.get_current_thread()


def elsewhere(body):
    thread = threading.Thread(target=body)
    thread.start()
    return thread


def start(body):
    thread = elsewhere(body)
    wait_for(lambda: any(each.ident == thread.ident for each in env.get_all_threads()))
    return thread, next(each for each in env.get_all_threads() if each.ident == thread.ident)
