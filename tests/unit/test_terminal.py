"""vmscope.terminal: what a terminal is shown of text that others have written."""

from __future__ import annotations

import ctypes
import io
import locale
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmscope import terminal
from vmscope.errors import VMScopeError
from vmscope.terminal import Filter, columns, cut, lines, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京 😀 שלום", "plain é 東京 😀 שלום"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("one\r\ntwo\t\x08\x7f\0", "one\\r\\ntwo\\t\\x08\\x7f\\x00"),
        ("\x80\x85\x9b31m\x9f", "\\x80\\x85\\x9b31m\\x9f"),
        ("\u202a\u202e\u2066\u2069\u200e\u200f\u061c", "\\u202a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061c"),
        ("\u2028\u2029\u200b\u200d\ufeff\xad", "\\u2028\\u2029\\u200b\\u200d\\ufeff\\xad"),
        ("\xa0\u2003\u3000", "\\xa0\\u2003\\u3000"),
        ("\udc9b\ud800", "\\udc9b\\ud800"),
        ("\u0378\ue000\U000e0041", "\\u0378\\ue000\\U000e0041"),
        ("a\ufe0f\u3164\u115f\u2800\U000e0100", "a\\ufe0f\\u3164\\u115f\\u2800\\U000e0100"),
        ("e\u0301 \u0301", "e\u0301 \u0301"),
        ("\u0301a", "\\u0301a"),
        ("\x1b\u0301", "\\x1b\\u0301"),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + "\\u0301" * 2),
    ],
)
def test_what_is_not_printable_is_shown_as_in_python_source(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_keep_what_makes_lines() -> None:
    assert lines("a\tb\n\r\n\x0b\x0c\x1b\n") == "a\tb\n\\r\n\\x0b\\x0c\\x1b\n"
    assert lines("a\n\u0301") == "a\n\\u0301", "it would stand on what is above"


HARMLESS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text())
def test_whatever_the_text_is(text: str) -> None:
    for char in printable(text):
        assert char == " " or unicodedata.category(char) not in HARMLESS | {"Zs"}
    for char in lines(text):
        assert char in "\n\t " or unicodedata.category(char) not in HARMLESS | {"Zs"}


@given(st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))), st.data())
def test_pieces_show_what_the_whole_does(data: bytes, choice: st.DataObject) -> None:
    """Wherever a sequence of escapes, of marks or of UTF-8 is cut."""
    whole = Filter().feed(data, last=True)
    assert whole == lines(whole)
    pieces, shown = Filter(), []
    while data:
        size = choice.draw(st.integers(1, len(data)))
        shown.append(pieces.feed(data[:size]))
        data = data[size:]
    assert "".join([*shown, pieces.feed(b"", last=True)]) == whole


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xc2\x9b31m", "\\x9b31m"),
        (b"\x9b31m\xff\xe2\x80", "\\x9b31m\\xff\\xe2\\x80"),
        (b"\xe2\x80\xae\xed\xa0\x80", "\\u202e\\xed\\xa0\\x80"),
        ("a\u0301\u0301\u0301\u0301\u0301".encode(), "a\u0301\u0301\u0301\u0301\\u0301"),
        (b"0\t\x1b[31m\n", "0\t\\x1b[31m\n"),
    ],
)
def test_a_byte_at_a_time(data: bytes, shown: str) -> None:
    pieces = Filter()
    assert "".join([pieces.feed(bytes([each])) for each in data]) + pieces.feed(b"", last=True) == shown


# -- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("😀!", 3), ("한", 2), ("", 0)])
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width


@pytest.fixture
def utf_8() -> Iterator[None]:
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        pytest.skip("there is no locale C.UTF-8")
    yield
    locale.setlocale(locale.LC_CTYPE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="the C library knows no wcwidth")
def test_columns_are_those_of_the_c_library(utf_8: None) -> None:
    """But for characters that one of the two does not know yet, or counts otherwise since a later Unicode."""
    wcwidth = ctypes.CDLL(None).wcwidth
    wcwidth.argtypes = [ctypes.c_wchar]
    shown = [char for char in map(chr, range(0x20, 0x110000)) if printable("a" + char) == "a" + char]
    assert len(shown) > 140_000
    other = [char for char in shown if wcwidth(char) not in (-1, columns(char))]
    assert len(other) < 200, [f"U+{ord(char):04X}" for char in other]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("東京都庁", 8, "東京都庁"),
        ("東京都庁", 7, "東京都…"),
        ("東京都庁", 6, "東京…"),
        ("e\u0301" * 4, 3, "e\u0301e\u0301…"),
        ("abc", 1, "…"),
    ],
)
def test_a_cut_ends_before_what_does_not_fit(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown
    assert columns(cut(text, width)) <= width


# -- streams --------------------------------------------------------------------------------------


def test_characters_that_the_stream_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    for charset, shown in (("ascii", b"\\xe9 \\u6771\n"), ("latin-1", b"\xe9 \\u6771\n"), ("utf-8", "é 東\n".encode())):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, charset, newline="\n"))
        terminal.OUT.show("é 東\n")
        terminal.OUT.flush()
        assert raw.getvalue() == shown


def test_a_latin_1_terminal_gets_no_control_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """In UTF-8 a letter's second byte may be one there: `Û` is C3 9B."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1", newline="\n"))
    terminal.OUT.put(Filter().feed("Û\n".encode()))
    terminal.OUT.flush()
    assert raw.getvalue() == b"\xdb\n"


def test_a_program_without_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(terminal.OutputError, match="it is closed"):
        terminal.OUT.show("a\n")
    with pytest.raises(terminal.OutputError):
        terminal.OUT.pass_on(b"a\n")
    terminal.OUT.flush()
    terminal.ERR.show("a\n")
    terminal.ERR.flush()
    assert not terminal.OUT.isatty()


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.complain(VMScopeError("one\ntwo\x1b[1m", path="/tmp/\x1b[2Jx", hint="three\r"))
    assert capsys.readouterr() == ("", "vmscope: /tmp/\\x1b[2Jx: one\\ntwo\\x1b[1m (three\\r)\n")
    terminal.complain(VMScopeError("x" * 100_000))
    assert len(capsys.readouterr().err) == terminal.LONGEST_ERROR + 1
