"""A program: threads that start and stop the export within, ask it, and have the region grow; what came of it, as JSON.

Run on a free-threaded interpreter, also under ThreadSanitizer. `python -m tests.serving_threads [THREADS [ROUNDS]]`
"""

from __future__ import annotations

import json
import socket
import sys
import threading

import vmscope
import vmscope.export
from vmscope.export import inside

THREADS, ROUNDS = (int(argument) for argument in (*sys.argv[1:], "4", "100")[:2])


def main() -> None:
    vmscope.start("-XX:PerfDataMemorySize=64k")
    before = vmscope.status().capacity
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    delay = vmscope.histogram("serving.delay", bounds=[1.0])
    answers: list[bytes] = []
    failures: list[BaseException] = []

    def work(index: int) -> None:
        for i in range(ROUNDS):
            vmscope.counter(f"serving.made.{index}.{i}.{'x' * 400}").inc()
            delay.labels(index=index).observe(i, exemplar={"trace_id": str(i)})
            if i % 10 == index:
                vmscope.export.start(port)
            elif i % 10 == 9 - index:
                inside.stop()
            elif i % 5 == 0:
                answers.append(asked(port))

    def run(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    vmscope.export.start(port)
    while not (last := asked(port)):
        pass
    status = vmscope.status()
    made = last.count(b"serving_made_")
    vmscope.stop()
    print(
        json.dumps(
            {
                "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
                "grown": status.capacity > before,
                "overflow": status.overflow,
                "ok": all(each.startswith(b"HTTP/1.1 200 ") for each in answers if each) and made > 0,
                "count": sum(delay.labels(index=index).count for index in range(THREADS)),
            }
        )
    )


def asked(port: int) -> bytes:
    """Nothing where nobody listens just now, or where that one stops."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
            return answer
    except OSError:
        return b""


if __name__ == "__main__":
    main()
