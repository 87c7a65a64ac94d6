# Prints the pids of what it has started, waits for a line, and ends what it has started.
import multiprocessing
import os
import sys
import time


def work(queue, end):
    queue.put((os.getpid(), os.getppid()))
    end.wait()


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue, end = context.Queue(), context.Event()
    workers = [context.Process(target=work, args=(queue, end)) for i in range(2)]  # type: ignore[attr-defined]
    for worker in workers:
        worker.start()
    print([queue.get()[0] for worker in workers], flush=True)
    sys.stdin.readline()
    end.set()
    for worker in workers:
        worker.join()
