import threading

import hammer  # type: ignore[import-not-found]

over = threading.Event()


def read():
    while not over.is_set():
        hammer.run(50, 64)


def churn():
    while not over.is_set():
        made = [threading.Thread(target=sorted, args=([1],)) for _ in range(5)]
        for each in made:
            each.start()
        for each in made:
            each.join()


threads = [threading.Thread(target=each) for each in (read, churn)]
for each in threads:
    each.start()
hammer.repair(20_000)
over.set()
for each in threads:
    each.join()
print("done")
