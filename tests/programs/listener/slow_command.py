import time

from vmscope.commands import registry


def wait(out):
    out.write("begun\n")
    out.flush()
    for _ in range(2000):
        time.sleep(0.01)  # a command that takes its time
        out.write("x")
        out.flush()


registry.register(registry.Command("Test.wait", "Takes 20 seconds.", wait))
