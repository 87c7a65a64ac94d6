"""Runs the benchmarks, prints their table, and keeps the samples in benchmarks/results."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks import (
    agents,
    attach,
    autostart,
    client,
    commands,
    events,
    export,
    flight,
    fork,
    hazards,
    hostile,
    imports,
    instruments,
    listing,
    native_agents,
    peers,
    regions,
    report,
    running,
    startup,
    threads,
    updates,
    views,
    world,
)
from benchmarks.measure import Row

GROUPS: dict[str, Callable[[int], Iterator[Row]]] = {
    "listing": listing.figures,
    "views": views.figures,
    "attach": attach.figures,
    "client": client.figures,
    "commands": commands.figures,
    "regions": regions.figures,
    "startup": startup.figures,
    "autostart": autostart.figures,
    "fork": fork.figures,
    "updates": updates.figures,
    "threads": threads.figures,
    "events": events.figures,
    "agents": agents.figures,
    "native_agents": native_agents.figures,
    "peers": peers.figures,
    "export": export.figures,
    "flight": flight.figures,
    "running": running.figures,
    "instruments": instruments.figures,
    "hostile": hostile.figures,
    "hazards": hazards.figures,
}
NAMES = (*GROUPS, "imports")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(NAMES)}; all but imports by default")
    parser.add_argument(
        "--rounds", type=int, default=15, help="how often each is measured, after two that do not count"
    )
    parser.add_argument("--pythons", default="", help="versions such as 3.11,3.12: each found is measured")
    parser.add_argument("--write-docs", action="store_true", help="write docs/performance.md from this run")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    if options.pythons:
        return several(options.pythons.split(","), options)
    world.enter(sys.argv[1:])
    names = [name for name in options.names or GROUPS if name in GROUPS]
    passed = run(names, options.rounds) if names else True
    if "imports" in options.names:
        imports.show()
    if options.write_docs and names:
        report.write_page([f"{sys.version_info[0]}.{sys.version_info[1]}"])
    return 0 if passed else 1


def run(names: list[str], rounds: int) -> bool:
    """Measures these groups; whether each could be measured and no figure is above its limit."""
    found_on = report.machine()
    measured: list[Row] = []
    broken = False
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            measured.extend(GROUPS[name](rounds))
        except RuntimeError as error:  # the other groups are still worth measuring
            print(f"{name}: {error}", file=sys.stderr)
            broken = True
    report.save(found_on, measured)
    print(report.text(found_on, measured))
    return not broken and all(row.passed is not False for row in measured)


def several(versions: list[str], options: argparse.Namespace) -> int:
    """The same with each Python that is found, each in an environment under build/."""
    status, found = 0, []
    setup = world.ROOT / "scripts" / "setup"
    for version in versions:
        folder = f"build/python-{version}"
        environment = {**os.environ, "PYTHON": version, "VENV": folder}
        missing = subprocess.run([setup, "--missing"], env=environment, cwd=world.ROOT, capture_output=True, text=True)
        if missing.stdout.strip():
            print(f"CPython {version} is not found here", file=sys.stderr)
            continue
        subprocess.run([setup, "bench"], env=environment, cwd=world.ROOT, check=True)
        command = [f"{world.ROOT}/{folder}/bin/python", "-m", "benchmarks", "--rounds", str(options.rounds)]
        status |= subprocess.run([*command, *options.names], cwd=world.ROOT).returncode
        found.append(version)
    if options.write_docs:
        report.write_page(found)
    return status


if __name__ == "__main__":
    sys.exit(main())
