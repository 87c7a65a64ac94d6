import _thread
import threading


class Worker(threading.Thread):
    def __init__(self):
        super().__init__(name="worker")
        self.shelf = "of the worker"

    def run(self):
        running.set()
        over.wait()


def look():
    pass


def ended():
    pass


def foreign():
    pass


def known():
    pass


def other():
    global dummy
    foreign()
    dummy = threading.current_thread()  # type: ignore[name-defined]
    known()
    done.release()


running, over = threading.Event(), threading.Event()
main, worker, new = threading.main_thread(), Worker(), threading.Thread(name="new")
worker_name = ["worker"]
worker.start()
running.wait()
look()
over.set()
worker.join()
ended()
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(other, ())
done.acquire()
