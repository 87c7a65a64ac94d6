"""The table's functions beside HotSpot: phase, environment, capability, then the first argument that is wrong.

Each function is called in ONLOAD, START and LIVE with nothing but null pointers and zeroes, on an environment that
holds nothing, on one that holds all it could get, and on one that has been disposed of; in LIVE also with threads that
are none and negative numbers. What the row says the error is, HotSpot has to answer. Calls that the row lets pass are
not made: SuspendThread(NULL) would be the end of the test. The order of the arguments is that of JDK 25; 17 looks at
the thread first, and takes null for the current one where 25 does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.agents import build
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.functions import BY_METHOD, SINCE, Function, Parameter

BARE, CAPABLE, DISPOSED = range(3)
PHASES = ((Phase.ONLOAD, ""), (Phase.START, "S"), (Phase.LIVE, "L"))
ZERO_IS_RIGHT = {"count", "int", "long", "float", "double", "bool", "location", "mode", "verbose", "error", "filter"}
THREAD_FIRST = 17


def expected(function: Function, phase: Phase, environment: int, wrong: bool) -> int:
    """By its row; 0 where the call would go on."""
    if not function.phases >> phase & 1:
        return 112
    if environment == DISPOSED:
        return 116
    if function.capability is not None and environment == BARE:
        return 99
    for parameter in function.in_order():
        right = parameter.nullable or (parameter.type in ZERO_IS_RIGHT and not parameter.array)
        if parameter.direction == "*":
            right = parameter.nullable
        elif not parameter.array and parameter.type in ("thread", "count"):
            right = right and not wrong
        if not right and parameter.error:
            return parameter.error if parameter.type == "thread" else parameter.null_error
    return 0


def calls(version: int) -> Iterator[tuple[Function, Phase, int, bool, int]]:
    for phase, _ in PHASES:
        for environment in (BARE, CAPABLE, DISPOSED):
            for wrong in (False, True) if phase == Phase.LIVE else (False,):
                for function in BY_METHOD.values():
                    if SINCE.get(function.slot, 0) > version or (version == THREAD_FIRST and differs(function, wrong)):
                        continue
                    error = expected(function, phase, environment, wrong)
                    if error:
                        yield function, phase, environment, wrong, error


def differs(function: Function, wrong: bool) -> bool:
    """Whether JDK 17 answers otherwise."""
    return function.name in ("ResumeThread", "InterruptThread") or (
        wrong and any(parameter.type == "thread" for parameter in function.parameters)
    )


def case(function: Function) -> str:
    arguments = ", ".join(["env", *map(argument, function.parameters)])
    return f"case {function.slot}: return (*env)->{function.name}({arguments});\n"


def argument(parameter: Parameter) -> str:
    if parameter.direction != "*" and not parameter.array and parameter.type in ("thread", "count"):
        return "thread" if parameter.type == "thread" else "number"
    return "0"


@pytest.mark.parametrize("version", [17, 25])
def test_the_first_error_is_hotspot_s(version: int, tmp_path: Path) -> None:
    asked = list(calls(version))
    program = ""
    for phase, mark in PHASES:
        program += f"{mark}\n" if mark else ""
        program += "".join(
            f"{env} {function.slot} {wrong:d}\n" for function, when, env, wrong, _ in asked if when == phase
        )
    (tmp_path / "program").write_text(program)
    cases = [case(function) for function in BY_METHOD.values() if SINCE.get(function.slot, 0) <= version]
    (tmp_path / "calls.inc").write_text("".join(cases))
    theirs = map(int, build("function_agent.c", version, tmp_path).run(tmp_path))
    different = [
        f"{function.name} in {phase.name} on {env}, wrong {wrong}: {error}, not {answer}"
        for (function, phase, env, wrong, error), answer in zip(asked, theirs, strict=True)
        if answer != error
    ]
    assert not different, "\n".join(different)
    assert len(asked) > 900
