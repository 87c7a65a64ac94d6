import os
import sys

import vmscope
from tests.programs.sandbox import answer, tree
from vmscope.wire.decode import decode

STEPS = ("open", "os.mkdir", "os.listdir", "os.chmod", "os.link", "os.remove", "os.truncate")


def killed_at(step):
    child = os.fork()
    if child == 0:
        left = step

        def hook(event, arguments):
            nonlocal left
            if event in STEPS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), 9)

        sys.addaudithook(hook)
        vmscope.start()
        os._exit(0)
    path = f"/tmp/hsperfdata_root/{child}"
    if os.waitpid(child, 0)[1] == 0:
        return False
    if os.path.exists(path):
        image = open(path, "rb").read()
        region = decode(image) if image else None
        closed.append(region is None or not region.prologue.accessible)
        assert closed[-1] or region.prologue.num_entries == len(region.entries) > 30  # type: ignore[union-attr]
    return True


closed, steps = [], 0
while killed_at(steps):
    vmscope.start()
    found = [path for path in tree() if not path.startswith("/tmp/.java_pid")]
    vmscope.stop()
    assert found == ["/tmp/hsperfdata_root", f"/tmp/hsperfdata_root/{os.getpid()}"], (steps, found)
    steps += 1
answer(steps=steps, closed=sum(closed), seen=len(closed))
