"""Region files of the test's own making, in a tmp directory of the test's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vmscope.wire import encode

PAGE = os.sysconf("SC_PAGE_SIZE")
NONE, TICKS, STRING = 1, 3, 5
CONSTANT, VARIABLE = 1, 3

Value = int | str


def entries(values: Mapping[str, Value], variability: int = VARIABLE) -> list[bytes]:
    """One entry a value: numbers without a unit, texts with room for 40 more bytes."""
    return [
        encode.entry(name, units=NONE, variability=variability, value=value)
        if isinstance(value, int)
        else encode.entry(
            name, units=STRING, variability=variability, value=value.encode(), capacity=len(value.encode()) + 41
        )
        for name, value in values.items()
    ]


def image(parts: Iterable[bytes], *, size: int = 8 * PAGE, accessible: int = 1, stamp: int = 1) -> bytes:
    """A whole region of these entries."""
    made = list(parts)
    body = b"".join(made)
    head = encode.prologue(
        used=32 + len(body), num_entries=len(made), accessible=accessible, mod_time_stamp=stamp if made else 0
    )
    return (head + body).ljust(size, b"\0")


def region(values: Mapping[str, Value], **options: int) -> bytes:
    return image(entries(values), **options)


def cpython(pid: int, main: str = "app", *, ticks: int | None = None, stack: int = 0, **more: Value) -> bytes:
    """What vmscope publishes for a process, as far as readers look at it."""
    with open(f"/proc/{pid}/stat") as file:
        started = int(file.read().rpartition(")")[2].split()[19])
    return region(
        {
            "java.property.java.vm.name": "CPython",
            "java.property.java.vm.version": "3.12.1",
            "sun.rt.javaCommand": f"{main} --port 80",
            "java.rt.vmArgs": "-Da=b",
            "java.rt.vmFlags": "",
            "vmscope.process.startTicks": started if ticks is None else ticks,
            "vmscope.process.stackStart": stack,
            **more,
        }
    )


def hotspot(begin: int, main: str = "org.example.Main", home: str = "/opt/jdk") -> bytes:
    """What a JVM publishes that began at this time (ms since the epoch) and has its java in this home."""
    return region(
        {
            "java.property.java.vm.name": "OpenJDK 64-Bit Server VM",
            "java.property.java.vm.version": "17.0.1",
            "java.property.java.home": home,
            "sun.rt.javaCommand": f"{main} serve",
            "sun.rt.createVmBeginTime": begin,
        }
    )


def publish(tmp: Path, pid: int | str, content: bytes, *, user: str = "someone", mode: int = 0o600) -> Path:
    """Puts a region's file where its readers look, and gives back its path."""
    directory = tmp / f"hsperfdata_{user}"
    directory.mkdir(mode=0o755, exist_ok=True)
    path = directory / str(pid)
    path.write_bytes(content)
    path.chmod(mode)
    return path
