# It writes how many of each event it was sent into a file named after its process.
import os

from vmscope.tool import Capability, Event

EVENTS = Event.METHOD_ENTRY, Event.METHOD_EXIT, Event.EXCEPTION, Event.EXCEPTION_CATCH
counts = dict.fromkeys(EVENTS, 0)


def agent_on_load(vm, options):
    env = vm.get_env(agent="counts")
    env.add_capabilities(
        {
            Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS,
            Capability.CAN_GENERATE_METHOD_EXIT_EVENTS,
            Capability.CAN_GENERATE_EXCEPTION_EVENTS,
        }
    )
    env.set_event_callbacks({event: counter(event) for event in EVENTS})
    for event in EVENTS:
        env.set_event_notification_mode(True, event)


def counter(event):
    def count(env, *arguments):
        counts[event] += 1

    return count


def agent_on_unload(vm):
    with open(f"{os.environ['COUNTS']}/{os.getpid()}", "w") as file:
        file.write(" ".join(map(str, counts.values())))
