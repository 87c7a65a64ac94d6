import time

import vmscope
from vmscope.commands import registry


def wait(out):
    print("asked", flush=True)
    time.sleep(600)


registry.register(registry.Command("Test.wait", "Waits.", wait))
vmscope.start()
print("ready", flush=True)
time.sleep(600)
