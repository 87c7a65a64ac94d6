import sys
import threading
import types

import vmscope
from vmscope import commands

vmscope.start("-Dshop.name=corner shop", "-XX:+EnableDynamicAgentLoading", "-XX:PerfDataMemorySize=128k")


class Basket:
    def __del__(self):
        pass


baskets = [Basket() for _ in range(12345)]
lock = threading.Lock()
lock.acquire()


def wait_for_the_lock():
    lock.acquire()


threading.Thread(target=wait_for_the_lock, name="the customer", daemon=True).start()

agent = types.ModuleType("shop_agent")


def on_attach(vm, options):
    command = commands.Command(
        "Shop.say",
        "Says it.",
        lambda out, what: out.write(what * 2),
        arguments=(commands.Argument("what", "It.", mandatory=True),),
    )
    if options != "quiet":
        commands.register(command, vm)
    return 3 if options == "three" else 0


agent.agent_on_attach = on_attach  # type: ignore[attr-defined]
sys.modules["shop_agent"] = agent


def unload(name):
    from vmscope import tool

    tool.unload_agent([each for each in tool.vm().agents if each.name == name][-1])


def sell():
    return "sold"


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
