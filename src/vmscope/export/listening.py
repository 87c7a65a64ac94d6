"""Where an exporter listens, as text."""

from __future__ import annotations

from vmscope.errors import CommandLineError

PORTS = 1 << 16


def split(listen: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[V6]:PORT` or `:PORT`, which is a port of the loopback."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and int(port) < PORTS):
        raise CommandLineError(f"cannot listen at {listen!r}", hint="use HOST:PORT or unix:PATH")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
