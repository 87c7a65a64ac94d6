"""What the sampler finds in programs of known shares.

Shares of time on a processor, which a busy machine does not change. VMSCOPE_SHARES is for how many seconds each is
recorded: at 60 each share is within 3 points, at the few that a test may take within what chance allows.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from math import sqrt
from pathlib import Path

import pytest

from tests.support import Child
from tests.wait import wait_for
from vmscope.flight.convert import modes
from vmscope.flight.convert.profile import Profile

SECONDS = float(os.environ.get("VMSCOPE_SHARES", "6"))
PROGRAM = str(Path(__file__).parents[1] / "programs" / "recorded.py")
SETTINGS = (
    "settings=none",
    "jdk.ExecutionSample#enabled=true",
    "jdk.ExecutionSample#period=5ms",
    "jdk.NativeMethodSample#enabled=true",
    "vmscope.WaitSample#enabled=true",
    "vmscope.SamplerStatistics#enabled=true",
)

pytestmark = [pytest.mark.usefixtures("no_chunks_left"), pytest.mark.timeout(60 + 2 * SECONDS)]


def recorded(tmp_path: Path, work: str, mode: str = "cpu") -> Profile:
    path = tmp_path / "shares.jfr"
    option = f"-XX:StartFlightRecording=duration={SECONDS:g}s,filename={path},{','.join(SETTINGS)}"
    with Child([sys.executable, "-m", "vmscope", "run", option, PROGRAM, work]) as child:
        child.read_until(b"ready\n")
        wait_for(path.exists, "the recording has not ended", SECONDS + 30)
        child.send("")
    return modes.profile([str(path)], mode)


def shares(profile: Profile, *names: str) -> dict[str, float]:
    """Of all samples with one of these functions of the program, the innermost counts."""
    counts: Counter[str] = Counter()
    for (_, stack), samples in profile.stacks.items():
        functions = [profile.frames[frame][0].removeprefix("recorded.") for frame in reversed(stack)]
        counts[next((name for name in functions if name in names), "")] += samples
    found = sum(counts[name] for name in names)
    assert found >= 20 * SECONDS, f"a fifth of what a processor of its own would give: {counts}"
    return {name: counts[name] / found for name in names} | {"samples": found}


def near(found: dict[str, float], **expected: float) -> None:
    """Within 3 points and three standard deviations of so many samples."""
    for name, share in expected.items():
        allowed = 0.03 + 3 * sqrt(share * (1 - share) / found["samples"])
        assert abs(found[name] - share) <= allowed, f"{name}: {found}, not {share} +- {allowed:.3f}"


def test_three_functions(tmp_path: Path) -> None:
    profile = recorded(tmp_path, "three")
    near(shares(profile, "first", "second", "third"), first=0.6, second=0.3, third=0.1)


def test_who_sleeps_is_not_on_a_processor(tmp_path: Path) -> None:
    found = shares(recorded(tmp_path, "half"), "busy", "idle")
    assert found["idle"] <= 0.05, found


def test_a_call_in_c_that_keeps_the_gil_is_sampled(tmp_path: Path) -> None:
    found = shares(recorded(tmp_path, "power"), "power", "spin")
    assert found["power"] >= 0.97, found


def test_two_threads_that_fight_for_the_gil(tmp_path: Path) -> None:
    near(shares(recorded(tmp_path, "two"), "one", "other"), one=0.5, other=0.5)


def test_a_deep_stack_keeps_what_is_innermost(tmp_path: Path) -> None:
    profile = recorded(tmp_path, "deep")
    assert shares(profile, "spin", "deep")["spin"] >= 0.8
    assert max(len(stack) for _, stack in profile.stacks) <= 66, "64 frames, and what stands for the rest"
