"""The agents of examples/native, unmodified, on HotSpot 17 and on this Python: they say the same, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native import EXAMPLES, Market, build, full_jdk, output

ASKED = (
    "tag_objects+get_bytecodes+get_line_numbers+get_source_file_name+access_local_variables+generate_breakpoint_events"
    "+generate_exception_events+generate_frame_pop_events+generate_method_entry_events+generate_method_exit_events"
    "+generate_single_step_events+generate_field_access_events+generate_garbage_collection_events"
    "+generate_object_free_events+generate_monitor_events+get_owned_monitor_info+redefine_classes+suspend"
    "+retransform_classes+signal_thread+get_thread_cpu_time+generate_all_class_hook_events+get_constant_pool"
)

CASES = {
    "phases": f"ask={ASKED}",
    "entries": "class=Lmarket/Basket;,methods=add+total+ask+fill+look",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native")


@pytest.fixture(scope="module")
def market(folder: Path) -> Market:
    return Market(full_jdk(), folder)


@pytest.mark.parametrize("agent", CASES)
def test_an_example_says_the_same_on_both(agent: str, market: Market, folder: Path) -> None:
    library = build(EXAMPLES / f"{agent}.c", folder, market.jdk)
    option = f"-agentpath:{library}={CASES[agent]}"
    java = output(market.java(option))
    assert java
    assert output(market.python(option)) == java
