import threading

from gevent import monkey  # type: ignore[import-untyped]

monkey.patch_all()
import gevent

for make in (threading.Lock, threading.RLock):
    lock, log = make(), []

    def work(name, lock=lock, log=log):
        with lock:
            log.append(name)
            gevent.sleep(0.02)  # lets the other greenlet run
            log.append(name)

    gevent.joinall([gevent.spawn(work, "one"), gevent.spawn(work, "other")], timeout=20)
    assert log == ["one", "one", "other", "other"], log
