import os
import sys

import vmscope
from vmscope import cli, errors, reader
from vmscope.cli import ps

vmscope.start()


def refusal(pid):
    try:
        reader.vm(pid).close()
    except errors.VMScopeError as error:
        return f"{type(error).__name__}: {error}"


print("ready", flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
