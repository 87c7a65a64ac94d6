"""The capability rules, given HotSpot's sets, beside HotSpot: random programs, every answer equal.

A program is what several agents do in one VM: they make environments, add, relinquish, look at what is potential,
enable the class file load hook, dispose. It is replayed by a small agent in a real JVM and by `Environment` here.
What was acquired in ONLOAD stays acquirable for the VM's whole life, so each JVM runs a chain of programs, each on
environments of its own, and one `CapabilityRules` lives as long as that JVM: 40 JVMs with 13 programs each, of which
the first part runs in ONLOAD, then a few steps in START, where all is refused, and the rest in LIVE.
VMSCOPE_CAPABILITY_VMS=500 runs as many JVMs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.agents import Agent, build
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.spec.capabilities import Capability, CapabilityRules, CapabilitySet, mask
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import ToolError
from vmscope.tool.spec.events import Event

ALWAYS = mask(0, 3, 4, 7, 9, 10, 11, 12, 21, 22, 23, *range(26, 33), *range(35, 41))
VIRTUAL_THREADS = mask(44)  # JDK 21 and later
ONLOAD = mask(5, 6, 8, *range(13, 19), 24, 25, 33, 34, 41, 42)
ALWAYS_SOLO = mask(20, 43)
ONLOAD_SOLO = mask(1, 2, 19)

VMS = int(os.environ.get("VMSCOPE_CAPABILITY_VMS", "40"))
BATCHES = 8
PROGRAMS = 13
STEPS = 40
ONES = (1 << 128) - 1
WORD = (1 << 64) - 1

Step = tuple[str, int, int]  # what to do, to which environment, with which set or mode

START: Step = ("S", 0, 0)
LIVE: Step = ("L", 0, 0)
MAKE: Step = ("E", 0, 0)


def chain(seed: int) -> list[Step]:
    """The steps of one VM's programs: those in ONLOAD, a few in START, those in LIVE."""
    chance = random.Random(seed)
    first: list[int] = [0]
    in_onload = chance.randrange(PROGRAMS)
    steps: list[Step] = []
    for _ in range(in_onload):
        steps += program(chance, first)
    steps.append(START)
    for _ in range(chance.randrange(8)):
        steps.append(chance.choice([MAKE, *(step(chance, range(first[0])) for _ in range(3) if first[0])]))
    steps.append(LIVE)
    for _ in range(PROGRAMS - in_onload):
        steps += program(chance, first)
    return steps


def program(chance: random.Random, first: list[int]) -> Iterator[Step]:
    """One program on new environments; now and then it looks at those of the programs before."""
    count = chance.randint(1, 4)
    for _ in range(count):
        yield MAKE
    own = range(first[0], first[0] + count)
    first[0] += count
    for _ in range(STEPS):
        yield step(chance, own if chance.random() < 0.9 else range(first[0]))
    for index in own:
        yield "G", index, 0
        if chance.random() < 0.6:
            yield "D", index, 0
    yield "P", chance.choice(own), 0


def step(chance: random.Random, environments: range) -> Step:
    kind = chance.choices("ARPGHDarpg", (8, 5, 5, 3, 1, 1, 0.2, 0.2, 0.2, 0.2))[0]
    index = chance.choice(environments)
    if kind in "AR":
        return kind, index, some_capabilities(chance)
    if kind == "H":
        return kind, index, chance.randint(0, 1)
    return kind, index, 0


def some_capabilities(chance: random.Random) -> int:
    """Mostly a few of one of the four sets, often the ones that only one environment can hold; rarely anything."""
    pool = chance.choice([ALWAYS, ONLOAD, ALWAYS_SOLO, ONLOAD_SOLO, ALWAYS_SOLO | ONLOAD_SOLO, (1 << 45) - 1])
    bits = [bit for bit in range(45) if pool >> bit & 1]
    chosen = mask(*chance.sample(bits, min(len(bits), chance.choice([1, 1, 2, 3, 20]))))
    if chance.random() < 0.02:
        chosen |= mask(*chance.sample(range(45, 128), 2))
    return chosen


