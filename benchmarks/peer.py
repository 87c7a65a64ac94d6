"""`python -m benchmarks.peer METER inc|observe|fork|many`: measures updates of one meter, each time it reads a line.

`inc`, `observe`: prints the wall and CPU seconds of one update, from ten times as many as the line says.
`fork`, `many`: prints for some forked children how many seconds their first update took, with 170 counters in the
parent, or 20,000.
"""

from __future__ import annotations

import sys

from benchmarks import meters
from benchmarks.updates import first_updates, statement

MANY = 20_000


def main(name: str, what: str) -> None:
    series = {"fork": meters.LABELS, "many": MANY}.get(what, 0)
    meter = meters.make(name, labelled=series > 0)
    counter = meter.subjects["inc"]
    children = [counter.labels(n=n) for n in range(series)]
    print("ready", flush=True)
    while line := sys.stdin.readline():
        if series:
            print(*first_updates(children, 11 if what == "many" else 41)[0].values, flush=True)
        else:
            print(*statement(meter.statements[what], meter.subjects[what], int(line))(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
