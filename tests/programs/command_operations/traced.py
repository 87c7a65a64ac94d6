import io
import json
import sys

from vmscope import commands


def run(line):
    out = io.StringIO()
    try:
        commands.execute("Python.tracemalloc " + line, out)
    except commands.registry.CommandError as error:  # type: ignore[attr-defined]
        return "! " + str(error)
    return out.getvalue()


said = [run("top"), run("start -frames=2"), run("start")]
keep = bytearray(3 << 20)
said.append(run("top -limit=1"))
said.append(run("compare"))
more = bytearray(5 << 20)
said.append(run("compare -limit=1 -by=traceback"))
said += [run("stop"), run("stop"), run("top -by=x"), run("start -frames=0"), run("forth")]
import tracemalloc

tracemalloc.start()
said += [run("start"), run("stop")]
assert tracemalloc.is_tracing()
json.dump(said, sys.stdout)
