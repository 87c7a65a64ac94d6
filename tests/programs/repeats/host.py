import gc
import json
import linecache
import logging
import os
import sys
import threading

folder = sys.argv[1]
logging.basicConfig(filename=f"{folder}/log", level=logging.DEBUG)
os.dup2(os.open(f"{folder}/stderr", os.O_WRONLY | os.O_CREAT, 0o600), 2)
sys.path.insert(0, folder)
import vmscope

vmscope.start()
print("ready", flush=True)
for _ in sys.stdin:
    gc.collect()
    gc.collect()
    found = dict(
        blocks=sys.getallocatedblocks(),
        descriptors=len(os.listdir("/proc/self/fd")),
        kernel_threads=len(os.listdir("/proc/self/task")),
        threads=len(threading._active),  # type: ignore[attr-defined]
        modules=len(sys.modules),
        loggers=len(logging.Logger.manager.loggerDict),
        handlers=len(logging.getLogger("vmscope").handlers),
        lines_cached=len(linecache.cache),
        importers=len(sys.path_importer_cache),
        files=len(os.listdir(folder)),
        region=vmscope.status().used,
    )
    print(json.dumps(found), flush=True)
