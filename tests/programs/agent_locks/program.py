import json
import sys
import threading
import time

import vmscope
from tests.wait import wait_for
from vmscope import tool


def start(body, name=None, daemon=False):
    thread = threading.Thread(target=body, name=name, daemon=daemon)
    thread.start()
    return thread


def counters():
    found = vmscope.vm("self").values()
    return {name: value for name, value in found.items() if name.startswith("locks.")}


def seen(lock):
    return [thread.name for thread in env.get_object_monitor_usage(lock).waiters]


env = tool.vm().get_env()
env.add_capabilities({tool.Capability.CAN_GET_MONITOR_INFO})
