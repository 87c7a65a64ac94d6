"""Metrics of all VMs of a host for Prometheus and OpenTelemetry: read from outside, by their regions."""
