"""Labels in names: `shop.sales{code="200",method="GET"}`, sorted, so that their order in a call does not matter.

A value stands there as a JSON string has it, with everything but printable ASCII without blanks as `\\uXXXX`: so a
name with labels is a name like others, and any JSON parser gives the value back.
"""

from __future__ import annotations

from vmscope.errors import CounterNameError

# The child that stands for every set of labels beyond those that a counter remembers.
OVERFLOW = {"overflow": "true"}


def labelled(name: str, labels: dict[str, str], reserved: str = "") -> str:
    """The name with the labels. CounterNameError for one that has some, or a label that is no name or `reserved`."""
    if name.endswith("}"):
        raise CounterNameError(f"{name} has its labels already; give all of them at once to the counter without")
    for label in labels:
        if not (label.isascii() and label.isidentifier()):
            raise CounterNameError(f"label {label!r} is not made of ASCII letters, digits and underscores")
        if label == reserved:
            raise CounterNameError(f"label {label!r} belongs to the buckets of a histogram; choose another")
    return name + "{" + ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels)) + "}"


def _escaped(value: str) -> str:
    if value.isascii() and value.isprintable() and not ({" ", '"', "\\"} & set(value)):
        return value
    return "".join(map(_escaped_character, value))


def _escaped_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if "!" <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
