"""The language in which a user describes views of his own, in ~/.jvmstat/jstat_options.

    option ID { column { header "text" | data EXPRESSION | width N | format "pattern"
                         | align left|center|right | scale X | required true|false }* }*

EXPRESSION has counter names, numbers, + - * / and parentheses; comments are `//` and `/* */`.
Names have letters, digits, underscores and dots, and numbers no sign and no exponent.
"""

from __future__ import annotations

from vmscope.cli._views import View, ViewColumn, ViewError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from vmscope.cli._views import Expression

# Divisors, as jstat has them, the odd ones too. Their order is that of its error message.
SCALES = {
    "ps": 1e-11,
    "ns": 1e-8,
    "ms": 1e-2,
    "G": 1024.0**3,
    "h": 1 / 3600,
    "raw": 1.0,
    "K": 1024.0,
    "percent": 0.0,
    "M": 1024.0**2,
    "m": 1e-2,
    "n": 1e-8,
    "P": 0.0,
    "p": 1e-11,
    "sec": 1.0,
    "s": 1.0,
    "min": 1 / 60,
    "T": 0.0,
    "hour": 1 / 3600,
    "u": 1e-5,
    "us": 1e-5,
}
ALIGNMENTS = ("left", "center", "right")
TRUTHS = ("false", "true")
RESERVED = ("option", "column", "data", "header", "width", "format", "align", "scale", "required")

WORD, NUMBER, TEXT, END = "word", "number", "text", "end"


class ViewSyntaxError(ValueError):
    """Text that does not follow the language; the message says what was expected where."""


class UnarySignError(ViewError):
    """A sign before an operand: jstat's language has the syntax, but no meaning for it."""


def find_view(text: str, option: str) -> View | None:
    """The first view of this name; what stands before it is skipped, not checked. Raises ViewSyntaxError."""
    return _Parser(text).find(option)


def all_views(text: str) -> list[View]:
    """Every view of a text. Raises ViewSyntaxError."""
    return _Parser(text).all()


class _Token:
    __slots__ = ("kind", "line", "text")

    def __init__(self, kind: str, text: str, line: int) -> None:
        self.kind = kind
        self.text = text
        self.line = line

    def describe(self) -> str:
        if self.kind == WORD:
            return f"IDENTIFIER {self.text}"
        if self.kind == NUMBER:
            return "NUMBER"
        if self.kind == TEXT:
            return f'QUOTED STRING "{self.text}"'
        if self.kind == END:
            return '"EOF"'
        return f"CHARACTER '{self.kind}'"


def _tokens(text: str) -> Iterator[_Token]:
    """Words, numbers, quoted texts and single characters; then ends for ever."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    at, line, size = 0, 1, len(text)
    while at < size:
        char = text[at]
        start = at
        if char <= " ":
            line += char == "\n"
            at += 1
        elif text.startswith("//", at):
            at = text.find("\n", at)
            at = size if at < 0 else at
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = size if end < 0 else end + 2
            line += text.count("\n", start, at)
        elif _starts_word(char):
            while at < size and (_starts_word(text[at]) or text[at] in "0123456789."):
                at += 1
            yield _Token(WORD, text[start:at], line)
        elif char in "0123456789.":
            pointed = False
            while at < size and (text[at] in "0123456789" or (text[at] == "." and not pointed)):
                pointed = pointed or text[at] == "."
                at += 1
            yield _Token(NUMBER, text[start:at], line)
        elif char in "\"'":
            at += 1
            content: list[str] = []
            while at < size and text[at] not in (char, "\n"):
                if text[at] == "\\" and at + 1 < size:
                    value, at = _escape(text, at + 1)
                    content.append(value)
                else:
                    content.append(text[at])
                    at += 1
            if text.startswith(char, at):
                at += 1
            yield _Token(TEXT if char == '"' else char, "".join(content), line)
        else:
            at += 1
            yield _Token(char, char, line)
    while True:
        yield _Token(END, "", line)


def _starts_word(char: str) -> bool:
    return char >= "\xa0" or char == "_" or (char.isascii() and char.isalpha())


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character of the escape whose backslash stands before `at`, and where it ends."""
    char = text[at]
    if char in "01234567":
        end = at + 1
        longest = 3 if char <= "3" else 2
        while end < len(text) and end - at < longest and text[end] in "01234567":
            end += 1
        return chr(int(text[at:end], 8)), end
    return {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}.get(char, char), at + 1


