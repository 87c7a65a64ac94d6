import os
import sys

import vmscope

opened = os.open


def lose(path, flags, *arguments, **options):
    fd = opened(path, flags, *arguments, **options)
    if os.fsdecode(path).endswith(f"/{os.getpid()}") and flags & os.O_WRONLY and not flags & os.O_CREAT:
        os.open = opened
        os.unlink(path)
    return fd


os.open = lose
vmscope.start()
print(vmscope.status().path, flush=True)
input()
print(os.open is opened, flush=True)
input()
