"""What stands in this process's region. The public functions make counters, or give those that exist."""

from __future__ import annotations

from vmscope.counters.registry import REGISTRY

counter, gauge, histogram = REGISTRY.counter, REGISTRY.gauge, REGISTRY.histogram
text, constant = REGISTRY.text, REGISTRY.constant
