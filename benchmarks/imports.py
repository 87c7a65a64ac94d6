"""`python -m benchmarks imports`: what the commands of the fast paths import on top of a bare Python, and its cost."""

from __future__ import annotations

import subprocess
import sys

SHOWN = 12
COMMANDS = (["ps"], ["jps"], ["run", "-c", "pass"])


def imported(*command: str) -> dict[str, int]:
    """Each module and its own microseconds, by -X importtime."""
    run = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True)
    found = {}
    for line in run.stderr.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            found[name.strip()] = int(own)
    return found


def show() -> None:
    bare = imported("-c", "pass")
    for command in COMMANDS:
        added = {name: own for name, own in imported("-m", "vmscope", *command).items() if name not in bare}
        print(f"\nvmscope {' '.join(command)}: {len(added)} modules, {sum(added.values()) / 1000:.1f} ms")
        for name, own in sorted(added.items(), key=lambda item: -item[1])[:SHOWN]:
            print(f"  {own / 1000:5.2f} ms  {name}")
