import os
import sys
import time

import vmscope

vmscope.start()
print("ready", flush=True)
while True:
    pid = os.fork()
    if pid == 0:
        time.sleep(0.003)  # it lives for a moment
        os._exit(0)
    os.waitpid(pid, 0)
