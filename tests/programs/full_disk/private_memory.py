import logging
import os
import sys

import vmscope
from tests.programs.sandbox import answer, tree

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level=logging.WARNING)
vmscope.start()
counter = vmscope.counter("test.full")
counter.add(5)
status = vmscope.status()
answer(path=status.path, reason=status.reason, count=counter.value, pid=os.getpid())
vmscope.stop()
counter.inc()
answer(count=counter.value, tree=tree())
