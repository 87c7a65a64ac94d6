"""A flame graph as one page that needs nothing else, of one profile or of the difference between two."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources

from vmscope.flight.convert.profile import tree
from vmscope.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vmscope.flight.convert.profile import Node, Profile, Stack

_NAME = "flame_graph"


def flame_graph(profile: Profile, title: str, about: str) -> bytes:
    """The page of a profile."""
    return _page([profile], title, about)


def difference(before: Profile, after: Profile, title: str, about: str) -> bytes:
    """The page of what has changed, by each one's share of its own whole. Both have the same mode."""
    return _page([after, before], title, about)


def _page(profiles: Sequence[Profile], title: str, about: str) -> bytes:
    names = _Names()
    trees = []
    same = len({frozenset(profile.threads) for profile in profiles}) == 1
    for thread in profiles[0].threads if same else [None]:
        nodes: list[int] = []
        _flatten(-1, [_tree_of(profile, thread, names) for profile in profiles], nodes)
        trees.append({"thread": printable(thread or "all threads"), "nodes": nodes})
    data = {
        "about": printable(about),
        "unit": profiles[0].unit,
        "diff": len(profiles) > 1,
        "names": [printable(name) for name, _ in names.numbers],
        "kinds": "".join(kind[0] for _, kind in names.numbers),
        "trees": trees,
    }
    return _fill(title, json.dumps(data, separators=(",", ":")))


class _Names:
    """The frames of all profiles, numbered together."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}

    def of(self, profile: Profile) -> list[int]:
        """The number of each of its frames."""
        return [self.numbers.setdefault(frame, len(self.numbers)) for frame in profile.frames]


def _tree_of(profile: Profile, thread: str | None, names: _Names) -> Node:
    numbers = names.of(profile)
    stacks: Mapping[Stack, int] = (
        profile.merged()
        if thread is None
        else {stack: weight for (of, stack), weight in profile.stacks.items() if of == thread}
    )
    return tree((tuple(numbers[frame] for frame in stack), weight) for stack, weight in stacks.items())


def _flatten(frame: int, sides: Sequence[Node | None], into: list[int]) -> None:
    """Each node as its frame, the number of its children and its own weights; a node's children follow it."""
    left = [(frame, sides)]
    while left:
        frame, sides = left.pop()
        children = {each: None for side in sides if side is not None for each in side.children}
        into += [frame, len(children), *(0 if side is None else side.own for side in sides)]
        for child in reversed(children):
            left.append((child, [None if side is None else side.children.get(child) for side in sides]))


def _fill(title: str, data: str) -> bytes:
    folder = resources.files("vmscope.flight.convert").joinpath("page")
    page, style, script = (
        folder.joinpath(f"{_NAME}.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": policy,
        "title": html.escape(printable(title)),
        "style": style,
        "data": data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        "script": script,
    }
    return re.sub(rf"\{{({'|'.join(values)})\}}", lambda found: values[found[1]], page).encode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
