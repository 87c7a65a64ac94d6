"""Tags: numbers that an agent gives to objects. Each environment has its own."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import threads
from vmscope.tool.model.introspection import is_a
from vmscope.tool.spec.errors import IllegalArgument, shown
from vmscope.tool.spec.events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host

LONG = 1 << 63


class _Weak(weakref.ref[object]):
    """A tagged object: it may die."""

    __slots__ = ("key", "tag")

    key: int
    tag: int


class Holder:
    """A tagged object of a class without weak references: it lives while it is tagged."""

    __slots__ = ("tag", "thing")

    def __init__(self, thing: object) -> None:
        self.thing = thing
        self.tag = 0

    def __call__(self) -> object:
        return self.thing


class Tags:
    """One environment's, by the identity of objects."""

    __slots__ = ("_freed", "by_id")

    def __init__(self, freed: Callable[[int], None]) -> None:
        """`freed` is called with the tag of each object that has died."""
        self.by_id: dict[int, _Weak | Holder] = {}
        self._freed = freed

    def get(self, thing: object) -> int:
        """0 for what has none."""
        found = self.by_id.get(id(thing))
        return found.tag if found is not None and found() is thing else 0

    def set(self, thing: object, tag: int) -> None:
        """0 takes it away."""
        found = self.by_id.get(id(thing))
        if not tag:
            self.by_id.pop(id(thing), None)
        elif found is not None and found() is thing:
            found.tag = tag
        else:
            made = self._made(thing)
            made.tag = tag
            self.by_id[id(thing)] = made

    def tagged(self) -> list[tuple[object, int]]:
        """Every object that has one, with it."""
        return [(thing, found.tag) for found in list(self.by_id.values()) if (thing := found()) is not None]

    def clear(self) -> None:
        self.by_id.clear()

    def _made(self, thing: object) -> _Weak | Holder:
        try:
            weak = _Weak(thing, self._died)
        except TypeError:
            return Holder(thing)
        weak.key = id(thing)
        return weak

    def _died(self, weak: weakref.ref[object]) -> None:
        assert isinstance(weak, _Weak)
        if self.by_id.get(weak.key) is weak:
            del self.by_id[weak.key]
            self._freed(weak.tag)


class Tag:
    """An object's tag as a heap callback is given it: `value` can be read and set."""

    __slots__ = ("_tags", "thing")

    def __init__(self, tags: Tags, thing: object) -> None:
        self._tags = tags
        self.thing = thing

    @property
    def value(self) -> int:
        return self._tags.get(self.thing)

    @value.setter
    def value(self, tag: int) -> None:
        check(tag)
        self._tags.set(self.thing, tag)

    def __repr__(self) -> str:
        return f"<Tag {self.value}>"


class Tagging(Base):
    def __init__(self, host: Host, version: int, agent: str) -> None:
        super().__init__(host, version, agent)
        self.tags = Tags(self._freed)
        self.closers.append(self.tags.clear)

    @function
    def get_tag(self, object: object) -> int:
        """The tag that this environment gave it; 0 for none.

        CPython: a map by identity.
        """
        return self.tags.get(object)

    @function
    def set_tag(self, object: object, tag: int) -> None:
        """Gives it a tag, in place of the one it had; 0 takes it away.

        CPython: a map by identity, with weak references; ObjectFree is sent when one dies.
        Differs: an object without weak references, such as a str, tuple, list or dict, lives while it is tagged.
        """
        check(tag)
        self.tags.set(object, tag)

    @function
    def get_objects_with_tags(self, tags: Sequence[int]) -> tuple[list[object], list[int]]:
        """The objects that have one of these tags, and their tags. IllegalArgument for 0.

        CPython: the map, looked through.
        """
        for tag in tags:
            check(tag)
            if not tag:
                raise IllegalArgument("0 is not a tag: it is what untagged objects have")
        wanted = set(tags)
        found = [(thing, tag) for thing, tag in self.tags.tagged() if tag in wanted]
        return [thing for thing, _ in found], [tag for _, tag in found]

    @function
    def force_garbage_collection(self) -> None:
        """Collects all generations, on this thread.

        CPython: gc.collect().
        """
        gc.collect()

    def _freed(self, tag: int) -> None:
        if self.wants(Event.OBJECT_FREE, threads.current()):
            self.deliver(Event.OBJECT_FREE, (tag,))


def check(tag: object) -> None:
    if not is_a(tag, int) or not -LONG <= tag < LONG:
        raise IllegalArgument(f"{shown(tag)} is not a tag: an integer of 64 bits")
