"""How a sub-command's arguments are read."""

from __future__ import annotations

import pytest

from vmscope.cli import _options
from vmscope.errors import CommandLineError

TAKES: dict[str, str | None] = {"--once": None, "--sort": "", "--watch": "2"}


@pytest.mark.parametrize("args", [["--sort=pid", "7"], ["--sort", "pid", "7"], ["7", "--sort", "pid"]])
def test_a_value_stands_behind_an_equals_sign_or_next(args: list[str]) -> None:
    assert _options.parse("ps", args, TAKES) == ({"--sort": "pid"}, ["7"])


def test_a_value_that_may_be_left_out_is_not_the_next_argument() -> None:
    assert _options.parse("ps", ["--watch", "7", "--once"], TAKES) == ({"--watch": "2", "--once": ""}, ["7"])


def test_all_after_two_dashes_are_arguments() -> None:
    assert _options.parse("ps", ["--once", "--", "--sort", "--"], TAKES) == ({"--once": ""}, ["--sort", "--"])


@pytest.mark.parametrize("args", [["--sort"], ["--sort="], ["--sort", ""], ["--once=1"], ["--other"], ["-x"]])
def test_a_wrong_option_is_refused(args: list[str]) -> None:
    with pytest.raises(CommandLineError, match=r"^ps (needs a value: --sort=VALUE|takes no value|does not take)"):
        _options.parse("ps", args, TAKES)
