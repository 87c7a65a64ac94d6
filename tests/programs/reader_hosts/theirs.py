import ctypes
import os
import sys

import vmscope
import vmscope.runtime

os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
vmscope.start()
os.rename(os.path.dirname(vmscope.status().path), "/tmp/hsperfdata_root")  # type: ignore[arg-type, type-var]
print("ready", flush=True)
sys.stdin.read()
