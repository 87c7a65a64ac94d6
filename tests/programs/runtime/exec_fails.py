import os

import vmscope
from tests.programs.sandbox import answer

vmscope.start()
path = vmscope.status().path
with open("/tmp/text", "w") as file:
    file.write("no program")
os.chmod("/tmp/text", 0o700)
for name in ("/tmp/text", "/tmp/nothing"):
    try:
        os.execv(name, [name])
    except OSError:
        pass
from tests.wait import wait_for

wait_for(lambda: os.path.exists(path or "") and vmscope.status().path and not vmscope.status().reason)
wait_for(lambda: os.path.exists(vmscope.status().attach_path or ""))
answer(path=vmscope.status().path == path, left=os.listdir("/tmp/hsperfdata_root") == [str(os.getpid())])
