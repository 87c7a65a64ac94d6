"""Speedscope's own format: a profile for all threads, then one for each."""

from __future__ import annotations

import json

from vmscope.flight.convert.profile import BYTES, NANOSECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from vmscope.flight.convert.profile import Profile, Stack

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {BYTES: "bytes", NANOSECONDS: "nanoseconds"}


def speedscope(profile: Profile, title: str) -> bytes:
    """The file's bytes."""
    by_thread: dict[str, dict[Stack, int]] = {thread: {} for thread in profile.threads}
    for (thread, stack), weight in profile.stacks.items():
        by_thread[thread][stack] = weight
    unit = _UNITS.get(profile.unit, "none")
    profiles = [_profile("all threads", unit, profile.merged())]
    if len(by_thread) > 1:
        profiles += [_profile(thread, unit, stacks) for thread, stacks in by_thread.items()]
    whole = {
        "$schema": _SCHEMA,
        "name": title,
        "exporter": "vmscope",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name, _ in profile.frames]},
        "profiles": profiles,
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def _profile(name: str, unit: str, stacks: Mapping[Stack, int]) -> dict[str, object]:
    ordered = sorted(stacks.items())  # what begins alike stands together
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(stacks.values()),
        "samples": [stack for stack, _ in ordered],
        "weights": [weight for _, weight in ordered],
    }