def written(step: Step) -> str:
    kind, index, value = step
    if kind in "ESL":
        return kind
    if kind in "AR":
        return f"{kind} {index} {value & WORD:x} {value >> 64:x}"
    return f"H {index} {value}" if kind == "H" else f"{kind} {index}"


class Replay:
    """The same steps on our side."""

    def __init__(self, version: int) -> None:
        always = ALWAYS | (VIRTUAL_THREADS if version >= 21 else 0)
        self.host = Host(CapabilityRules(always, ONLOAD, ALWAYS_SOLO, ONLOAD_SOLO))
        self.host.enter(Phase.ONLOAD)
        self.environments: list[Environment] = []

    def answers(self, steps: list[Step]) -> list[str]:
        answers = []
        for step in steps:
            if step == START:
                self.host.enter(Phase.PRIMORDIAL)
                self.host.enter(Phase.START)
            elif step == LIVE:
                self.host.enter(Phase.LIVE)
            else:
                answers.append(self.answer(*step))
        return answers

    def answer(self, kind: str, index: int, value: int) -> str:
        try:
            if kind == "E":
                self.environments.append(self.host.get_env())
                return "0"
            got = self.do(kind, self.environments[index], value)
        except ToolError as error:
            return str(error.code)
        return "0" if got is None else f"0 {got & WORD:x} {got >> 64:x}"

    def do(self, kind: str, env: Environment, value: int) -> int | None:
        """What a set-giving function leaves in 16 bytes of ones; None for the others."""
        nothing: CapabilitySet = None  # type: ignore[assignment]
        rules = self.host.rules
        if kind == "A" and value >> 45 and not env.disposed and self.host.phase != Phase.START:
            # bits that no capability has: only a caller from C can give them, and what such a one calls is this
            env.held = rules.add(env.held, env.prohibited, value, self.host.phase)
        elif kind == "A":
            env.add_capabilities(CapabilitySet(bits=value))
        elif kind == "R":
            env.relinquish_capabilities(CapabilitySet(bits=value))
        elif kind == "P":
            return rules.copy(int(env.get_potential_capabilities()), ONES)
        elif kind == "G":
            return rules.copy(int(env.get_capabilities()), ONES)
        elif kind == "D":
            env.dispose_environment()
        elif kind == "H":
            env.set_event_notification_mode(value, Event.CLASS_FILE_LOAD_HOOK)
        elif kind == "a":
            env.add_capabilities(nothing)
        elif kind == "r":
            env.relinquish_capabilities(nothing)
        else:  # Python's functions give a set back and take no pointer to one
            (env.get_potential_capabilities if kind == "p" else env.get_capabilities)()
            return None
        return None


@pytest.fixture(scope="module", params=[17, 25])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return build("capability_agent.c", int(request.param), tmp_path_factory.mktemp("agent"))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_answer_is_hotspot_s(agent: Agent, batch: int, tmp_path: Path) -> None:
    for seed in range(batch, VMS, BATCHES):
        steps = chain(seed)
        asked = [step for step in steps if step not in (START, LIVE)]
        (tmp_path / "program").write_text("".join(f"{written(step)}\n" for step in steps))
        theirs = agent.run(tmp_path)
        ours = Replay(agent.jdk.version).answers(steps)
        assert len(theirs) == len(asked)
        for number, (step, expected, answer) in enumerate(zip(asked, theirs, ours, strict=True)):
            if step[0] in ("p", "g"):
                assert expected in ("100", "112", "116")  # a null pointer for the result has no counterpart in Python
                continue
            assert answer == expected, f"VM {seed}, step {number}: {written(step)}"


def test_the_programs_are_worth_running() -> None:
    """At least 500; in them each answer and each set is met often."""
    assert VMS * PROGRAMS >= 500
    met = dict.fromkeys(("0", "98", "100", "112", "116", "-2"), 0)
    for seed in range(VMS):
        for answer in Replay(17).answers(chain(seed)):
            met[answer.split()[0]] += 1
    assert all(count >= 30 for count in met.values()), met
    assert met["0"] > met["98"] > 500
    assert {int(capability) for capability in Capability} == {
        bit for bit in range(45) if (ALWAYS | VIRTUAL_THREADS | ONLOAD | ALWAYS_SOLO | ONLOAD_SOLO) >> bit & 1
    }
