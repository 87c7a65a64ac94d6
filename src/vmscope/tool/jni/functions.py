"""The functions that C callers have otherwise than Python's: those that are given a C function to call."""

from __future__ import annotations

from vmscope.tool.jni import extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vmscope.tool.environment import Environment
    from vmscope.tool.jni.bridge import NativeAgentBridge
    from vmscope.tool.model.threads import Thread


def run_agent_thread(
    bridge: NativeAgentBridge, environment: Environment, thread: Thread, proc: int, argument: int, priority: int
) -> None:
    start = bridge.jni.start_function(bridge.address(environment), proc, argument)
    environment.run_agent_thread(thread, start, argument, priority)


def set_extension_event_callback(
    bridge: NativeAgentBridge, environment: Environment, event_index: int, callback: int | None
) -> None:
    called = None
    if callback is not None and event_index in environment.host.extension_events:
        called = bridge.jni.callback(bridge.address(environment), event_index, callback)
    environment.set_extension_event_callback(event_index, called)


OWN: dict[str, Callable[..., object]] = {
    "run_agent_thread": run_agent_thread,
    "set_extension_event_callback": set_extension_event_callback,
    "get_extension_functions": extensions.get_extension_functions,
    "get_capability_holders": extensions.get_capability_holders,
    "get_derived_flags": extensions.get_derived_flags,
}
