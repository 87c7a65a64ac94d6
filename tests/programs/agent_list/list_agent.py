# list_agent.c in Python.
import os

from vmscope.tool import Event

WORDS = {Event.VM_START: "start", Event.VM_INIT: "init", Event.VM_DEATH: "death"}


def say(env, what):
    os.write(1, f"{what} {env.get_environment_local_storage()} {env.get_phase():d}\n".encode())


def agent_on_load(vm, options):
    env = vm.get_env()
    env.set_environment_local_storage(options or "-")
    env.set_event_callbacks({event: lambda env, *rest, word=word: say(env, word) for event, word in WORDS.items()})
    for event in WORDS:
        env.set_event_notification_mode(True, event)
    say(env, "load")
    return 3 if options == "three" else 0


def agent_on_unload(vm):
    os.write(1, b"unload\n")
