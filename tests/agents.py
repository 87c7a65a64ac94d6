"""VMs and agents' environments for the tests of the tool interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.sources.event_sources import install
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase


def live(*, holding: bool = True) -> Environment:
    """In a VM of its own, which is LIVE: with every capability there is, or with none."""
    vm = Host(CapabilityRules((1 << len(Capability)) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env(agent="tester")
    if holding:
        env.add_capabilities(Capability)
    return env


@contextmanager
def live_vm() -> Iterator[Host]:
    """A VM in LIVE that makes all events; at the end its environments are disposed of."""
    vm = Host()
    install(vm)
    vm.enter(Phase.LIVE)
    yield vm
    for environment in vm.environments:
        environment.dispose_environment()
