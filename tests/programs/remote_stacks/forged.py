"""Memory that looks like an interpreter's in any way: words that point into itself, small numbers, and noise."""

import ctypes
import random
import sys

SIZE = 1 << 16
memory = (ctypes.c_uint64 * SIZE)()
base = ctypes.addressof(memory)


def fill(seed):
    source = random.Random(seed)
    for at in range(SIZE):
        kind = source.random()
        if kind < 0.6:
            memory[at] = base + 8 * source.randrange(SIZE)
        elif kind < 0.9:
            memory[at] = source.choice([0, 1, 3, 16, 64, 1 << 40, 2**63, 2**64 - 1])
        else:
            memory[at] = source.getrandbits(64)


fill(0)
print("ready", base, flush=True)
for line in sys.stdin:
    fill(int(line))
    print("filled", flush=True)
