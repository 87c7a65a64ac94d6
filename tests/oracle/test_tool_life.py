"""A VM's life beside HotSpot's: phases, their events, early VMStart, and when and as what environments are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.agents import build
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase, Version
from vmscope.tool.spec.errors import ToolError
from vmscope.tool.spec.events import Event


class Life:
    """What life_agent.c does, on our side."""

    def __init__(self) -> None:
        self.host = Host(CapabilityRules(1 << Capability.CAN_GENERATE_EARLY_VMSTART, 0, 0, 0))
        self.lines: list[str] = []
        self.host.enter(Phase.ONLOAD)
        self.environments = [self.host.get_env(), self.host.get_env()]
        self.environments[0].add_capabilities({Capability.CAN_GENERATE_EARLY_VMSTART})
        for env in self.environments:
            env.set_event_callbacks(
                {
                    Event.VM_START: lambda env: self.happened("start", env),
                    Event.VM_INIT: lambda env, thread: self.happened("init", env),
                    Event.VM_DEATH: lambda env: self.happened("death", env),
                }
            )
            for event in (Event.VM_INIT, Event.VM_DEATH, Event.VM_START):
                env.set_event_notification_mode(True, event)

    def happened(self, what: str, env: Environment) -> None:
        self.told(what, self.environments.index(env))
        self.lines.append(f"getenv {what} {self.asked(Version.V1_2)}")

    def told(self, what: str, index: int) -> None:
        self.lines.append(" ".join([what, str(index), *(str(int(env.get_phase())) for env in self.environments)]))

    def asked(self, version: int) -> int:
        try:
            self.host.get_env(version)
        except ToolError as error:
            return error.code
        return 0

    def live(self) -> list[str]:
        self.told("load", 0)
        self.host.enter(Phase.PRIMORDIAL)
        self.host.start_early()
        for phase in (Phase.START, Phase.LIVE, Phase.DEAD):
            self.host.enter(phase)
        self.happened("unload", self.environments[0])
        return self.lines


@pytest.mark.parametrize("version", [17, 25])
def test_a_life_is_a_jvm_s(version: int, tmp_path: Path) -> None:
    theirs = build("life_agent.c", version, tmp_path).run(tmp_path)
    asked = [line.split()[1:] for line in theirs if line.startswith("version")]
    assert Life().live() == [line for line in theirs if not line.startswith("version")]

    life = Life()
    for number, expected in asked:
        if int(number) >> 16 & 0xFFF <= version:  # newer ones HotSpot does not know
            assert life.asked(int(number)) == int(expected), hex(int(number))
    assert len(asked) == 400
