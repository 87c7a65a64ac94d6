"""The VM options: every flag, its range, where options come from, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmscope import environ, flags
from vmscope.errors import OptionError
from vmscope.flags import FLAGS, Flags, parse, read_argument_file, split

ROOT = Path(__file__).parents[2]
SWITCHES = [row for row in FLAGS if isinstance(row[1], bool)]
NUMBERS = [row for row in FLAGS if isinstance(row[1], int) and not isinstance(row[1], bool)]
TEXTS = [row for row in FLAGS if isinstance(row[1], str)]


def test_the_defaults() -> None:
    found = parse([])
    assert found.on("UsePerfData")
    assert not found.on("PerfDisableSharedMem")
    assert not found.on("PerfDataSaveToFile")
    assert found.text("PerfDataSaveFile") == ""
    assert found.number("PerfDataMemorySize") == 64 * 1024
    assert found.number("PerfDataSamplingInterval") == 50
    assert found.number("PerfMaxStringConstLength") == 1024
    assert found.arguments == []
    assert found.properties == {}


@pytest.mark.parametrize("name", [row[0] for row in SWITCHES])
def test_switches(name: str) -> None:
    assert parse([f"-XX:+{name}"]).on(name)
    assert not parse([f"-XX:-{name}"]).on(name)
    assert parse([f"-XX:-{name}", f"-XX:+{name}"]).on(name), "the last one counts"
    for wrong in (f"-XX:{name}", f"-XX:{name}=true", f"-XX:{name}="):
        with pytest.raises(OptionError, match=rf"-XX:\+{name}"):
            parse([wrong])


@pytest.mark.parametrize(("name", "low", "high"), [(row[0], row[2], row[3]) for row in NUMBERS])
def test_numbers_and_their_ranges(name: str, low: int, high: int) -> None:
    assert parse([f"-XX:{name}={low}"]).number(name) == low
    assert parse([f"-XX:{name}={high}"]).number(name) == high
    for beyond in (*([low - 1] if low else []), high + 1, 10**30):
        with pytest.raises(OptionError, match=f"out of its range, {low} to {high}"):
            parse([f"-XX:{name}={beyond}"])
    for wrong in ("", "k", "-1", "+1", "1.5", "0x10", "1kk", "1 ", "1_0", "٣", "1t", "many"):
        with pytest.raises(OptionError, match="is not a whole number"):
            parse([f"-XX:{name}={wrong}"])
    for unsigned in (f"-XX:+{name}", f"-XX:-{name}", f"-XX:{name}"):
        with pytest.raises(OptionError, match=f"-XX:{name}=VALUE"):
            parse([unsigned])


def test_the_region_is_1_kib_to_1_gib() -> None:
    assert next(row[2:4] for row in FLAGS if row[0] == "PerfDataMemorySize") == (1 << 10, 1 << 30)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1024", 1024), ("1k", 1024), ("1K", 1024), ("32k", 32768), ("16m", 1 << 24), ("3M", 3 << 20), ("1g", 1 << 30)],
)
def test_suffixes(text: str, size: int) -> None:
    assert parse([f"-XX:PerfDataMemorySize={text}"]).number("PerfDataMemorySize") == size


@pytest.mark.parametrize("name", [row[0] for row in TEXTS])
def test_texts(name: str) -> None:
    assert parse([f"-XX:{name}=/tmp/a=b %p"]).text(name) == "/tmp/a=b %p"
    with pytest.raises(OptionError, match="names nothing"):
        parse([f"-XX:{name}="])
    with pytest.raises(OptionError, match=f"-XX:{name}=VALUE"):
        parse([f"-XX:+{name}"])


def test_a_flag_can_be_forgotten() -> None:
    found = parse(["-XX:PerfDataSaveFile=x"])
    found.forget("PerfDataSaveFile")
    assert found.text("PerfDataSaveFile") == ""
    assert found.arguments == ["-XX:PerfDataSaveFile=x"], "it was given all the same"


def test_properties() -> None:
    found = parse(["-Da=b=c", "-Dempty", "-Da.b="])
    assert found.properties == {"a": "b=c", "empty": "", "a.b": ""}
    assert found.arguments == ["-Da=b=c", "-Dempty", "-Da.b="]


@pytest.mark.parametrize(
    "option", ["", "-", "-X", "-XX:", "-D", "--help", "-jar", "plain", "-Xmx1g", "XX:+UsePerfData", "-xx:+UsePerfData"]
)
def test_what_is_no_option(option: str) -> None:
    with pytest.raises(OptionError, match="is not a VM option") as caught:
        parse([option])
    assert caught.value.hint == "vmscope run --help lists them"


@pytest.mark.parametrize(
    "option", ["-XX:+Unknown", "-XX:-", "-XX:+", "-XX:=1", "-XX:useperfdata=1", "-XX:+useperfdata"]
)
def test_what_is_no_flag(option: str) -> None:
    with pytest.raises(OptionError, match="no flag is called") as caught:
        parse([option])
    assert caught.value.hint == "vmscope run --help lists them"
    assert str(caught.value).startswith(option)


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environ.OPTIONS, "-XX:PerfDataMemorySize=1m  '-Dtwo words=x y' -Da=1")
    found = parse(["-XX:PerfDataMemorySize=2m", "-Da=2"])
    assert found.number("PerfDataMemorySize") == 2 << 20
    assert found.properties == {"two words": "x y", "a": "2"}
    assert found.arguments == [
        "-XX:PerfDataMemorySize=1m", "-Dtwo words=x y", "-Da=1", "-XX:PerfDataMemorySize=2m", "-Da=2"
    ]  # fmt: skip


def test_a_wrong_option_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environ.OPTIONS, "-Xmx1g")
    with pytest.raises(OptionError, match="-Xmx1g"):
        parse([])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\r\n ", []),
        ("a b\tc\nd", ["a", "b", "c", "d"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("-Da='x y'z", ["-Da=x yz"]),
        ("'it''s' \"it's\" 'say \"a\"'", ["its", "it's", 'say "a"']),
        ("'' \"\"", ["", ""]),
        ("# all of it\na # b c\n#d\n'# e' f#g", ["a", "# e", "f#g"]),
        ("a\\b 'c\\'", ["a\\b", "c\\"]),
        ("'line\nbreak'", ["line\nbreak"]),
        ("ä\u3000ö", ["ä", "ö"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize("text", ["'", "a 'b", 'a "b c\n', "-D\"a='"])
def test_an_open_quote(text: str) -> None:
    with pytest.raises(OptionError, match="is not closed"):
        split(text)


def test_an_argument_file(tmp_path: Path) -> None:
    file = tmp_path / "options"
    file.write_text(
        "# for the tests\n-XX:PerfDataMemorySize=1m # one MiB\n'-Dname=two words'\n\n-XX:+PerfDataSaveToFile\n"
    )
    found = parse(["-Dbefore=1", f"@{file}", "-XX:PerfDataMemorySize=2m"])
    assert found.arguments == [
        "-Dbefore=1",
        "-XX:PerfDataMemorySize=1m",
        "-Dname=two words",
        "-XX:+PerfDataSaveToFile",
        "-XX:PerfDataMemorySize=2m",
    ]
    assert found.number("PerfDataMemorySize") == 2 << 20
    assert found.on("PerfDataSaveToFile")


def test_an_argument_file_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").write_text("-Dx=1")
    monkeypatch.setenv(environ.OPTIONS, f"'@{tmp_path}/a b'")
    assert parse([]).properties == {"x": "1"}


def test_argument_files_do_not_nest(tmp_path: Path) -> None:
    (tmp_path / "outer").write_text(f"@{tmp_path}/inner")
    (tmp_path / "inner").write_text("-Dx=1")
    with pytest.raises(OptionError, match="is not a VM option"):
        parse([f"@{tmp_path}/outer"])


def test_an_argument_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(OptionError, match="No such file") as caught:
        parse([f"@{missing}"])
    assert caught.value.path == str(missing)
    with pytest.raises(OptionError, match="Is a directory"):
        read_argument_file(str(tmp_path))
    (tmp_path / "latin").write_bytes(b"-Da=\xe4")
    with pytest.raises(OptionError, match="not UTF-8"):
        read_argument_file(str(tmp_path / "latin"))


def test_an_argument_file_is_never_cut(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("-Da=1\n" * 200_000)
    with pytest.raises(OptionError, match="1 MiB"):
        read_argument_file(str(tmp_path / "large"))


def test_the_help_and_the_page_name_every_flag() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    for name, default, low, high, text in FLAGS:
        for place in (flags.describe(), page):
            assert name in place
            assert text in place
        if isinstance(default, int) and not isinstance(default, bool):
            assert f"({default}; {low} to {high})" in flags.describe()


def test_flags_are_each_ones_own() -> None:
    first, second = Flags(), Flags()
    first.add("-XX:-UsePerfData")
    assert second.on("UsePerfData")
