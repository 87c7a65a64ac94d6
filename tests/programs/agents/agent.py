import os
import sys

from vmscope import tool

EVENTS = [tool.Event.VM_START, tool.Event.VM_INIT, tool.Event.VM_DEATH]


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def listen(vm, options):
    env = vm.get_env(tool.Version.V1_2)
    name = options or "none"
    env.set_event_callbacks({event: lambda env, *rest, event=event: say(name, event.name) for event in EVENTS})
    for event in EVENTS:
        env.set_event_notification_mode(True, event)


def agent_on_load(vm, options):
    say("load", repr(options), vm.phase.name)
    listen(vm, options)
    if options == "three":
        return 3
    if options == "raise":
        raise ValueError("not\nthat")
    if options == "exit":
        sys.exit(0)


def agent_on_attach(vm, options):
    say("attach", repr(options), vm.phase.name)
    listen(vm, options)
    if options == "three":
        return 3
    if options == "raise":
        raise ValueError("not that")


def agent_on_unload(vm):
    say("unload", vm.phase.name)
