"""VM.flags and VM.set_flag: the VM options in force, and changing those that can be changed while the VM runs."""

from __future__ import annotations

import sys

from vmscope import flags
from vmscope.commands.arguments import Argument
from vmscope.commands.registry import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.commands.registry import Output
    from vmscope.flags import Value


def show(out: Output, all: bool) -> None:
    values, origins = flags.in_force.values(), flags.in_force.origins
    if not all:
        out.write(" ".join([*(written(name, value) for name, value in values.items() if value != ""), "\n"]))
        return
    for name, value in values.items():
        out.write(_row(name, value, "manageable" if name in flags.WRITEABLE else "product", origins.get(name)))
    for name, value in derived_flags(always=True).items():
        out.write(_row(name, value, "tool interface", "ergonomic" if value else None))


def written(name: str, value: Value) -> str:
    """The option that gives a flag this value."""
    if isinstance(value, bool):
        return f"-XX:{'+' if value else '-'}{name}"
    return f"-XX:{name}={value}"


def derived_flags(always: bool) -> dict[str, bool]:
    """What the tool interface's capabilities have made possible so far: not options, as no command line can give them.
    A program without agents pays nothing for it, unless it is to be shown `always`."""
    host = sys.modules.get("vmscope.tool.host")
    if host is not None and host.exists():
        derived: dict[str, bool] = host.vm().rules.flags()
        return derived
    if not always:
        return {}
    from vmscope.tool.spec.capabilities import CapabilityRules

    return dict.fromkeys(CapabilityRules(0, 0, 0, 0).flags(), False)


def _row(name: str, value: Value, kind: str, origin: str | None) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{_type(value):>9} {name:<40} = {text:<40} {{{kind}}} {{{origin or 'default'}}}\n"


def _type(value: Value) -> str:
    return "bool" if isinstance(value, bool) else "uintx" if isinstance(value, int) else "ccstr"


def set_flag(out: Output, flag_name: str, string_value: str) -> None:
    flags.change(flag_name, string_value)


COMMANDS = (
    Command(
        "VM.flags",
        "The VM options in force.",
        show,
        arguments=(
            Argument(
                "-all",
                "Every flag, with its value and who gave it; what agents' capabilities have made possible.",
                "BOOLEAN",
                default="false",
            ),
        ),
    ),
    Command(
        "VM.set_flag",
        "Gives a VM option another value while the program runs.",
        set_flag,
        arguments=(
            Argument("flag name", f"One of {', '.join(sorted(flags.WRITEABLE))}.", mandatory=True),
            Argument("string value", "Its new value; of a switch true, false, 1 or 0.", mandatory=True),
        ),
    ),
)
