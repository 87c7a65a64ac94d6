"""The tool interface: agents, phases, capabilities, environments and events, under JVM TI's rules.

    from vmscope import tool

    env = tool.vm().get_env(tool.Version.V1_2)
    env.add_capabilities({tool.Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    env.set_event_callbacks({tool.Event.METHOD_ENTRY: on_entry})
    env.set_event_notification_mode(True, tool.Event.METHOD_ENTRY)

Each name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.agent import Agent
    from vmscope.tool.agents import link_agent, load_agent, unload_agent
    from vmscope.tool.environment import Environment
    from vmscope.tool.functions.extensions import Extension, ExtensionEvent, ExtensionFunction
    from vmscope.tool.functions.monitor_info import MonitorStackDepth, MonitorUsage
    from vmscope.tool.functions.stacks import FrameInfo, StackInfo
    from vmscope.tool.functions.system import TimerInfo
    from vmscope.tool.functions.thread_queries import ThreadGroupInfo, ThreadInfo
    from vmscope.tool.host import Host, vm
    from vmscope.tool.model.thread_state import ThreadState
    from vmscope.tool.model.threads import Thread, ThreadGroup
    from vmscope.tool.spec.available_capabilities import CapabilitySets, capability_sets
    from vmscope.tool.spec.capabilities import Capability, CapabilityRules, CapabilitySet
    from vmscope.tool.spec.codes import Error, Phase, Version
    from vmscope.tool.spec.errors import ToolError
    from vmscope.tool.spec.events import Event
    from vmscope.tool.spec.heap_types import (
        HeapCallbacks,
        HeapFilter,
        IterationControl,
        ObjectFilter,
        PrimitiveType,
        ReferenceKind,
        RootKind,
        VisitControl,
    )
    from vmscope.tool.spec.structs import ClassDefinition, ConstantPool, LineNumberEntry, LocalVariableEntry
    from vmscope.tool.verbose import VerboseFlag

__all__ = [
    "Agent",
    "Capability",
    "CapabilityRules",
    "CapabilitySet",
    "CapabilitySets",
    "ClassDefinition",
    "ConstantPool",
    "Environment",
    "Error",
    "Event",
    "Extension",
    "ExtensionEvent",
    "ExtensionFunction",
    "FrameInfo",
    "HeapCallbacks",
    "HeapFilter",
    "Host",
    "IterationControl",
    "LineNumberEntry",
    "LocalVariableEntry",
    "MonitorStackDepth",
    "MonitorUsage",
    "ObjectFilter",
    "Phase",
    "PrimitiveType",
    "ReferenceKind",
    "RootKind",
    "StackInfo",
    "Thread",
    "ThreadGroup",
    "ThreadGroupInfo",
    "ThreadInfo",
    "ThreadState",
    "TimerInfo",
    "ToolError",
    "VerboseFlag",
    "Version",
    "VisitControl",
    "capability_sets",
    "link_agent",
    "load_agent",
    "unload_agent",
    "vm",
]

_HOMES = {
    "agent": ("Agent",),
    "agents": ("link_agent", "load_agent", "unload_agent"),
    "spec.capabilities": ("Capability", "CapabilityRules", "CapabilitySet"),
    "spec.codes": ("Error", "Phase", "Version"),
    "spec.available_capabilities": ("CapabilitySets", "capability_sets"),
    "environment": ("Environment",),
    "spec.errors": ("ToolError",),
    "spec.events": ("Event",),
    "functions.extensions": ("Extension", "ExtensionEvent", "ExtensionFunction"),
    "spec.heap_types": (
        "HeapCallbacks",
        "HeapFilter",
        "IterationControl",
        "ObjectFilter",
        "PrimitiveType",
        "ReferenceKind",
        "RootKind",
        "VisitControl",
    ),
    "host": ("Host", "vm"),
    "spec.structs": ("ClassDefinition", "ConstantPool", "LineNumberEntry", "LocalVariableEntry"),
    "model.thread_state": ("ThreadState",),
    "model.threads": ("Thread", "ThreadGroup"),
    "functions.monitor_info": ("MonitorStackDepth", "MonitorUsage"),
    "functions.stacks": ("FrameInfo", "StackInfo"),
    "functions.system": ("TimerInfo",),
    "functions.thread_queries": ("ThreadGroupInfo", "ThreadInfo"),
    "verbose": ("VerboseFlag",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            module = __import__(f"vmscope.tool.{home}", fromlist=[name])
            value: object = getattr(module, name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
