import threading


def work():
    count = 0
    try:
        while True:
            count += 1
    except RuntimeError as error:
        print(repr(error), flush=True)


worker = threading.Thread(target=work, name="worker")
worker.start()
worker.join()
