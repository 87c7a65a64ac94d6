"""The plugin of pytest with which scripts/prometheus_suite.py runs prometheus_client's own tests."""

from __future__ import annotations

import vmscope
from vmscope.integrations import prometheus

vmscope.start()
assert vmscope.status().path, vmscope.status().reason
prometheus.install(markers=True)
