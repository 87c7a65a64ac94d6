"""System properties, verbose flags, the sampling interval; processors under a control group."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vmscope import flags
from vmscope.tool import processors
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.spec.capabilities import Capability, CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import IllegalArgument, MustPossessCapability, NotAvailable, NullPointer, WrongPhase
from vmscope.tool.verbose import VerboseFlag


@pytest.fixture
def env() -> Iterator[Environment]:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.ONLOAD)
    before = dict(flags.in_force.properties)
    yield vm.get_env()
    flags.in_force.properties.clear()
    flags.in_force.properties.update(before)


def test_properties_say_what_python_and_the_system_are(env: Environment) -> None:
    names = env.get_system_properties()
    assert len(names) == len(set(names))
    values = {name: env.get_system_property(name) for name in names}
    assert values["java.version"] == platform.python_version()
    assert values["os.name"] == platform.system()
    assert values["os.arch"] == platform.machine()
    assert values["user.dir"] == os.getcwd()
    assert values["java.class.path"] == os.pathsep.join(sys.path)
    for wrong in ("no.such.property", ""):
        with pytest.raises(NotAvailable):
            env.get_system_property(wrong)
    with pytest.raises(NullPointer):
        env.get_system_property(None)  # type: ignore[arg-type]


def test_agents_set_properties_in_onload(env: Environment) -> None:
    env.set_system_property("user.home", "/elsewhere")
    env.set_system_property("shop.mode", "test")
    assert (env.get_system_property("user.home"), env.get_system_property("shop.mode")) == ("/elsewhere", "test")
    assert "shop.mode" in env.get_system_properties()
    for name in ("shop.mode", "user.home"):
        env.set_system_property(name, None)
    assert env.get_system_property("user.home") == os.path.expanduser("~")
    assert "shop.mode" not in env.get_system_properties()
    with pytest.raises(NotAvailable):
        env.set_system_property("java.version", "9")
    with pytest.raises(NullPointer):
        env.set_system_property(None, "x")  # type: ignore[arg-type]
    env.host.enter(Phase.PRIMORDIAL)
    env.host.enter(Phase.START)
    env.host.enter(Phase.LIVE)
    with pytest.raises(WrongPhase):
        env.set_system_property("shop.mode", "live")


def test_verbose_flags_that_there_are_not(env: Environment) -> None:
    env.set_verbose_flag(VerboseFlag.OTHER, True)
    for wrong in (3, -1, None, "gc"):
        with pytest.raises(IllegalArgument):
            env.set_verbose_flag(wrong, True)  # type: ignore[arg-type]
    with pytest.raises(IllegalArgument):
        env.set_verbose_flag(VerboseFlag.GC, 2)


def test_the_sampling_interval(env: Environment) -> None:
    with pytest.raises(MustPossessCapability):
        env.set_heap_sampling_interval(0)
    env.add_capabilities({Capability.CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS})
    env.set_heap_sampling_interval(1000)
    assert env.host.sampling_interval == 1000
    for wrong in (-1, 1 << 31, None, "0"):
        with pytest.raises(IllegalArgument):
            env.set_heap_sampling_interval(wrong)  # type: ignore[arg-type]


# -- processors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max 100000", None), ("150000 100000", 2), ("50000 100000", 1), ("400000 100000", 4), ("-1 100000", None)],
)
def test_a_limit_of_version_2_is_rounded_up(tmp_path: Path, limit: str, expected: int | None) -> None:
    (tmp_path / "cpu.max").write_text(limit + "\n")
    assert processors._quota(str(tmp_path), "cpu.max", "") == expected


def test_the_groups_above_are_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "group").write_text("0::/shop/web\n")
    (tmp_path / "mounts").write_text(f"31 23 0:28 / {tmp_path} rw,relatime - cgroup2 cgroup2 rw\n")
    inner = tmp_path / "shop" / "web"
    inner.mkdir(parents=True)
    monkeypatch.setattr(processors, "GROUPS", str(tmp_path / "group"))
    monkeypatch.setattr(processors, "MOUNTS", str(tmp_path / "mounts"))
    assert processors.quotas() == []
    (inner / "cpu.max").write_text("max 100000\n")
    (inner.parent / "cpu.max").write_text("300000 100000\n")
    assert processors.quotas() == [3]
    (inner / "cpu.max").write_text("200000 100000\n")
    assert processors.quotas() == [2, 3]
