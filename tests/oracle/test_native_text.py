"""Text between agents and programs: the same agent has to hear the same on HotSpot 17 and here."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

SOURCE = Path(__file__).parents[1] / "native_agents" / "text.c"
# HotSpot stores a string that NewStringUTF makes of malformed bytes in a way in which it equals no other, not even one
# of the same characters. All that can be asked of it is the same.
EQUALS_NONE, EQUALS = "  back: 0 1", "  back: 1 1"


def test_strings_go_over_as_in_a_jvm(tmp_path: Path) -> None:
    agent = build(SOURCE.read_text(), tmp_path)
    theirs, ours = agent.java_lines(), agent.lines()
    different = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert set(different) == {(EQUALS_NONE, EQUALS)}
    assert len(different) == 7
    assert len(theirs) > 1000
