import os

import vmscope
from tests.programs.sandbox import _directory, answer


def show():
    status = vmscope.status()
    path = f"/tmp/hsperfdata_{_directory.user_name(os.geteuid())}/{os.getpid()}"
    answer(
        running=status.running,
        own=status.path == path,
        there=os.path.exists(path),
        reason=status.reason,
        capacity=status.capacity,
        used=status.used > 0,
        implementation=status.implementation,
        count=counter.value,
    )
    counter.inc()


counter = vmscope.counter("test.count")
show()
vmscope.start("-XX:PerfDataMemorySize=30000")
show()
vmscope.start("-XX:PerfDataMemorySize=1m", "-XX:+PerfDisableSharedMem")
show()
vmscope.stop()
show()
vmscope.stop()
show()
vmscope.start()
show()
