# Programs whose main thread runs Python code, stands in C until it is sent a line, or ends when it is told.
import sys
import threading


def listen():
    for line in sys.stdin:
        print(eval(line), flush=True)
    done.set()


done = threading.Event()
threading.Thread(target=listen).start()
print("ready", flush=True)
while not done.wait(0.01):
    pass
