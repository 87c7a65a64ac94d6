"""prometheus_client's metrics in the region: its API stays, its values are counters that tools see.

`install()` must come before the first metric is made. What prometheus_client's multiprocess mode does with files is
done with the regions of the processes: `MultiProcessCollector` needs no files, and `vmscope export` no collector.
"""

from __future__ import annotations

import importlib

from vmscope.integrations.prometheus.metrics import replacements
from vmscope.integrations.prometheus.values import GROUPS

MODULES = ("prometheus_client.values", "prometheus_client.metrics", "prometheus_client.multiprocess")


def install(*, markers: bool = False) -> None:
    """Puts the values of all metrics that are made from now on into the region of this process.

    `markers`: in multiprocess mode there are empty files as prometheus_client names its own: for code that lists them.
    ImportError without prometheus_client.
    """
    GROUPS.markers = GROUPS.markers or markers
    for name in MODULES:
        for owner, attribute, replacement in replacements(importlib.import_module(name)):
            setattr(owner, attribute, replacement)
