"""An agent's environment for the tests of the tool interface's functions."""

from __future__ import annotations

from vmscope.tool.capabilities import Capability, CapabilityRules
from vmscope.tool.codes import Phase
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host


def live(*, holding: bool = True) -> Environment:
    """In a VM of its own, which is LIVE: with every capability there is, or with none."""
    vm = Host(CapabilityRules((1 << len(Capability)) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env(agent="tester")
    if holding:
        env.add_capabilities(Capability)
    return env
