import multiprocessing
import os
import sys
import time

import vmscope


def report(counter="test.jobs"):
    vmscope.start()  # a process that was forked is started already
    vmscope.counter(counter).inc()
    end = time.monotonic() + 20
    while vmscope.status().path is None and time.monotonic() < end:
        time.sleep(0.005)  # a worker imports no tests.wait
    return os.getpid(), vmscope.status().path


def work(queue):
    queue.put(report())


def nested(queue):
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=[queue])  # type: ignore[attr-defined]
    child.start()
    queue.put(report())
    child.join()


def main():
    context = multiprocessing.get_context(sys.argv[1])
    vmscope.start()
    queue = context.Queue()
    seen = []
    for target, count in ((work, 1), (nested, 2)):
        process = context.Process(target=target, args=[queue])  # type: ignore[attr-defined]
        process.start()
        seen += [queue.get(timeout=60) for i in range(count)]
        process.join()
    with context.Pool(2) as pool:
        for result in [pool.apply_async(report) for i in range(6)]:
            seen.append(result.get(timeout=60))
        pool.close()
        pool.join()
    wrong = [(pid, path) for pid, path in seen if path is None or not path.endswith(f"/{pid}")]
    left = [path for pid, path in seen if path is not None and os.path.exists(path)]
    print(len(seen), wrong, left, os.path.exists(vmscope.status().path))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
