"""The agent `exceptions`: what it counts, and what it takes for swallowed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator

import pytest

from vmscope import Units, counter, tool
from vmscope.agents import exceptions
from vmscope.errors import VMScopeError
from vmscope.tool.host import Host
from vmscope.tool.sources.event_sources import install

pytestmark = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="events of exceptions need CPython 3.12")


class Odd(Exception):
    """Thrown by these tests alone."""


class Other(Odd):
    pass


@pytest.fixture
def vm() -> Iterator[Host]:
    host = Host()
    host.enter(tool.Phase.LIVE)
    install(host)
    yield host
    for environment in list(host.environments):
        environment.dispose_environment()


@pytest.fixture
def agent(vm: Host) -> Iterator[None]:
    exceptions.agent_on_attach(vm, "type=Odd")
    yield
    exceptions.agent_on_unload(vm)


def throw(kind: type[BaseException] = Odd) -> None:
    raise kind("it")


def at(function: Callable[..., object], line: int) -> str:
    return f"{__name__}.{function.__qualname__}:{function.__code__.co_firstlineno + line}"


def count(name: str, **labels: str) -> float:
    return counter(f"exceptions.{name}", units=Units.EVENTS).labels(**labels).value


def counts(by: str, kind: str = "Odd") -> tuple[float, float]:
    labels = {"type": kind, "at": at(throw, 1), "by": by}
    return count("caught", **labels), count("swallowed", **labels)


def ignores() -> None:
    try:
        throw()
    except Odd:
        pass


def ignores_all() -> None:
    try:
        throw()
    except:  # noqa: E722
        pass


def answers() -> int:
    try:
        throw()
    except (ValueError, Odd):
        return 1
    return 0


def second_clause(also: bool = False) -> int:
    try:
        throw()
    except ValueError as error:
        logging.debug("%s", error)
        raise
    except Odd:
        if also:
            return 1
    except LookupError:
        raise
    return 0


def binds() -> str:
    try:
        throw()
    except Odd as error:
        return str(error)
    return ""


def turns() -> None:
    try:
        try:
            throw()
        except Odd:
            raise Other from None
    except Other:
        pass


def reports() -> None:
    try:
        throw()
    except Odd:
        logging.getLogger("vmscope.tests").exception("it")


@pytest.mark.parametrize(("function", "line"), [(ignores, 3), (ignores_all, 3), (answers, 3), (second_clause, 6)])
def test_what_is_swallowed(agent: None, function: Callable[[], object], line: int) -> None:
    before = counts(at(function, line))
    function()
    caught, swallowed = counts(at(function, line))
    assert (caught - before[0], swallowed - before[1]) == (1, 1)


@pytest.mark.parametrize(("function", "line"), [(binds, 3), (turns, 4), (reports, 3)])
def test_what_is_looked_at_is_not_swallowed(agent: None, function: Callable[[], object], line: int) -> None:
    logging.getLogger("vmscope.tests").disabled = True
    before = counts(at(function, line))
    function()
    caught, swallowed = counts(at(function, line))
    assert (caught - before[0], swallowed - before[1]) == (1, 0)


def test_a_throw_is_counted_once_however_far_it_goes(agent: None) -> None:
    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        throw()

    labels = {"type": "Odd", "at": at(throw, 1)}
    before = count("thrown", **labels)
    with pytest.raises(Odd):
        deep(20)
    assert count("thrown", **labels) - before == 1


def test_other_types_are_not_counted(agent: None) -> None:
    before = counts(at(ignores_all, 3), "KeyError")
    for kind, counted in ((KeyError, False), (Other, True)):
        labels = {"type": kind.__name__, "at": at(throw, 1)}
        thrown = count("thrown", **labels)
        with pytest.raises(kind):
            throw(kind)
        assert count("thrown", **labels) - thrown == counted
    assert counts(at(ignores_all, 3), "KeyError") == before


def test_only_what_matches_is_counted(vm: Host) -> None:
    exceptions.agent_on_load(vm, f"type=Odd,match={__name__}.ign*")
    before = counts(at(ignores, 3)), counts(at(answers, 3))
    ignores()
    answers()
    after = counts(at(ignores, 3)), counts(at(answers, 3))
    exceptions.agent_on_unload(vm)
    assert after[0] == (before[0][0] + 1, before[0][1] + 1)
    assert after[1] == before[1]


def test_unloaded_it_counts_nothing_and_holds_nothing(vm: Host) -> None:
    exceptions.agent_on_load(vm, "type=Odd")
    exceptions.agent_on_unload(vm)
    before = counts(at(ignores, 3))
    ignores()
    assert counts(at(ignores, 3)) == before
    assert vm.environments == []


def test_the_report(vm: Host, capsys: pytest.CaptureFixture[str]) -> None:
    exceptions.agent_on_load(vm, "type=Odd,report=on")
    ignores()
    binds()
    exceptions.agent_on_unload(vm)
    row = f"       1  Odd of {at(throw, 1)}\n          by {at(ignores, 3)}\n"
    assert capsys.readouterr().err == f"exceptions swallowed:\n{row}"


def test_bad_options_load_nothing(vm: Host) -> None:
    with pytest.raises(ValueError, match="is not an option"):
        exceptions.agent_on_load(vm, "kind=Odd")
    assert vm.environments == []


def test_errors_of_the_rules_are_vmscope_s(vm: Host) -> None:
    vm.rules.always &= ~(1 << tool.Capability.CAN_GENERATE_EXCEPTION_EVENTS)
    with pytest.raises(VMScopeError):
        exceptions.agent_on_load(vm, "")
