"""The part of YAML that configuration files are written in: mappings, lists, and scalars, each of which is a text.

What is not of this part is an error, and never something else.
"""

from __future__ import annotations

import re

from vmscope.errors import VMScopeError

Value = str | list["Value"] | dict[str, "Value"]

_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'#{\[\]},&*!|>%@`-][^#:]*?|[^\s:#]+)\s*:(?:\s+(.*))?$""")
_DEEPEST = 16


def load(path: str) -> dict[str, Value]:
    """The mapping in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read(1 << 22), path)
    except (OSError, UnicodeDecodeError) as error:
        raise VMScopeError(f"{path} cannot be read: {error}", hint="name a file that can be read") from None


def parse(text: str, path: str = "") -> dict[str, Value]:
    """The mapping in a text."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        content = _without_comment(line)
        if content.strip() and content.strip() != "---":
            lines.append((number, len(content) - len(content.lstrip(" ")), content.strip()))
    if not lines:
        return {}
    found, rest = _block(lines, lines[0][1], path, 0)
    if rest:
        raise _wrong(path, rest[0][0])
    if not isinstance(found, dict):
        raise _wrong(path, 1)
    return found


Lines = list[tuple[int, int, str]]  # the number of the line, its indentation, what stands there


def _block(lines: Lines, indent: int, path: str, depth: int) -> tuple[Value, Lines]:
    """What stands at this indentation, and the lines behind it."""
    if depth > _DEEPEST:
        raise _wrong(path, lines[0][0])
    items: list[Value] = []
    mapping: dict[str, Value] = {}
    is_list = lines[0][2] == "-" or lines[0][2].startswith("- ")
    while lines and lines[0][1] == indent and (lines[0][2] == "-" or lines[0][2].startswith("- ")) == is_list:
        number, _, content = lines[0]
        if is_list:
            inner = content[1:].lstrip()
            if not inner or _KEY.match(inner):  # a mapping, which may begin behind the dash
                at = indent + len(content) - len(inner)
                lines = [(number, at, inner), *lines[1:]] if inner else lines[1:]
                if not lines or lines[0][1] <= indent:
                    raise _wrong(path, number)
                value, lines = _block(lines, lines[0][1], path, depth + 1)
            else:
                value, lines = _scalar(inner, path, number), lines[1:]
            items.append(value)
            continue
        match = _KEY.match(content)
        if match is None:
            raise _wrong(path, number)
        key = str(_scalar(match[1], path, number))
        if key in mapping:
            raise _wrong(path, number)
        lines = lines[1:]
        if match[2]:
            mapping[key] = _scalar(match[2].strip(), path, number)
        elif lines and (lines[0][1] > indent or (lines[0][1] == indent and lines[0][2].startswith("- "))):
            mapping[key], lines = _block(lines, lines[0][1], path, depth + 1)
        else:
            mapping[key] = ""
    if lines and lines[0][1] > indent:
        raise _wrong(path, lines[0][0])
    return (items if is_list else mapping), lines


def _scalar(text: str, path: str, number: int) -> Value:
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        escapes = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t"}
        inner = text[1:-1]
        if re.search(r'(?<!\\)(?:\\\\)*"', inner):
            raise _wrong(path, number)
        try:
            return re.sub(r"\\.", lambda match: escapes[match[0]], inner)
        except KeyError:
            raise _wrong(path, number) from None
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == "[" and text[-1:] == "]":
        inner = text[1:-1].strip()
        if any(character in inner for character in "[]{}\"'"):
            raise _wrong(path, number)
        return [word.strip() for word in inner.split(",")] if inner else []
    if text == "{}":
        return {}
    if text[0] in "\"'[]{}&*!|>%@`":
        raise _wrong(path, number)
    return text


def _without_comment(line: str) -> str:
    """A `#` begins one at the line's begin or behind a blank, and not within quotes."""
    quote = ""
    for at, character in enumerate(line):
        if quote:
            quote = "" if character == quote and not (quote == '"' and line[at - 1] == "\\") else quote
        elif character in "\"'" and (at == 0 or line[at - 1] in " [,:-"):
            quote = character
        elif character == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at].rstrip()
    return line.rstrip()


def _wrong(path: str, number: int) -> VMScopeError:
    return VMScopeError(f"{path}, line {number}: this is not understood", hint="write it as a plain mapping or list")
