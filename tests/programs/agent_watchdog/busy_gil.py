import threading


def work():
    while True:
        sum(range(1000))


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
work()
