"""Checks the prose of README.md, docs/ and src/: the words of style_words.toml, long sentences, units in tables.

    python scripts/style.py              exit status 1, with file, line and what to write instead, for each finding
    python scripts/style.py FILE ...     checks these pages and modules alone

Of modules and C files it is the docstrings and the comments. Code, in blocks or within a line, is not prose. The
generated parts of pages, between `<!-- begin generated -->` and `<!-- end generated -->`, come from tables in the code
and are not checked here.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = tomllib.loads((ROOT / "scripts" / "style_words.toml").read_text(encoding="utf-8"))
WORDS = {re.compile(rf"\b({pattern})\b", re.IGNORECASE): advice for pattern, advice in RULES["words"].items()}
NOT_PROSE = re.compile(
    r"^```.*?^```|^~~~.*?^~~~|<!-- begin generated -->.*?<!-- end generated -->|<!--.*?-->", re.MULTILINE | re.DOTALL
)
LITERAL = re.compile(r"^ {4}.*$|>>> .*$", re.MULTILINE)  # in a docstring or a comment: lists and examples
IN_C = re.compile(r"/\*.*?\*/", re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\](\([^)]*\)|\{[^}]*\})")
BREAK = re.compile(r"^\s*$|^\s*([*-]|\d+\.)\s|^\s*[|#>:]", re.MULTILINE)  # a line that begins something new
SENTENCE = re.compile(r"(?<=[.!?:])[)\"']*\s+|\s*\|\s*")
LARGE = re.compile(r"(?<![\w.])(\d{4,}|\d{1,3}(,\d{3})+)(\.\d+)?\s(ns|us|µs|ms)\b")


def found(text: str) -> Iterator[tuple[int, str]]:
    """Line and message of each thing that is found in a page."""
    text = NOT_PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = CODE.sub(lambda match: "`code`" + "\n" * match[0].count("\n"), text)
    text = LINK.sub(lambda match: match[1] + "\n" * match[2].count("\n"), text)
    for pattern, advice in WORDS.items():
        for match in pattern.finditer(re.sub(r"\s", " ", text)):
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}: write {advice}"
    for match in LARGE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}: write it in the next larger unit"
    for line, sentence in sentences(text):
        words = len(re.findall(r"\w[\w'.-]*", sentence))
        if words > RULES["longest_sentence"]:
            yield line, f"a sentence of {words} words: {' '.join(sentence.split())[:60]}..."


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each with the line that it begins on. A colon ends one too, as does a cell of a table."""
    starts = sorted({0, *(match.start() for match in BREAK.finditer(text)), len(text)})
    for start, end in pairwise(starts):
        at = start
        for part in SENTENCE.split(text[start:end]):
            at = text.index(part, at)
            yield text.count("\n", 0, at) + 1, part


def in_source(source: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The same of a module's docstrings and comments, or of a C file's comments."""
    if suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                for line, message in found(LITERAL.sub("", text)):
                    yield node.body[0].lineno + line - 1, message
    # As a page with the lines of the file; what stands behind code begins something new.
    lines, page = source.split("\n"), [""] * (source.count("\n") + 2)
    for row, column, comment in comments(source, suffix):
        for below, text in enumerate(comment.split("\n")):
            begins = not below and lines[row - 1][:column].strip()
            page[row + below] = f"* {text.strip()}" if begins else LITERAL.sub("", text)
    yield from found("\n".join(page[1:]))


def comments(source: str, suffix: str) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of each."""
    if suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield *token.start, token.string.lstrip("#").removeprefix(" ")
    else:
        for match in IN_C.finditer(source):
            begin = source.rfind("\n", 0, match.start()) + 1
            text = re.sub(r"^\s*\*+ ?", "", match[0][2:-2], flags=re.MULTILINE)
            yield source.count("\n", 0, begin) + 1, match.start() - begin, text.removeprefix(" ")


def pages() -> Iterator[Path]:
    yield from sorted(path for path in (ROOT / "src").rglob("*.[pch]*") if path.suffix in (".py", ".c", ".h"))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "_build" not in path.parts and str(path.relative_to(ROOT)) not in RULES["skip"]:
            yield path


def main(arguments: list[str]) -> int:
    status = 0
    for path in [Path(argument).resolve() for argument in arguments] or pages():
        text = path.read_text(encoding="utf-8")
        for line, message in sorted(found(text) if path.suffix == ".md" else in_source(text, path.suffix)):
            print(f"{path.relative_to(ROOT)}:{line}: {message}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
