"""What stands in this process's region. The public functions make counters, or give those that exist."""

from __future__ import annotations

from vmscope.counters.registry import REGISTRY

counter, gauge, float_gauge = REGISTRY.counter, REGISTRY.gauge, REGISTRY.float_gauge
histogram, text, constant = REGISTRY.histogram, REGISTRY.text, REGISTRY.constant
