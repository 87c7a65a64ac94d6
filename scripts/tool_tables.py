"""The pages docs/tool-*.md of functions, events, capabilities and errors, out of the table in the code.

Functions are sections, so that each has an anchor and is found by the search; the others are tables.

What stands in a method's docstring after `CPython:` is the function's mechanism, after `Differs:` what a JVM does
otherwise; both go to the end of their paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from vmscope.tool.environment import Environment
from vmscope.tool.functions.unsupported import Unsupported
from vmscope.tool.spec.available_capabilities import SERVED_BY, WHY_NOT, CapabilitySets, capability_sets, features_of
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.codes import Error, Phase, Phases
from vmscope.tool.spec.errors import ERRORS
from vmscope.tool.spec.events import EVENTS
from vmscope.tool.spec.functions import BY_METHOD, SINCE, SLOTS, Function

Table = Callable[..., str]
CAPABILITY_COLUMNS = ("bit", "capability", "3.11", "3.12", "3.13", "3.14+", "3.13t+", "mechanism, or why none")
BUILDS = (((3, 11), True), ((3, 12), True), ((3, 13), True), ((3, 14), True), ((3, 13), False))  # with a GIL or not


def pages(table: Table) -> Iterator[tuple[str, str, str]]:
    """Each page's name, title and generated part; `table` makes a Markdown table of rows, the heading first."""
    yield "tool-functions", "Functions", "\n".join(functions())
    heading: tuple[str, ...] = ("number", "event", "phases", "capability", "for one thread", "callback gets")
    yield "tool-events", "Events", table(heading, *events())
    yield "tool-capabilities", "Capabilities", table(CAPABILITY_COLUMNS, *capabilities())
    heading = ("code", "JVM TI's name", "class", "meaning")
    yield "tool-errors", "Errors", table(heading, *errors())


def functions() -> Iterable[str]:
    """A section for each function, in the order of their slots."""
    by_slot = {function.slot: function for function in BY_METHOD.values()}
    reserved = ", ".join(str(slot) for slot in range(1, SLOTS + 1) if slot not in by_slot)
    yield f"{len(by_slot)} functions in {SLOTS} slots; the slots {reserved} are reserved.\n"
    for slot in sorted(by_slot):
        function = by_slot[slot]
        state, mechanism, difference = implementation(function)
        yield f"## {function.method}\n"
        since = f", since JDK {SINCE[slot]}" if slot in SINCE else ""
        yield f"Slot {slot}{since}{state}.\n"
        needs = f"{capability(function.capability)}, " if function.capability is not None else ""
        rows = {"Needs": f"{needs}phase {phases(function.phases)}", "In CPython": mechanism, "Unlike a JVM": difference}
        yield "".join(f"* **{heading}:** {text}\n" for heading, text in rows.items() if text)


def implementation(function: Function) -> tuple[str, str, str]:
    """State, mechanism and difference."""
    method = getattr(Environment, function.method, None)
    if method is None:
        return ": not implemented yet", "", ""
    text = method.__doc__ or ""
    if hasattr(Unsupported, function.method):
        return ": not possible in CPython", text.partition(": ")[2].rstrip("."), ""
    return "", after("CPython:", text), after("Differs:", text)


def after(mark: str, docstring: str) -> str:
    """The paragraph that begins with the mark, on one line, without the mark; "" when there is none."""
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=CPython:|Differs:)", docstring):
        if paragraph.strip().startswith(mark):
            return " ".join(paragraph.strip().removeprefix(mark).split()).rstrip(".")
    return ""


def phases(bits: int) -> str:
    if bits == Phases.ANY:
        return "any"
    order = (Phase.ONLOAD, Phase.PRIMORDIAL, Phase.START, Phase.LIVE, Phase.DEAD)
    return ", ".join(phase.name for phase in order if bits >> phase & 1)


def capability(number: int | None) -> str:
    return "" if number is None else f"`{Capability(number).name.lower()}`"


def events() -> Iterable[tuple[str, ...]]:
    for number, name, sent, needed, per_thread, parameters in EVENTS:
        names = ", ".join(parameter.partition(":")[0] for parameter in parameters.split())
        yield (str(number), name, phases(sent), capability(needed), "yes" if per_thread else "", names)


def capabilities() -> Iterable[tuple[str, ...]]:
    sets = [capability_sets(features_of(version, gil)) for version, gil in BUILDS]
    for each in Capability:
        where, need, mechanism = SERVED_BY[each]
        if not where:
            mechanism = "none: " + mechanism
        elif need in WHY_NOT and any(not place(each, of_version) for of_version in sets):
            mechanism += f" ({WHY_NOT[need]})"
        columns = [place(each, of_version) or "-" for of_version in sets]
        yield (str(int(each)), f"`{each.name.lower()}`", *columns, mechanism)


def place(each: Capability, sets: CapabilitySets) -> str:
    """The set that it stands in, in words; "" for none."""
    for name in ("always", "onload", "always_solo", "onload_solo"):
        if each in getattr(sets, name):
            return name.replace("_", ", ")
    return ""


def errors() -> Iterable[tuple[str, ...]]:
    for code, kind in sorted(ERRORS.items()):
        yield (str(code), Error(code).name, f"`{kind.__name__}`", (kind.__doc__ or "").splitlines()[0])
