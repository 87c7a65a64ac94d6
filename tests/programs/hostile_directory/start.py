import os

import vmscope
from tests.programs import sandbox
from tests.programs.sandbox import answer


def tree():
    own = f"/tmp/.java_pid{os.getpid()}"  # the attach socket, which is beside the folder
    return [path for path in sandbox.tree() if path != own]


before = {path: os.lstat(path)[:7] for path in tree()}
vmscope.start()
status = vmscope.status()
counter = vmscope.counter("test.hostile")
counter.add(3)
counter.inc()
after = {path: os.lstat(path)[:7] for path in tree()}
answer(
    path=status.path,
    reason=status.reason,
    running=status.running,
    count=counter.value,
    untouched=before == after,
    tree=sorted(after),
)
vmscope.stop()
assert {path: os.lstat(path)[:7] for path in tree()} == before
