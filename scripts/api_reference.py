"""What sphinx's autodoc is told for docs/api: where public names stand, and what the table says of a function."""

from __future__ import annotations

from tool_tables import capability, phases

import vmscope
from vmscope import commands, tool
from vmscope.tool.spec.errors import ERRORS
from vmscope.tool.spec.functions import BY_METHOD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PUBLIC = (vmscope, tool, commands)
NOT_OURS = [("py:.*", ".*")]  # types in signatures that have no page: CPython's own, and private ones of vmscope


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", add_rules)
    app.connect("missing-reference", find_public)


def add_rules(app: Any, kind: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Below a function of the tool interface: its mechanism and what differs, phases, capability and errors."""
    method = name.rpartition(".")[2]
    if not name.startswith("vmscope.tool.Environment.") or method not in BY_METHOD:
        return
    for word in ("CPython: ", "Differs: "):
        for at, line in enumerate(lines):
            if line.startswith(word):
                lines[at : at + 1] = ["", f"*{word.strip()}* {line.removeprefix(word)}"]
                break
    lines += ["", *rules(method)]


def rules(method: str) -> list[str]:
    function = BY_METHOD[method]
    errors = ", ".join(f"`{ERRORS[code].__name__}` ({code})" for code in function.errors)
    return [
        f":Phases: {phases(function.phases)}",
        f":Capability: {capability(function.capability) or 'none'}",
        f":Errors: {errors}",
    ]


def find_public(app: Any, env: Any, node: Any, content: Any) -> Any:
    """The page of a class that a signature names by the module where it is written."""
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    for module in PUBLIC:
        target = f"{module.__name__}.{name}"
        if node.get("refdomain") == "py" and name in module.__all__ and target != node["reftarget"]:
            return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
    return None
