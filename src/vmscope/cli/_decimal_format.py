"""Numbers in `java.text.DecimalFormat` patterns, as the columns of a user's own views may ask for them.

    prefix number suffix [; prefix number suffix]       the second pair of affixes is for negative numbers
    number:  # and 0 with , and . among them, then E and zeros for an exponent
    affix:   text, % (times 100), ‰ (times 1000), - (the minus sign), 'quoted text', '' for a quote

Rounding is half to even on the exact binary value, with the exceptions that JDK 17 makes. Of magnitudes
from 2^63, and of subnormal ones, the last digits may differ from Java's.
"""

from __future__ import annotations

UNBOUNDED = 1 << 31
_MULTIPLIERS = {"%": 100.0, "‰": 1000.0}


class Symbols:
    """What a locale puts between the digits."""

    __slots__ = ("decimal", "grouping")

    def __init__(self, decimal: str = ".", grouping: str = ",") -> None:
        self.decimal = decimal
        self.grouping = grouping


class DecimalFormat:
    """One pattern. Raises ValueError for text that is not a pattern."""

    __slots__ = (
        "_affixes",
        "_exponent_digits",
        "_group",
        "_max_fraction",
        "_max_integer",
        "_min_fraction",
        "_min_integer",
        "_multiplier",
        "_point",
        "_symbols",
    )

    def __init__(self, pattern: str, symbols: Symbols | None = None) -> None:
        self._symbols = symbols or Symbols()
        self._multiplier = 1.0
        self._exponent_digits = 0
        self._group = 0
        self._point = False
        self._min_integer, self._max_integer, self._min_fraction, self._max_fraction = 0, UNBOUNDED, 0, UNBOUNDED
        prefix, position = self._affix(pattern, 0)
        if not pattern:
            self._group = 3
        elif pattern.startswith(";", position):
            raise ValueError(f"no number in pattern {pattern!r}")
        else:
            position = self._number(pattern, position)
        suffix, position = self._affix(pattern, position)
        positive = (prefix, suffix)
        negative = ("-" + prefix, suffix)
        if position < len(pattern):
            if pattern[position] != ";":
                raise ValueError(f"unquoted {pattern[position]!r} in pattern {pattern!r}")
            prefix, position = self._affix(pattern, position + 1, multiply=False)
            while position < len(pattern) and pattern[position] in "#0,.":
                position += 1
            suffix, position = self._affix(pattern, position, multiply=False)
            if position < len(pattern):
                raise ValueError(f"malformed negative part in pattern {pattern!r}")
            if (prefix, suffix) != positive and not pattern.endswith(";"):
                negative = (prefix, suffix)
        self._affixes = (positive, negative)

    def _affix(self, pattern: str, position: int, *, multiply: bool = True) -> tuple[str, int]:
        """The affix that starts here and where it ends."""
        text: list[str] = []
        quoted = False
        while position < len(pattern):
            char = pattern[position]
            if char == "'":
                if pattern.startswith("''", position):
                    text.append("'")
                    position += 1
                else:
                    quoted = not quoted
            elif not quoted and char in "#0,.;":
                break
            else:
                if not quoted and multiply and char in _MULTIPLIERS:
                    if self._multiplier != 1.0:
                        raise ValueError(f"two multipliers in pattern {pattern!r}")
                    self._multiplier = _MULTIPLIERS[char]
                text.append(char)
            position += 1
        if quoted:
            raise ValueError(f"open quote in pattern {pattern!r}")
        return "".join(text), position

    def _number(self, pattern: str, position: int) -> int:
        """Read the number part; where it ends."""
        optional, zeros, trailing, group, point = 0, 0, 0, -1, -1
        while position < len(pattern) and (char := pattern[position]) in "#0,.":
            if char == ",":
                group = 0
            elif char == ".":
                if point >= 0:
                    raise ValueError(f"two decimal separators in pattern {pattern!r}")
                point = optional + zeros + trailing
            else:
                if char == "0":
                    if trailing:
                        raise ValueError(f"0 after # in pattern {pattern!r}")
                    zeros += 1
                elif zeros:
                    trailing += 1
                else:
                    optional += 1
                if group >= 0 and point < 0:
                    group += 1
            position += 1
        if pattern.startswith("E", position):
            end = position + 1
            while pattern.startswith("0", end):
                end += 1
            self._exponent_digits = end - position - 1
            if not self._exponent_digits or not optional + zeros:
                raise ValueError(f"malformed exponent in pattern {pattern!r}")
            position = end
        if not zeros and optional and point >= 0:  # "###.##": the last place before the point always shows
            first = max(point, 1)
            trailing = optional - first
            optional = first - 1
            zeros = 1
        if group == 0 or (trailing if point < 0 else not optional <= point <= optional + zeros):
            raise ValueError(f"malformed pattern {pattern!r}")
        total = optional + zeros + trailing
        whole = point if point >= 0 else total
        self._min_integer = whole - optional
        self._max_integer = whole if self._exponent_digits else UNBOUNDED
        self._max_fraction = total - whole
        self._min_fraction = optional + zeros - whole if point >= 0 else 0
        self._group = max(group, 0)
        self._point = point in (0, total)
        return position

    def format(self, value: float) -> str:
        """The value's text. NaN is `-`, as jstat shows it."""
        if value != value:
            return "-"
        # Java multiplies the double, and a negative zero keeps its sign.
        value *= self._multiplier
        text = repr(value)
        negative = text.startswith("-")
        prefix, suffix = self._affixes[negative]
        value = abs(value)
        if text.endswith("inf"):
            body = "∞"
        elif self._exponent_digits:
            body = self._scientific(value)
        else:
            body = self._fixed(value)
        return prefix + body + suffix

    def _fixed(self, value: float) -> str:
        digits, at = decimal_digits(value)
        if len(digits) - at > self._max_fraction:
            digits, at = rounded(value, self._max_fraction)
        integer = digits[:at].ljust(at, "0").rjust(self._min_integer, "0") if at > 0 else "0" * self._min_integer
        fraction = "0" * -at + digits if at < 0 else digits[at:]
        fraction = fraction.ljust(self._min_fraction, "0")
        if not integer and not fraction:
            integer = "0"
        if self._group:
            cut = len(integer) % self._group
            parts = [integer[:cut]] if cut else []
            parts += [integer[i : i + self._group] for i in range(cut, len(integer), self._group)]
            integer = self._symbols.grouping.join(parts)
        point = self._symbols.decimal if fraction or self._point else ""
        return integer + point + fraction

    def _scientific(self, value: float) -> str:
        digits, at = decimal_digits(value)
        places = self._max_integer + self._max_fraction
        if 0 < places < len(digits):
            digits, at = rounded(value, places - at)
        least = self._min_integer
        if self._max_integer > 1 and self._max_integer > least:  # the exponent is a multiple of max_integer
            exponent = (at - 1) // self._max_integer * self._max_integer
            least = 1
        else:
            exponent = at - least
        whole = at - exponent if digits else least
        digits = digits.ljust(max(self._min_integer + self._min_fraction, whole), "0")
        if not digits.strip("0"):
            exponent = 0
        point = self._symbols.decimal if len(digits) > whole or self._point else ""
        sign = "-" if exponent < 0 else ""
        power = str(abs(exponent)).rjust(self._exponent_digits, "0")
        return f"{digits[:whole]}{point}{digits[whole:]}E{sign}{power}"


