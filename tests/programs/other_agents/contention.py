import threading
import time

gate = threading.Lock()


def work():
    with gate:
        pass


with gate:
    worker = threading.Thread(target=work, name="worker")
    worker.start()
    time.sleep(0.1)  # it waits for the gate by now
worker.join()
bell = threading.Condition()
with bell:
    bell.wait(0.01)
