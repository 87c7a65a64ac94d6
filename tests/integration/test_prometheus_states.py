"""What prometheus_client has in one process only, over several: Info, Enum, set_function, remove and clear."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import StartVMScope
from tests.integration.test_export_server import Exporter, Start, start
from tests.integration.test_prometheus import DROPIN, folder
from tests.support import Child
from tests.wait import wait_for

__all__ = ["folder", "start"]

numbers = count()
LABEL = re.compile(r'\w+="(?:[^"\\]|\\.)*"')
# The parent commands its children: each evaluates the lines that it gets, and answers.
CHILDREN = """
children = []
def serve(reads, writes):
    for line in reads:
        try:
            exec(line, globals())
            answer = "done"
        except Exception as error:
            answer = repr(error)
        print(answer, file=writes, flush=True)
    os._exit(0)

def fork():
    (its, ours), (answers, said) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(ours), os.close(answers)
        for _, commands in children:
            commands.close()
        serve(open(its), open(said, "w"))
    children.append((open(answers), open(ours, "w")))

def tell(number, line):
    answers, commands = children[number]
    print(line, file=commands, flush=True)
    return answers.readline().strip()
"""


class Service:
    """A parent and two children: how they are told what to do, and what is exported and collected."""

    def __init__(self, child: Child, exporter: Exporter) -> None:
        self.child = child
        self.exporter = exporter

    def tell(self, number: int, line: str) -> None:
        assert self.child.ask(f"tell({number}, {line!r})") == "done"

    def exported(self) -> dict[str, float]:
        text = self.exporter.get()[1].decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {re.sub(r'service="[^"]*",user="\w+",?|,pid=.*', "", name): float(value) for name, _, value in lines}

    def collected(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(self.child.ask("json.dumps(collected())"))
        return found

    def shows(self, beginning: str, expected: dict[str, float]) -> None:
        """Both show these and no other series of this beginning."""
        for source in (self.exported, self.collected):
            wait_for(
                partial(self._are, source, beginning, expected),
                f"{expected} of {beginning}",
            )

    @staticmethod
    def _are(source: Callable[[], dict[str, float]], beginning: str, expected: dict[str, float]) -> bool:
        return of(source(), beginning) == expected


def of(found: dict[str, float], beginning: str) -> dict[str, float]:
    """The series of this beginning, their labels sorted; without when they were created."""
    return {
        f"{name}{{{','.join(sorted(LABEL.findall(labels)))}}}".removesuffix("{}"): value
        for (name, _, labels), value in ((key.partition("{"), value) for key, value in found.items())
        if name.startswith(beginning) and not name.endswith("_created")
    }


Run = Callable[[str], Service]


@pytest.fixture(params=["1", "0"], ids=["C", "python"])
def run(
    request: pytest.FixtureRequest, start: Start, start_vmscope: StartVMScope, folder: dict[str, str]
) -> Iterator[Run]:
    """In multiprocess mode."""

    def made(code: str) -> Service:
        service = f"states{os.getpid()}-{next(numbers)}"
        child = start_vmscope(
            f"-Dvmscope.service={service}",
            code=DROPIN + CHILDREN + code + "\nfork(); fork()",
            env={**folder, "VMSCOPE_NATIVE": request.param},
        )
        return Service(child, start(f"--vms={service}"))

    yield made
    for totals in Path("/tmp").glob(f"hsperfdata_*/services/states{os.getpid()}-*"):
        totals.unlink()


def test_info_is_one_series_for_all_that_say_the_same(run: Run) -> None:
    service = run(
        "build = Info('build', 'Which.'); build.info({'version': '1'}); site = Info('site', 'Where.', ['floor'])"
    )
    service.shows("build", {'build_info{version="1"}': 1})
    service.tell(0, "build.info({'version': '2', 'commit': 'a b'})")
    service.tell(1, "site.labels('3').info({'room': 'x'})")
    service.shows("build", {'build_info{version="1"}': 1, 'build_info{commit="a b",version="2"}': 1})
    service.shows("site", {'site_info{floor="3",room="x"}': 1})
    service.tell(0, "build.info({'version': '1'})")  # back again
    service.tell(1, "site.remove('3')")
    service.shows("build", {'build_info{version="1"}': 1})
    service.shows("site", {})


def test_enum_is_the_number_of_processes_in_each_state(run: Run) -> None:
    service = run("task = Enum('task', 'Doing.', states=['idle', 'busy'])")
    service.shows("task", {'task{task="idle"}': 3, 'task{task="busy"}': 0})
    service.tell(0, "task.state('busy')")
    service.shows("task", {'task{task="idle"}': 2, 'task{task="busy"}': 1})
    service.tell(1, "fork()")  # in the state of its parent
    service.shows("task", {'task{task="idle"}': 3, 'task{task="busy"}': 1})


def test_functions_are_asked_in_each_process(run: Run) -> None:
    code = """
