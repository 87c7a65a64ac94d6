"""Prints every VM's numbers in Prometheus' text format; docs/how-to/export.md uses it."""

from __future__ import annotations

import re
import sys

import vmscope


def lines(pattern: str) -> list[str]:
    found = []
    for vm in vmscope.vms():
        for name, value in vm.values().items():
            if isinstance(value, int) and re.match(pattern, name):
                metric, _, labels = name.partition("{")
                labels = f"{labels.removesuffix('}')}," if labels else ""
                found.append(f'{metric.replace(".", "_")}{{{labels}pid="{vm.pid}"}} {value}')
    return found


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1] if len(sys.argv) > 1 else "")))
