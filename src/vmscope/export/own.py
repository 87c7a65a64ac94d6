"""The exporter's metrics of itself."""

from __future__ import annotations

from vmscope.export.model import COUNTER, GAUGE, Family

VMS = Family("vmscope_export_vms", GAUGE, "VMs in this answer.", standard=True)
LINES = Family("vmscope_export_samples", GAUGE, "Samples of VMs in this answer.", standard=True)
UNREADABLE = Family("vmscope_export_unreadable_vms", GAUGE, "VMs whose region cannot be read.", standard=True)
DROPPED = Family("vmscope_export_dropped_series", GAUGE, "Series that this answer lacks, by the reason.", standard=True)
SECONDS = Family(
    "vmscope_export_read_seconds", GAUGE, "How long it took to read the VMs for this answer.", unit="seconds",
    standard=True,
)  # fmt: skip
SCRAPES = Family("vmscope_export_reads", COUNTER, "Times that the VMs were read.", standard=True)
FAMILIES = (VMS, LINES, UNREADABLE, DROPPED, SECONDS, SCRAPES)