def decimal_digits(value: float) -> tuple[str, int]:
    """Digits without zeros at either end and the place of the decimal point before them: 0.digits * 10^place.

    The shortest that give the same double, except integers from 2^53 to 2^63, where JDK 17 drops only
    the decimal digits that carry no information.
    """
    if float(1 << 53) <= value < float(1 << 63):
        integer = int(value)
        idle = int(max(0, integer.bit_length() - 55) * 0.30103)
        step: int = 10**idle
        text = str((integer + step // 2) // step) + "0" * idle
        return text.rstrip("0"), len(text)
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    at = len(whole) + int(power or 0)
    stripped = digits.lstrip("0")
    at -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0")
    return stripped, at if stripped else 0


def rounded(value: float, decimals: int) -> tuple[str, int]:
    """As decimal_digits, but rounded half to even at that many decimals (negative: left of the point).

    Java's exceptions: a tie left of the point goes up; of 0.0005, 0.00005 and so on at the place before
    the 5, which none of them equals in binary, nothing is left.
    """
    if decimals >= 3 and decimal_digits(value) == ("5", -decimals):
        return "", 0
    numerator, denominator = value.as_integer_ratio()
    if decimals >= 0:
        numerator *= 10**decimals
    else:
        denominator *= 10**-decimals
    quotient, remainder = divmod(numerator, denominator)
    if 2 * remainder > denominator or (2 * remainder == denominator and (quotient & 1 or decimals < 0)):
        quotient += 1
    text = str(quotient)
    stripped = text.rstrip("0")
    return stripped, len(text) - decimals if stripped else 0
