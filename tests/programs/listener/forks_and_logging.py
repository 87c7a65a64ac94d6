import os

from vmscope.commands import registry


def load(out):
    os.write(wake, b"x")
    import logging


registry.register(registry.Command("Test.load", "Imports logging.", load))
register = os.register_at_fork
asleep, wake = os.pipe()
print("ready", flush=True)
os.read(asleep, 1)
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
assert os.register_at_fork is register
