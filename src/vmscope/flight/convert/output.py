"""Profiles as files, each in the format that the end of its name asks for."""

from __future__ import annotations

import os

from vmscope.flight.convert.collapsed import collapsed
from vmscope.flight.convert.flame_graph import flame_graph
from vmscope.flight.convert.pprof import pprof
from vmscope.flight.convert.profile import BYTES, NANOSECONDS
from vmscope.flight.convert.speedscope import speedscope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from vmscope.flight.convert.profile import Profile

RECORDING = ".jfr"
HTML = ".html"
ENDINGS = (HTML, ".collapsed", ".speedscope.json", ".pb.gz", RECORDING)

_PIECE = 1 << 20


def ending(path: str) -> str:
    """Which of the endings a name has; "" for none."""
    return next((each for each in ENDINGS if path.endswith(each) and os.path.basename(path) != each), "")


def write(profile: Profile, path: str, title: str, about: str) -> None:
    """Writes a file of any of the endings but the recording's. OSError."""
    kind = ending(path)
    if kind == HTML:
        data = flame_graph(profile, title, about)
    elif kind == ".collapsed":
        data = collapsed(profile)
    elif kind == ".speedscope.json":
        data = speedscope(profile, title)
    elif kind == ".pb.gz":
        data = pprof(profile)
    else:
        raise ValueError(f"{path} ends in none of {', '.join(ENDINGS)}")
    with open(path, "wb") as file:
        file.write(data)


def join(recordings: Iterable[str], path: str) -> None:
    """One recording of several: their chunks, one after the other. OSError."""
    with open(path, "wb") as file:
        for each in recordings:
            with open(each, "rb") as recording:
                while data := recording.read(_PIECE):
                    file.write(data)


def amount(weight: int, unit: str) -> str:
    """A weight with its unit, for people."""
    if unit == BYTES:
        size = float(weight)
        for name in ("B", "KiB", "MiB", "GiB", "TiB"):
            if size < 1024 or name == "TiB":
                return f"{size:.1f} {name}" if name != "B" else f"{weight} B"
            size /= 1024
    if unit == NANOSECONDS:
        return f"{weight / 1e9:.2f} s" if weight >= 10**9 else f"{weight / 1e6:.2f} ms"
    return f"{weight} {unit.removesuffix('s') if weight == 1 else unit}"


def summary(profile: Profile) -> str:
    """What it is, on one line: `cpu: 129 samples of 3 threads in 4.0 s`."""
    threads = len(profile.threads)
    whose = f"{threads} threads" if threads != 1 else "1 thread"
    seconds = (profile.end - profile.begin) / 1e9
    return f"{profile.mode}: {amount(profile.total, profile.unit)} of {whose} in {seconds:.1f} s"
