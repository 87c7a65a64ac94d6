"""VM.system_properties: what -D gave, what agents set, what CPython can tell under the JVM's names.

The text is a properties file, which the JDK's clients read.
"""

from __future__ import annotations

import time

from vmscope.commands.registry import Command
from vmscope.tool import properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output

_ESCAPES = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}


def run(out: Output) -> None:
    out.write(stored(properties.properties()))


def stored(values: dict[str, str]) -> str:
    """A properties file, sorted by name."""
    date = time.asctime()  # in English, whatever the program's locale is
    lines = [f"#{date[:-4]}{time.tzname[time.localtime().tm_isdst > 0]} {date[-4:]}"]
    lines += [f"{_escaped(name).replace(' ', chr(92) + ' ')}={_value(values[name])}" for name in sorted(values)]
    return "\n".join([*lines, ""])


def _value(text: str) -> str:
    """Blanks count, except those in front."""
    escaped = _escaped(text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable() and not set(text) & _ESCAPES.keys():
        return text
    return "".join(_ESCAPES.get(c) or (c if " " <= c <= "~" else _unicode(c)) for c in text)


def _unicode(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


COMMANDS = (Command("VM.system_properties", "The system properties, as a properties file.", run),)
