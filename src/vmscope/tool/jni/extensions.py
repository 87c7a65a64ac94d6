"""The extension functions as C callers have them: rows like those of `tool.functions`, behind the table's end."""

from __future__ import annotations

from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Phases
from vmscope.tool.spec.errors import IllegalArgument
from vmscope.tool.spec.functions import SLOTS, Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vmscope.tool.environment import Environment
    from vmscope.tool.jni.bridge import NativeAgentBridge


class NativeExtension:
    """One of them, with what `get_extension_functions` says of it."""

    __slots__ = ("description", "id", "row")

    def __init__(self, row: Function, description: str) -> None:
        self.row = row
        self.id = f"vmscope.{row.name}"
        self.description = description


SET_UP = Phases.SET_UP
EXTENSIONS = (
    NativeExtension(
        Function(SLOTS + 1, "GetCapabilityHolders", SET_UP, None, "capability:int *count:int *agents:text[]", (103,)),
        "the agents that hold a capability",
    ),
    NativeExtension(
        Function(SLOTS + 2, "GetDerivedFlags", SET_UP, None, "*count:int *names:text[] *values:bool[]", ()),
        "what has been made possible so far, by name",
    ),
)


def get_extension_functions(bridge: NativeAgentBridge, environment: Environment) -> list[NativeExtension]:
    return [*EXTENSIONS]


def get_capability_holders(bridge: NativeAgentBridge, environment: Environment, capability: int) -> list[str]:
    if capability not in frozenset(Capability):
        raise IllegalArgument(f"no capability has the number {capability}")
    holders: list[str] = python_function(environment, EXTENSIONS[0].id)(capability)
    return holders


def get_derived_flags(bridge: NativeAgentBridge, environment: Environment) -> tuple[list[str], list[bool]]:
    flags: dict[str, bool] = python_function(environment, EXTENSIONS[1].id)()
    return [*flags], [*flags.values()]


def python_function(environment: Environment, identifier: str) -> Callable[..., Any]:
    """What Python's agents have as this extension."""
    return next(each.call for each in environment.get_extension_functions() if each.id == identifier)
