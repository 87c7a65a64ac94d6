"""What the commands of the flight recorder share: their grammar, how they answer, times and sizes in their arguments.

A JVM's recorder reads its arguments itself, and answers what is wrong with them as it answers the rest: with the status
of a success. Tools that look at replies know it so.
"""

from __future__ import annotations

import re

from vmscope.commands import registry
from vmscope.commands.arguments import ILLEGAL, words
from vmscope.errors import CommandError, OptionError, VMScopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vmscope.commands.arguments import Argument, Value
    from vmscope.commands.registry import Output

S = 1_000_000_000  # ns
SEVERAL = frozenset(("settings",))  # arguments that may be given more than once

# Tables of arguments that do not differ.
NAME = "The recording's name, or its number."
_NEGATIVE = re.compile(r"-\d")


class Arguments:
    """What stands behind a command's name: values of its arguments by keyword, and what is none of them."""

    def __init__(
        self,
        text: str,
        arguments: Iterable[Argument],
        *,
        free: bool = False,
        blank: str = " ",
        names: Mapping[str, str] = {},
    ) -> None:
        """CommandError for a text that is not valid. `free`: what is not known is kept, as pairs; `blank`: what stands
        between arguments; `names`: what some of them are called otherwise."""
        known = {each.name: each for each in arguments}
        positions = [each for each in known.values() if not each.option]
        self.values: dict[str, Value] = {each.keyword: each.default_value() for each in known.values()}
        self.given: dict[str, list[str]] = {}
        self.others: list[tuple[str, str]] = []
        for key, value in words(text, blank):
            each = known.get(names.get(key, key))
            if each is not None and each.option:
                self._take(each, value)
            elif positions and value is None:
                each = positions.pop(0)
                self.values[each.keyword] = key
                self.given[each.name] = [key]
            elif free:
                self.others.append((key, value or ""))
            else:
                raise CommandError(f"Unknown argument '{key}' in diagnostic command.")

    def _take(self, argument: Argument, text: str | None) -> None:
        if argument.name in self.given and argument.name not in SEVERAL:
            raise CommandError(f"Option {argument.name} can only be specified once.")
        self.given.setdefault(argument.name, []).append(text or "")
        self.values[argument.keyword] = _read(argument, text)

    def has(self, name: str) -> bool:
        return name in self.given

    def text(self, keyword: str) -> str:
        value = self.values[keyword]
        return value if isinstance(value, str) else ""

    def number(self, keyword: str) -> int | None:
        """None where it was not given."""
        value = self.values[keyword]
        return value if isinstance(value, int) else None

    def on(self, keyword: str) -> bool:
        return self.values[keyword] is True


def _read(argument: Argument, text: str | None) -> Value:
    if argument.type == "BOOLEAN" and not text:
        word = "null" if text is None else ""
        raise CommandError(f"Boolean parsing error in command argument '{argument.name}'. Could not parse: {word}.")
    if argument.type == "STRING":
        return text or ""
    try:
        if argument.type == "NANOTIME" and text is not None and _NEGATIVE.match(text):
            value = argument.read(text[1:])
            assert isinstance(value, int)
            return -value
        return argument.read(text)
    except CommandError as error:
        raise CommandError(str(error).removeprefix(ILLEGAL)) from error


def answering(run: Callable[[Output, str], None]) -> Callable[[Output, str], None]:
    """The same, where what cannot be is the answer."""

    def answer(out: Output, text: str) -> None:
        try:
            run(out, text)
        except (CommandError, OptionError) as error:
            out.write(f"{str(error).removeprefix(ILLEGAL)}\n")
        except VMScopeError as error:
            out.write(f"{registry.client_message(error)}\n")

    return answer


def reason(error: OSError, path: str) -> str:
    """Why a file cannot be written: of a folder that is not there a JVM shows the path alone."""
    return path if isinstance(error, FileNotFoundError) else f"{path}: {error.strerror}"


def not_found(name: str) -> str:
    return f"Could not find {name}.\n\nUse JFR.check without options to see list of all available recordings."
