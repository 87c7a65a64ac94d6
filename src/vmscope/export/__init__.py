"""Metrics of all VMs of a host for Prometheus and OpenTelemetry: read from outside, by their regions.

`start` serves those of this process's service from within.
"""

from __future__ import annotations

from vmscope.export.inside import start, stop

__all__ = ["start", "stop"]