class _Parser:
    """Recursive descent; `token` is the one to be looked at."""

    def __init__(self, text: str) -> None:
        self.stream = _tokens(text)
        self.token = next(self.stream)
        self.columns = 0

    def advance(self) -> _Token:
        token = self.token
        self.token = next(self.stream)
        return token

    def fail(self, expected: str, found: str | None = None) -> ViewSyntaxError:
        found = found or self.token.describe()
        return ViewSyntaxError(f"Syntax error at line {self.token.line}: Expected {expected}, Found {found}")

    def match(self, kind: str, text: str | None = None) -> str:
        if self.token.kind != kind or (text is not None and self.token.text != text):
            names = {WORD: "IDENTIFIER", NUMBER: "NUMBER", TEXT: "QUOTED STRING"}
            expected = f"IDENTIFIER {text}" if text is not None else names.get(kind, f"CHARACTER '{kind}'")
            raise self.fail(expected)
        return self.advance().text

    def match_one(self, choices: tuple[str, ...]) -> str:
        if self.token.kind != WORD or self.token.text not in choices:
            raise self.fail(f"one of '{'|'.join(choices)}'")
        return self.advance().text

    def at_word(self, text: str) -> bool:
        return self.token.kind == WORD and self.token.text == text

    def find(self, option: str) -> View | None:
        while self.token.kind != END:
            if self.advance_over("option"):
                if self.at_word(option):
                    return self.view()
                self.advance()
        return None

    def advance_over(self, word: str) -> bool:
        """Take one token, whatever it is; whether it was this word."""
        token = self.advance()
        return token.kind == WORD and token.text == word

    def all(self) -> list[View]:
        views: list[View] = []
        while self.token.kind != END:
            if self.advance_over("option"):
                views.append(self.view())
        return views

    def view(self) -> View:
        """From the view's name to its closing brace."""
        name = self.match(WORD)
        self.match("{")
        columns: list[ViewColumn] = []
        while self.token.kind == WORD:
            self.match(WORD, "column")
            self.match("{")
            columns.append(self.column())
        self.match("}")
        return View(name, columns)

    def column(self) -> ViewColumn:
        header: str | None = None
        data: Expression | None = None
        pattern, width, align, scale, required = "0", 0, "center", 1.0, False
        while self.token.kind == WORD and self.token.text in RESERVED[2:]:
            statement = self.advance().text
            if statement == "data":
                data = self.sum()
            elif statement == "header":
                header = self.match(TEXT)
            elif statement == "width":
                width = int(_value(self.match(NUMBER)))
            elif statement == "format":
                pattern = self.match(TEXT)
            elif statement == "align":
                align = self.match_one(ALIGNMENTS)
            elif statement == "scale":
                scale = SCALES[self.match_one(tuple(SCALES))]
            else:
                required = self.match_one(TRUTHS) == "true"
        self.match("}")
        number = self.columns
        self.columns += 1
        if data is None:
            raise ViewSyntaxError(f"Missing data statement in column {number}")
        if header is None:
            raise ViewSyntaxError(f"Missing header statement in column {number}")
        return ViewColumn(header, data, pattern, scale=scale, width=width, align=align, required=required)

    def sum(self) -> Expression:
        left = self.product()
        while self.token.kind in ("+", "-"):
            left = (self.advance().kind, left, self.product())
        return left

    def product(self) -> Expression:
        left = self.operand()
        while self.token.kind in ("*", "/"):
            left = (self.advance().kind, left, self.operand())
        return left

    def operand(self) -> Expression:
        if self.token.kind in ("+", "-"):
            raise UnarySignError(f"line {self.token.line}: a sign before an operand; write 0 {self.token.kind} ...")
        if self.token.kind == NUMBER:
            return _value(self.advance().text)
        if self.token.kind == "(":
            self.advance()
            inner = self.sum()
            self.match(")")
            return inner
        if self.token.kind != WORD:
            raise self.fail("IDENTIFIER")
        if self.token.text in RESERVED:
            raise self.fail("IDENTIFIER", f"Reserved Word: {self.token.text}")
        return self.advance().text


def _value(text: str) -> float:
    return 0.0 if text == "." else float(text)
