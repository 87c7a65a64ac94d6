import os
import resource

import vmscope

resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
print("ready", flush=True)
counter = vmscope.counter("test.count")
vmscope.start()
counter.inc()
status = vmscope.status()
files = set(os.listdir("/tmp/hsperfdata_" + os.environ["USER"])) & {str(os.getpid())}
print(status.path, counter.value, sorted(files), status.reason)
