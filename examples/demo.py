"""What `make demo` runs: a Python service and a JVM at work, seen by vmscope's tools and by the JDK's.

Each step prints its command and what the command said, and checks that. Exit status 0 only if every
step showed what it should; what was started is stopped again in any case.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
import jdk

from vmscope import terminal

ROOT = Path(__file__).resolve().parents[1]
VMSCOPE = str(Path(sys.executable).with_name("vmscope"))
PATIENCE = 30.0  # seconds for anything that is waited for
MIN_ORDERS = 200


class DemoError(Exception):
    """A step did not show what it should."""


class Service:
    """A web service of the demo's own: started, known by the address it prints, stopped by SIGTERM.

    `path` is what customers ask it for; `{}` in it is the number of the order.
    """

    def __init__(self, name: str, command: list[str], path: str = "orders/{}") -> None:
        self.name = name
        self.path = path
        # A session of its own: Ctrl-C is for the demo, which then stops its services in order.
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        self.pid = self.process.pid
        self.address = ""

    def __enter__(self) -> Service:
        try:
            self.address = self._read_address()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        end = time.monotonic() + PATIENCE
        said = ""
        while time.monotonic() < end and self.process.poll() is None:
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                said += os.read(self.process.stdout.fileno(), 4096).decode(errors="replace")
                if found := re.search(r"http://[\d.]+:\d+/", said):
                    return found[0]
        raise DemoError(f"the {self.name} did not start; it said {said!r}")


class Customers:
    """Threads that order from a service as long as the demo runs."""

    def __init__(self, *services: Service) -> None:
        self.orders = dict.fromkeys((service.name for service in services), 0)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._order, args=(service,)) for service in services for _ in "ab"]

    def __enter__(self) -> Customers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while min(self.orders.values()) < MIN_ORDERS:
            if time.monotonic() > end:
                raise DemoError(f"too few orders were served: {self.orders}")
            time.sleep(0.05)

    def _order(self, service: Service) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                with urllib.request.urlopen(service.address + service.path.format(number), timeout=PATIENCE) as answer:
                    answer.read()
                self.orders[service.name] += 1
            except OSError:
                if not self._stop.is_set():
                    time.sleep(0.1)


def java_service(home: str) -> Service:
    """A JVM that serves: the shop where the JDK can compile it, else the JDK's own file server."""
    java = os.path.join(home, "bin", "java")
    options = ["-Xmx48m", "-Xmn8m", "-XX:+UseSerialGC"]
    if os.access(os.path.join(home, "bin", "javac"), os.X_OK):
        return Service("JVM", [java, *options, "examples/Shop.java"])
    server = [java, *options, "-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0", "-o", "none", "-d", str(ROOT)]
    return Service("JVM", server, "README.md")


def show(title: str, command: list[str], check: Callable[[str], bool], *, lines: int = 40) -> None:
    """Runs a step: the command, its output, and whether that is what it should be."""
    shown = " ".join([os.path.basename(command[0]), *command[1:]])
    print(f"\n# {title}\n$ {shown}", flush=True)
    run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    output = run.stdout.splitlines()
    for line in output[:lines]:
        print(terminal.printable(line))
    if len(output) > lines:
        print(f"... and {len(output) - lines} lines more")
    if run.stderr:
        print(terminal.lines(run.stderr), end="")
    if run.returncode != 0 or not check(run.stdout):
        raise DemoError(f"{shown} (exit status {run.returncode}) did not show what it should: {title}")


def has(*patterns: str) -> Callable[[str], bool]:
    """That each pattern is found in the output, at the start of a line or behind blanks."""
    return lambda output: all(re.search(rf"(?m)^\s*{pattern}", output) for pattern in patterns)


def moved(output: str) -> bool:
    """That the first and the last line of a table of samples differ, and that it has three of them."""
    rows = output.splitlines()[1:]
    return len(rows) == 3 and rows[0] != rows[-1]


def steps(python: Service, java: Service, tools: str) -> None:
    tool = {name: os.path.join(tools, name) for name in jdk.TOOLS}
    both = has(rf"{python.pid}\s.*CPython", rf"{java.pid}\s.*HotSpot")
    number = r"\d+"
    show("Every Python and Java VM of this host", [VMSCOPE, "ps"], both)
    show("The Python service at work", [VMSCOPE, "stat", str(python.pid), "500ms", "3"], moved)
    show("The JVM at work", [VMSCOPE, "stat", str(java.pid), "500ms", "3"], moved)
    show("The Python service's own counters", [VMSCOPE, "counters", str(python.pid), "shop.*"], has("shop.orders"))
    show(
        "The JVM's collectors",
        [VMSCOPE, "counters", str(java.pid), "sun.gc.collector.*.invocations"],
        has(r"sun\.gc\.collector\.0\.invocations"),
    )
    show("The JDK's jps sees both", [tool["jps"], "-lm"], has(f"{python.pid} examples/shop", f"{java.pid} "))
    show("The JDK's jstat on the Python service", [tool["jstat"], "-gcutil", str(python.pid), "500", "3"], moved)
    show(
        "The JDK's jcmd on the Python service",
        [tool["jcmd"], str(python.pid), "PerfCounter.print"],
        has(rf"shop\.orders={number}", rf"sun\.gc\.collector\.0\.invocations={number}", 'shop.state="open"'),
        lines=60,
    )


def gone(pids: list[int]) -> bool:
    """Whether nothing of these processes is left, neither process nor region."""
    run = subprocess.run([VMSCOPE, "ps", "--all"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    return not any(re.search(rf"(?m)^\s*{pid}\s", run.stdout) for pid in pids)


def main() -> int:
    tools = jdk.find()
    if tools is None:
        print("demo: there is no JDK; `make setup` brings one", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pids: list[int] = []
    try:
        with ExitStack() as stack:
            python = stack.enter_context(Service("Python service", [VMSCOPE, "run", "examples/shop.py"]))
            pids.append(python.pid)
            java = stack.enter_context(java_service(os.path.dirname(tools)))
            pids.append(java.pid)
            customers = stack.enter_context(Customers(python, java))
            customers.wait()
            steps(python, java, tools)
        if not gone(pids):
            raise DemoError("a service was stopped and is still listed")
    except DemoError as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\ndemo: interrupted; {len(pids)} services were stopped", file=sys.stderr)
        return 130
    print("\nEverything showed what it should; both services are stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
