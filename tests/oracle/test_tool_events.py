"""Events' modes beside HotSpot 25: each event, on and off, for all threads, for one, for what is no live thread."""

from __future__ import annotations

from pathlib import Path

from tests.oracle.agents import build
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.capabilities import CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import ToolError
from vmscope.tool.spec.events import KINDS, Event

# HotSpot takes these numbers, which are no events, or its own extensions. Here they are InvalidEventType.
GAPS = {47, 48, 49, 72, 77, 78, 79, 85}


def test_every_error_is_hotspot_s(tmp_path: Path) -> None:
    theirs = [line.split() for line in build("event_agent.c", 25, tmp_path).run(tmp_path)]
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    environments = [vm.get_env(), vm.get_env()]
    environments[1].add_capabilities(environments[1].get_potential_capabilities())
    ended = threads.Thread(0)
    ended.end()
    chosen = [None, threads.current(), ended, object()]

    compared = 0
    for kind, *numbers in theirs:
        env, event, mode, thread, expected = map(int, numbers)
        if kind == "generate" and event == Event.COMPILED_METHOD_LOAD:
            continue  # no environment here has the capability, in this test alone one does
        if kind == "mode" and event in GAPS:
            expected = 102
        error = 0
        try:
            if kind == "generate":
                environments[env].generate_events(event)  # type: ignore[arg-type]
            else:
                environments[env].set_event_notification_mode(mode, event, chosen[thread])  # type: ignore[arg-type]
        except ToolError as raised:
            error = raised.code
        assert error == expected, f"{kind} {numbers}"
        compared += 1
    assert compared == 2 * 60 * 9 - 2
    assert GAPS.isdisjoint(KINDS)
