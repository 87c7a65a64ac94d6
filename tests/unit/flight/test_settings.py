"""What is recorded: names, files of the JDK's, what clients choose, and what several recordings come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmscope.errors import OptionError
from vmscope.flight.settings import OPTIONS, EventSettings, Settings, combined, rate, timespan
from vmscope.flight.types import EVENT_TYPES

MS, S = 1_000_000, 1_000_000_000


def write(folder: Path, text: str) -> str:
    path = folder / "own.jfc"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "period", "threshold"), [("default", 20 * MS, 20 * MS), ("profile.jfc", 10 * MS, 10 * MS)]
)
def test_named_settings(name: str, period: int, threshold: int) -> None:
    settings = Settings([name])
    assert settings.of("jdk.ExecutionSample") == EventSettings(True, period=period)
    assert settings.of("jdk.ThreadSleep") == EventSettings(True, stack=True, threshold=threshold)
    assert settings.of("jdk.CPULoad").period == S
    assert settings.of("jdk.JVMInformation").chunk == "beginChunk"
    assert set(settings.values) <= set(EVENT_TYPES)


def test_nothing_is_named() -> None:
    assert Settings(["none"]).values == {}
    assert combined([Settings(["none"], [("+shop.Order#enabled", "true")])]) == {"shop.Order": EventSettings(True)}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_choice_of_each_option(option: str) -> None:
    for choice in OPTIONS[option].choices or ("3 ms",):
        assert combined([Settings(["default"], [(option, choice)])])


def test_choices() -> None:
    settings = Settings(["default"], [("method-profiling", "off"), ("jdk.ThreadSleep#threshold", "5 ms")])
    assert not settings.of("jdk.ExecutionSample").enabled
    assert settings.of("jdk.ThreadSleep").threshold == 5 * MS
    assert settings.warnings == []


def test_what_is_not_known_is_a_warning() -> None:
    settings = Settings(["default"], [("nosuch", "3"), ("jdk.NoSuch#threshold", "5ms"), ("+a.B#enabled", "true")])
    assert settings.warnings == [
        "The .jfc option/setting 'nosuch' doesn't exist.",
        "The .jfc option/setting 'jdk.NoSuch#threshold' doesn't exist.",
    ]
    assert settings.of("a.B").enabled


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (("jdk.ThreadSleep#threshold", "abc"), "'abc' is not a valid timespan"),
        (("jdk.ThreadSleep#enabled", "maybe"), "'maybe' is not a valid boolean"),
        (("jdk.ObjectAllocationSample#throttle", "3"), "'3' is not a valid rate"),
        (("gc", "nosuch"), "Incorrect value 'nosuch'. Valid values are 'off', 'normal', 'detailed', 'high' and 'all'."),
        (("locking-threshold", "soon"), "'soon' is not a valid timespan"),
    ],
)
def test_values_that_are_not_valid(choice: tuple[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Settings(["default"], [choice])


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(OptionError, match=r"Could not find file '/none/a\.jfc'"):
        Settings(["/none/a.jfc"])


CONTROLS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
  <event name="jdk.ThreadSleep">
    <setting name="enabled" control="sleeps">true</setting>
    <setting name="threshold" control="limit">20 ms</setting>
  </event>
  <event name="jdk.ExecutionSample">
    <setting name="enabled">true</setting>
    <setting name="period" control="interval">20 ms</setting>
  </event>
  <event name="com.sun.Unknown"><setting name="threshold">of another kind</setting></event>
  <control>
    <selection name="speed" default="slow">
      <option name="slow">1</option><option name="fast">2</option>
    </selection>
    <text name="limit">7 ms</text>
    <flag name="sleeps">true</flag>
    <condition name="interval" true="5 ms"><test name="speed" operator="equal" value="2"/></condition>
    <condition name="interval" true="50 ms">
      <not><or><test name="speed" operator="equal" value="2"/><test name="speed" operator="equal" value="3"/></or></not>
    </condition>
  </control>
</configuration>
"""


def test_controls_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, CONTROLS)
    slow, fast = Settings([path]), Settings([path], [("speed", "fast"), ("sleeps", "false")])
    assert slow.of("jdk.ExecutionSample").period == 50 * MS
    assert slow.of("jdk.ThreadSleep") == EventSettings(True, threshold=7 * MS)
    assert fast.of("jdk.ExecutionSample").period == 5 * MS
    assert not fast.of("jdk.ThreadSleep").enabled
    assert slow.of("vmscope.WaitSample").enabled, "a file of a JVM's does not know it"
    with pytest.raises(OptionError, match="'slow' and 'fast'"):
        Settings([path], [("speed", "medium")])


def test_of_two_names_the_later_one_counts(tmp_path: Path) -> None:
    path = write(tmp_path, CONTROLS)
    assert Settings(["default", path]).of("jdk.ThreadSleep").threshold == 7 * MS
    assert Settings([path, "default"]).of("jdk.ThreadSleep").threshold == 20 * MS
    assert Settings(["default", path]).of("jdk.CPULoad").enabled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<configuration>",
        "no XML",
        '<!DOCTYPE a [<!ENTITY b "c">]><configuration>&b;</configuration>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><configuration/>',
        "<a>" * 100_000,
        "<a>" * 40 + "</a>" * 40,
        '<configuration><event name="jdk.ThreadSleep"><setting name="threshold">x</setting></event></configuration>',
    ],
)
def test_files_that_are_not_settings(tmp_path: Path, text: str) -> None:
    with pytest.raises(OptionError):
        Settings([write(tmp_path, text)])


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="at most 4 MiB"):
        Settings([write(tmp_path, " " * (4 << 20) + "<configuration/>")])


def test_several_recordings_each_get_what_they_ask_for() -> None:
    one = Settings(["none"], [("+a.B#enabled", "true"), ("+a.B#threshold", "5ms"), ("+a.B#period", "endChunk")])
    other = Settings(["none"], [("+a.B#enabled", "true"), ("+a.B#threshold", "9ms"), ("+a.B#stackTrace", "true")])
    off = Settings(["none"], [("+a.B#enabled", "false"), ("+a.B#threshold", "0ns")])
    assert combined([one, other, off]) == {"a.B": EventSettings(True, True, 5 * MS, chunk="endChunk")}
    both = combined([Settings(["default"]), Settings(["profile"])])
    assert both["jdk.ExecutionSample"].period == 10 * MS
    assert both["jdk.ObjectAllocationSample"].throttle == 300
    assert combined([]) == {}


def test_timespans_and_rates() -> None:
    assert [timespan(text) for text in ("0 ns", "20ms", "3 s", "2d")] == [0, 20 * MS, 3 * S, 172_800 * S]
    assert [rate(text) for text in ("off", "150/s", "6000/m", "1/h", "10 ms")] == [0, 150, 100, 1, 100]
