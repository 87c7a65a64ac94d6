"""A profile: how much of something each stack of each thread has."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CODE, NATIVE, TYPE, STATE = "code", "native", "type", "state"  # what a frame is

SAMPLES, BYTES, NANOSECONDS, EXCEPTIONS = "samples", "bytes", "nanoseconds", "exceptions"  # units

Stack = tuple[int, ...]  # numbers of frames, from the root on


class Profile:
    """Weights of stacks, by thread. `frames` are names with what they are; a stack has their numbers."""

    __slots__ = ("_numbers", "begin", "end", "frames", "mode", "stacks", "unit")

    def __init__(self, mode: str, unit: str) -> None:
        self.mode = mode
        self.unit = unit
        self.frames: list[tuple[str, str]] = []
        self.stacks: dict[tuple[str, Stack], int] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self.begin = self.end = 0  # nanoseconds since 1970

    def frame(self, name: str, kind: str = CODE) -> int:
        """Its number."""
        number = self._numbers.setdefault((name, kind), len(self.frames))
        if number == len(self.frames):
            self.frames.append((name, kind))
        return number

    def add(self, thread: str, stack: Stack, weight: int, at: int) -> None:
        """Something that happened at a time."""
        key = thread, stack
        self.stacks[key] = self.stacks.get(key, 0) + weight
        self.begin = min(self.begin or at, at)
        self.end = max(self.end, at)

    @property
    def total(self) -> int:
        """The weight of all."""
        return sum(self.stacks.values())

    @property
    def threads(self) -> list[str]:
        """Their names, the one with the largest weight first."""
        weights: dict[str, int] = {}
        for (thread, _), weight in self.stacks.items():
            weights[thread] = weights.get(thread, 0) + weight
        return sorted(weights, key=lambda thread: (-weights[thread], thread))

    def merged(self) -> dict[Stack, int]:
        """The weights of the stacks of all threads."""
        found: dict[Stack, int] = {}
        for (_, stack), weight in self.stacks.items():
            found[stack] = found.get(stack, 0) + weight
        return found

    def functions(self) -> list[Function]:
        """What each function has by itself and with what it calls, a recursive one once; the largest first.

        What is allocated or thrown on behalf of a function is its own.
        """
        return self._sorted([(self._code(stack), weight) for stack, weight in self.merged().items()])

    def types(self) -> list[Function]:
        """The same for the classes that are allocated, waited for or thrown."""
        stacks = self.merged().items()
        return self._sorted([(stack[-1:], weight) for stack, weight in stacks if stack != self._code(stack)])

    def _code(self, stack: Stack) -> Stack:
        return stack[:-1] if stack and self.frames[stack[-1]][1] == TYPE else stack

    def _sorted(self, stacks: Iterable[tuple[Stack, int]]) -> list[Function]:
        own: dict[int, int] = {}
        whole: dict[int, int] = {}
        for stack, weight in stacks:
            if stack:
                own[stack[-1]] = own.get(stack[-1], 0) + weight
            for frame in set(stack):
                whole[frame] = whole.get(frame, 0) + weight
        found = [Function(*self.frames[frame], own.get(frame, 0), weight) for frame, weight in whole.items()]
        return sorted(found, key=lambda each: (-each.own, -each.total, each.name))


class Function:
    """A frame's name, what it is, and its weights."""

    __slots__ = ("kind", "name", "own", "total")

    def __init__(self, name: str, kind: str, own: int, total: int) -> None:
        self.name = name
        self.kind = kind
        self.own = own
        self.total = total


class Node:
    """A frame in the tree of all stacks, with what ended there."""

    __slots__ = ("children", "own")

    def __init__(self) -> None:
        self.own = 0
        self.children: dict[int, Node] = {}


def tree(stacks: Iterable[tuple[Stack, int]]) -> Node:
    """Stacks that begin alike, as one tree."""
    root = Node()
    for stack, weight in stacks:
        node = root
        for frame in stack:
            child = node.children.get(frame)
            if child is None:
                child = node.children[frame] = Node()
            node = child
        node.own += weight
    return root
