"""`python -m benchmarks.peer METER inc|observe|fork`: measures updates of one meter, each time that it reads a line.

`inc`, `observe`: prints the wall and CPU seconds of one update, from ten times as many as the line says.
`fork`: prints for some forked children how many seconds their first update took, with 170 counters in the parent.
"""

from __future__ import annotations

import sys

from benchmarks import meters
from benchmarks.updates import first_updates, statement


def main(name: str, what: str) -> None:
    meter = meters.make(name, labelled=what == "fork")
    counter = meter.subjects["inc"]
    children = [counter.labels(n=n) for n in range(meters.LABELS)] if what == "fork" else []
    print("ready", flush=True)
    while line := sys.stdin.readline():
        if what == "fork":
            print(*first_updates(children)[0].values, flush=True)
        else:
            print(*statement(meter.statements[what], meter.subjects[what], int(line))(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
