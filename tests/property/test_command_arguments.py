"""Whatever a client writes, it is understood or refused: nothing else comes out of the grammar."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmscope.commands import Argument
from vmscope.commands.arguments import parse, words
from vmscope.errors import CommandError

TYPES = ("STRING", "FILE", "BOOLEAN", "INT", "JULONG", "MEMORY SIZE", "NANOTIME", "STRING SET")
ARGUMENTS = (
    *(Argument(f"-{type.lower().replace(' ', '-')}", "", type) for type in TYPES),
    *(Argument(f"{type} argument", "", type) for type in TYPES),
)
NAMES = [each.name for each in ARGUMENTS if each.option]
TEXT = st.text(st.one_of(st.sampled_from(" ='\"\\-10k,%ps"), st.characters()))
LINES = st.lists(st.one_of(TEXT, st.sampled_from([*NAMES, "=", " ", "=1", "=true", "=5ms"]))).map("".join)


@given(LINES)
def test_any_line(line: str) -> None:
    try:
        values = parse(line, ARGUMENTS)
    except CommandError:
        return
    assert set(values) == {each.keyword for each in ARGUMENTS}


@given(st.lists(st.tuples(st.text(min_size=1), st.none() | st.text())))
def test_what_stands_in_quotes_comes_back(pairs: list[tuple[str, str | None]]) -> None:
    pairs = [pair for pair in pairs if not any('"' in text or "\\" in text for text in pair if text)]
    line = " ".join(f'"{key}"' + ("" if value is None else f'="{value}"') for key, value in pairs)
    assert list(words(line)) == pairs
