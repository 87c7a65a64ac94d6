"""The options of the agents that come with vmscope."""

from __future__ import annotations

import pytest

from vmscope.agents import options

READERS = {"match": options.word, "for": options.seconds, "command": options.word}


def test_nothing_is_nothing() -> None:
    assert options.parse("", READERS) == {}


def test_a_key_may_come_again() -> None:
    assert options.parse("match=a.*,for=2m,match=b", READERS) == {"match": ["a.*", "b"], "for": [120.0]}


def test_the_rest_may_hold_commas() -> None:
    found = options.parse("for=1s,command=kill -3 1, echo a=b", READERS, rest="command")
    assert found == {"for": [1.0], "command": ["kill -3 1, echo a=b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("matches=a", "'matches=a' is not an option; options are match=, for=, command="),
        ("match", "'match' is not an option"),
        ("match=", "option match=: it has no value"),
        ("for=soon", "option for=soon: 'soon' does not begin with a number"),
        ("for=10d", "option for=10d: a time is"),
        ("for=-1s", "option for=-1s: a time is"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        options.parse(text, READERS)
    assert str(caught.value).startswith(message)


def test_units() -> None:
    assert [options.seconds(text) for text in ("2", "500ms", "1.5s", "1h")] == [2, 0.5, 1.5, 3600]
    assert [options.size(text) for text in ("4096", "10k", "1.5M", "2g")] == [4096, 10240, 1572864, 2 << 30]
    assert options.share("30%") == 0.3
    assert [options.switch(text) for text in ("on", "off")] == [True, False]


@pytest.mark.parametrize(
    ("reader", "text"),
    [(options.size, "2x"), (options.share, "30"), (options.share, "101%"), (options.switch, "yes")],
)
def test_what_they_refuse(reader: object, text: str) -> None:
    assert callable(reader)
    with pytest.raises(ValueError):
        reader(text)
