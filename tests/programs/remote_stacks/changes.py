"""A program that changes without pause: threads come and go, stacks grow and shrink, code is made and freed."""

import threading


def push(left):
    return push(left - 1) if left else 0


def generate(left):
    if left:
        yield from generate(left - 1)
    yield left


def make(number):
    space: dict[str, object] = {}
    exec(f"def made_{number % 97}(x):\n    return x and made_{number % 97}(x - 1)\nmade_{number % 97}(9)", space)


def run(kind):
    number = 0
    while True:
        number += 1
        if kind == 0:
            thread = threading.Thread(target=push, args=(20,))
            thread.start()
            thread.join()
        elif kind == 1:
            push(900)
        elif kind == 2:
            list(generate(50))
        else:
            make(number)


for kind in range(4):
    threading.Thread(target=run, args=(kind,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