level = {"now": 1.5}
queue = Gauge("queue", "How long.", multiprocess_mode="livesum")
queue.set_function(lambda: level["now"])
last = Gauge("last", "The last one.", multiprocess_mode="livemostrecent")
broken = Gauge("broken", "Never.", multiprocess_mode="livesum")
broken.set_function(lambda: 1 / 0)
"""
    service = run(code)
    service.shows("queue", {"queue": 4.5})
    service.tell(0, "level['now'] = 7; queue.set(100); queue.inc()")
    service.shows("queue", {"queue": 10})
    service.tell(1, "last.set_function(lambda: 42)")
    service.shows("last", {"last": 42})
    service.shows("broken", {"broken": 0})


REMOVED = """
sold = Counter("sold", "What was sold.", ["what", "how"])
level = Gauge("level", "How high.", ["tank"], multiprocess_mode="livesum")
delay = Histogram("delay", "How long.", ["path"], buckets=(1,))
size = Summary("size", "How much.", ["path"])
def count(amount=1):
    for what in ("tea", "a \\"b\\" #created"):
        sold.labels(what, "x").inc(amount)
    level.labels("1").set(amount); delay.labels("/").observe(amount); size.labels("/").observe(amount)
"""


def test_what_is_removed_is_in_no_scrape(run: Run) -> None:
    service = run(REMOVED)
    for number in range(2):
        service.tell(number, "count(0.5)")
    odd, tea = 'sold_total{how="x",what="a \\"b\\" #created"}', 'sold_total{how="x",what="tea"}'
    service.shows("sold", {odd: 1, tea: 1})
    service.tell(0, "sold.remove('tea', 'x'); held = delay.labels('/'); delay.clear(); size.remove('/'); level.clear()")
    service.tell(0, "held.observe(1)")  # counts unseen
    service.shows("sold", {odd: 1, tea: 0.5})
    service.shows("delay_bucket", {f'delay_bucket{{le="{le}",path="/"}}': 1 for le in ("1.0", "+Inf")})
    service.shows("level", {'level{tank="1"}': 0.5})
    service.shows("size_count", {'size_count{path="/"}': 1})
    service.tell(1, "sold.remove_by_labels({'what': 'tea'}); delay.clear(); size.clear(); level.remove('1')")
    service.shows("sold", {odd: 1})
    for beginning in ("delay", "level", "size"):
        service.shows(beginning, {})
    service.tell(0, "fork()")  # its parent's series are not there
    service.shows("delay", {})
    service.tell(0, "count(0.25)")  # from zero
    service.shows("level", {'level{tank="1"}': 0.25})
    service.shows("size_sum", {'size_sum{path="/"}': 0.25})
    service.shows("delay_count", {'delay_count{path="/"}': 1})
    service.shows("sold", {odd: 1.25, tea: 0.25})
    service.tell(1, "held = sold.labels('rum', 'x'); held.inc(3); sold.remove('rum', 'x'); held.inc(4)")
    pid = service.child.ask("tell(1, 'raise ValueError(os.getpid())')").strip("'")
    service.child.ask("children[1][1].close()")
    wait_for(lambda: not os.path.exists(f"/proc/{pid[11:-1]}/fd/0"), "it ends")
    for _ in range(2):  # before and after its numbers are in the totals
        service.exporter.get()
        assert of(service.exported(), "sold") == {odd: 1.25, tea: 0.25}
