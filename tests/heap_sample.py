"""A program with one of everything, which dumps its heap and says what is in it.

    python -m tests.heap_sample FILE

prints, as JSON, the ids and sizes of what stands in KEPT, the ids of all that the collector knows, and more.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import types
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, ClassVar

from vmscope import native


class Attributes:
    def __init__(self, **attributes: object) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


class Derived(Attributes):
    kept: ClassVar[list[int]] = [1, 2, 3]


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: object, right: object) -> None:
        self.left = left
        self.right = right


class Listed(list[Any]):
    pass


class Mapped(dict[str, Any]):
    __slots__ = ("more",)


class Weight(float):
    pass


class Meta(type):
    pass


class Made(metaclass=Meta):
    pass


class Wild:
    """What is looked up in it is looked up by code that must not run."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(name)

    def __sizeof__(self) -> int:
        raise AssertionError


class Outer:
    class Inner:
        pass


def local() -> type:
    class Local:
        pass

    return Local


def named(module: object, name: str) -> type:
    return type(name, (), {"__module__": module})


NAMED = [  # classes whose names are no names of the JVM's, or some package's
    named("shop", "models"),
    named("shop.models", "Order"),
    named("filter.views", "View"),
    named("java.lang", "String"),
    named("builtins", "java"),
    named("numpy", "dtype[float64]"),
    named("[B", "a/b;c"),
    named("..odd.", "Odd"),
    named("odd", ""),
    named(7, "Seven"),
    local(),
    Outer.Inner,
]

CYCLE: list[Any] = []
CYCLE.append(CYCLE)

KEPT: dict[str, Any] = {
    "attributes": Attributes(number=12345, text="a text"),
    "derived": Derived(number=1, other=2.5),
    "with a dictionary": Attributes(number=777),
    "slots": Slotted("left one", None),
    "list": [1, "two", None, 3.25],
    "tuple": ("a", ("b", ())),
    "set": {"in a set"},
    "frozenset": frozenset({"in a frozenset"}),
    "dict": {"key": "value", "other": 2},
    "dict of numbers": {1: "one", (2, 3): "two"},
    "ordered": OrderedDict(first=1, second=2),
    "default": defaultdict(list, a=[1]),
    "deque": deque(["in a deque"]),
    "listed": Listed(["an item"]),
    "mapped": Mapped(key="an item"),
    "weight": Weight(1.5),
    "small": 7,
    "negative": -(2**40),
    "large": 2**200 + 1,
    "large negative": -(2**63) - 1,
    "smallest": -(2**63),
    "float": -0.1,
    "complex": 1.5 - 2j,
    "bool": True,
    "none": None,
    "bytes": b"some \0 bytes",
    "bytearray": bytearray(b"others"),
    "empty text": "",
    "ascii": "plain",
    "latin": "caf\xe9",
    "wide": "\u20ac 5",
    "wider": "\U0001f600 smile",
    "lone": "\ud800",
    "range": range(10**20, 10**21),
    "class": Made,
    "wild": Wild(),
    "cycle": CYCLE,
    "function": lambda: KEPT,
    "module": os,
    "namespace": types.SimpleNamespace(inside=1),
    "exception": ValueError("what was wrong"),
}
KEPT["with a dictionary"].__dict__["later"] = "an attribute of its own"
vars(KEPT["with a dictionary"])

MANY: list[int] = []
REFERRERS = [[MANY] * 10 for _ in range(50)]
LONG = list(range(300, 140_300))
LONG_TEXT = "x" * 3_000_001
LONG_DICT = {str(number): number for number in range(140_000)}


class Crowd:
    pass


CROWD = [Crowd() for _ in range(321)]


def every_class() -> dict[int, str]:
    todo, found = [object], {id(object): object}
    for each in todo:
        derived: type
        for derived in type.__subclasses__(each):
            if id(derived) not in found:
                found[id(derived)] = derived
                todo.append(derived)
    return {key: name_of(kind) for key, kind in found.items()}


def name_of(kind: type) -> str:
    within, name = kind.__module__, kind.__qualname__.replace(".", "$")
    return name if within == "builtins" else f"{within}.{name}"


def main(path: str) -> None:
    inside, leave = threading.Event(), threading.Event()

    def wait() -> None:
        local = Slotted("only a variable's", None)
        inside.set()
        leave.wait(60)
        del local

    thread = threading.Thread(target=wait, name="the waiting one", daemon=True)
    thread.start()
    inside.wait(60)
    gc.collect()
    gc.disable()
    classes = every_class()
    kinds = Counter(map(name_of, map(type, gc.get_objects())))
    known = array("Q", map(id, gc.get_objects()))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    objects, size = native.dump_heap(fd)
    os.close(fd)
    leave.set()
    thread.join()
    constants = {name: value for name, value in globals().items() if name.isupper()}
    found = {
        "objects": objects,
        "size": size,
        "ids": {name: id(value) for name, value in {**constants, **KEPT}.items()},
        "sizes": {name: sys.getsizeof(value) for name, value in KEPT.items() if name != "wild"},
        "elements": {
            "LONG": list(map(id, LONG)),
            "keys": list(map(id, LONG_DICT)),
            "values": list(map(id, LONG_DICT.values())),
        },
        "classes": classes,
        "named": list(map(id, NAMED)),
        "known": known.tolist(),
        "kinds": kinds,
        "thread": [id(thread), thread.ident, thread.native_id],
        "modules": id(sys.modules["builtins"]),
    }
    with open(f"{path}.json", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
