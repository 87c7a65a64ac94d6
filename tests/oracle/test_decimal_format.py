"""Numbers in patterns, against java.text.DecimalFormat of JDK 17."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tests.oracle.jdk_tools import ask, bits
from tests.support import JDK
from vmscope.cli._views import number

PLAIN = ["0", "0.0", "0.00", "0.000"]
PATTERNS = [
    *PLAIN,
    *["#", "#.#", "#.##", "##0.0#", "#,##0", "#,##0.00", "000", "00.0", ".0", "#.", "0.", "##", "##.##", "##.00"],
    *["#,#", "#,####", ",0", "##,##0.0", "#00.0#", "0.0########", "0.00000000000000000000", ""],
    *["%0", "0%", "0.0%", "0.0‰", "0'%'%", "abc0.0", "0 'K'", "'#'0.0", "''0", "x", "@0", "-0", "0-", "é0", "E0", "."],
    *["0.0;(0.0)", "0.0;-0.0", "0.0;'neg'0.0x", "0;", "x0;"],
    *["0.###E0", "00.##E0", "##0.##E0", "##0.####E00", "0E0", "#E0", "#.#E0", "###E0", "0.00E000", "#.##E0"],
]
REFUSED = ["'", "0.0.0", "#0#", "0#.0", "0,", "0E", "0.0E", "0'", "%%0", "0,0.0,0", ";0", "0;0;0", "0;;0"]


def values(dice: random.Random, count: int) -> list[float]:
    """Doubles of the kinds that counters and their quotients have: ties above all."""
    special = [0.0, -0.0, 0.5, 1.5, 2.5, 0.05, 0.25, 0.125, 0.005, 999.5, 999.95, 9.9995, 99999.5, float("inf")]
    special += [-float("inf"), float("nan"), 1e-300, float((1 << 63) - 1), 2.0**53, 2.0**60, 2.0**62 + 2.0**20]
    kinds: list[Callable[[], float]] = [
        lambda: dice.choice(special),
        lambda: dice.randint(0, 10 ** dice.randint(1, 16)) / 10 ** dice.randint(0, 6),
        lambda: (dice.randint(0, 10**6) + 0.5) / dice.choice([1, 2, 4, 8, 16, 10, 100, 1000]),
        lambda: float(dice.randint(0, (1 << 63) - 1025)),
        lambda: dice.random() * 10 ** dice.randint(-8, 12),
        lambda: -dice.random() * 10 ** dice.randint(-4, 6),
        lambda: dice.randint(0, 10**13) / dice.choice([1024.0, 1e9, 1048576.0]),
    ]
    return [dice.choice(kinds)() for _ in range(count)]


def test_patterns_give_what_java_gives(jdk17: JDK) -> None:
    dice = random.Random(17)
    cases = [(pattern, value) for pattern in PATTERNS for value in values(dice, 400)]
    # Beyond 2^63 the JDK's shortest digits are not always the shortest; a factor can lift a value there.
    cases = [(p, v) for p, v in cases if not (("%" in p or "‰" in p) and 2**63 / 1000 < abs(v) < float("inf"))]
    answers = ask(jdk17, (("number", pattern, bits(value)) for pattern, value in cases))
    wrong = [(p, v, java, ours) for (p, v), java in zip(cases, answers, strict=True) if (ours := number(v, p)) != java]
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:10]}"


def test_ties_of_the_plain_patterns(jdk17: JDK) -> None:
    """Every value halfway between two that can be shown, and its neighbours, up to 3,000 of the last place."""
    cases = []
    for decimals, pattern in enumerate(PLAIN):
        for tick in range(3_000):
            tie = float(f"{(2 * tick + 1) * 5}e-{decimals + 1}")
            cases += [(pattern, tie), (pattern, tie * (1 + 2**-52)), (pattern, tie * (1 - 2**-52)), (pattern, -tie)]
    cases += [(f"0.{'0' * places}", float(f"5e-{places + 1}")) for places in range(1, 12)]
    answers = ask(jdk17, (("number", pattern, bits(value)) for pattern, value in cases))
    wrong = [(p, v, java, ours) for (p, v), java in zip(cases, answers, strict=True) if (ours := number(v, p)) != java]
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:10]}"


def test_refused_patterns(jdk17: JDK) -> None:
    assert [
        answer for answer in ask(jdk17, (("number", text, bits(1.0)) for text in REFUSED)) if not answer.startswith("!")
    ] == []
    for text in REFUSED:
        for value in (1.0, -1.0, float("nan")):
            with pytest.raises(ValueError, match=re.escape(repr(text))):
                number(value, text)
