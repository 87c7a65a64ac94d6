import threading
import time

end = False


def stuck():
    pass


def late():
    while not end:
        time.sleep(0.001)  # no Python function is called here
    stuck()


def step():
    pass


def loop():
    while True:
        step()


for target in (late, late, loop, loop):
    threading.Thread(target=target, daemon=True).start()
time.sleep(0.05)  # they are in the middle
end = True
