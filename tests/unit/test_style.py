"""scripts/style.py finds what it is for, in prose and not in code; the documentation has nothing of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))

import style  # noqa: E402


def messages(text: str) -> list[str]:
    return [f"{line}: {message}" for line, message in style.found(text)]


@pytest.mark.parametrize(
    "text",
    [
        "It is told to\nnobody.",
        "What is no region is left alone.",
        "A wait of 5000 ms.",
        "| a | 1,500,000 ns |",
        " ".join(["word"] * 36) + ".",
    ],
)
def test_it_is_found(text: str) -> None:
    assert messages(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "```text\nnobody is told\n```",
        "The user `nobody` has no region.",
        "There are no regions, and it is no longer there.",
        "A wait of 500 ms.",
        "<!-- begin generated -->\nnobody\n<!-- end generated -->",
        " ".join(["word"] * 35) + ". " + " ".join(["word"] * 35) + ".",
        "\n".join(["* " + " ".join(["word"] * 20)] * 3),
    ],
)
def test_it_is_let_pass(text: str) -> None:
    assert messages(text) == []


def test_a_message_has_the_line_and_what_to_write() -> None:
    assert messages("First.\n\n```sh\nls\n```\n\nIt works\nwith [nobody](x.md).\n") == [
        "8: 'nobody': write name who: no process, no other user, not ..."
    ]


def test_docstrings_and_comments_are_checked_and_their_lists_and_the_code_are_not() -> None:
    source = '''"""Fine."""
nobody = "nobody"  # told
def function():
    """First.

    It is told to somebody.

        nobody is told
    """
    # Two lines, whose words are
    # told together.
    #     nobody
'''
    assert in_source(source, ".py") == ["2: 'told'", "6: 'somebody'", "6: 'told'", "11: 'told'"]


def test_comments_of_c_are_checked() -> None:
    source = "/* Fine.\n * It is told. */\nint nobody; /* somebody's\n * own */ char *told = 0;\n"
    assert in_source(source, ".c") == ["2: 'told'", "3: 'somebody'"]


def in_source(source: str, suffix: str) -> list[str]:
    return [f"{line}: {message.partition(':')[0]}" for line, message in sorted(style.in_source(source, suffix))]


def test_each_page_that_is_left_out_is_there() -> None:
    assert [page for page in style.RULES["skip"] if not (ROOT / page).exists()] == []
