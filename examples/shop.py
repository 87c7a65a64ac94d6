"""A small web shop that counts what it does: four worker threads serve orders over HTTP.

    vmscope run examples/shop.py [PORT]

Prints its address on one line and serves until SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from socket import socket

import vmscope

WORKERS = 4

orders = vmscope.counter("shop.orders", units=vmscope.Units.EVENTS)
failures = vmscope.counter("shop.failures", units=vmscope.Units.EVENTS)
busy = vmscope.counter("shop.busy", units=vmscope.Units.TICKS)  # ns spent on orders
waiting = vmscope.gauge("shop.waiting")
state = vmscope.text("shop.state", capacity=16)


class Line:
    """One line of an order. It knows its order, and the order it: a cycle that only the collector frees."""

    def __init__(self, order: Order, article: int) -> None:
        self.order = order
        self.article = article


class Order:
    def __init__(self, number: int) -> None:
        self.lines = [Line(self, number * 7 % 100 + i) for i in range(50)]

    def total(self) -> int:
        return sum(line.article for line in self.lines)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        start = time.monotonic_ns()
        name = self.path.rpartition("/")[2]
        if name.isdigit():
            body = json.dumps({"order": int(name), "total": Order(int(name)).total()}).encode()
            self.send_response(200)
            orders.inc()
        else:
            body = b'{"error": "no such order"}'
            self.send_response(404)
            failures.inc()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        busy.add(time.monotonic_ns() - start)

    def log_message(self, format: str, *args: object) -> None:
        pass


class PooledServer(HTTPServer):
    """Accepts on one thread, serves on WORKERS others."""

    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._requests: queue.SimpleQueue[tuple[socket, object]] = queue.SimpleQueue()
        for number in range(WORKERS):
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True).start()

    def process_request(self, request: socket, client_address: object) -> None:  # type: ignore[override]
        self._requests.put((request, client_address))
        waiting.set(self._requests.qsize())

    def _work(self) -> None:
        while True:
            request, address = self._requests.get()
            waiting.set(self._requests.qsize())
            try:
                self.finish_request(request, address)
            except OSError:
                failures.inc()  # the client went away
            finally:
                self.shutdown_request(request)


def main() -> None:
    server = PooledServer(int(sys.argv[1]) if sys.argv[1:] else 0)

    def stop(*_: object) -> None:
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    state.set("open")
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
    state.set("closed")


if __name__ == "__main__":
    main()
