"""The Python twin of labels.c: a slot's children, found again by their labels."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_MAX_CHILDREN = 2000  # sets of labels of one slot that are remembered; labels.c has the same


class Labelled:
    """What has children: `_child(labels, full)` of a subclass makes one, or finds it by its name."""

    __slots__ = ("_children",)
    _children: dict[tuple[tuple[str, str], ...], Self] | None

    def labels(self, /, *unnamed: object, **labels: object) -> Self:
        """The counter of the same kind with these labels, always the same object."""
        if unnamed or not labels:
            raise TypeError("labels() takes one label at least, and each as name=value")
        texts = {name: value if type(value) is str else str.__str__(str(value)) for name, value in labels.items()}
        key = tuple(texts.items())
        children = self._children
        if children is None:
            children = self._children = {}
        child = children.get(key)
        if child is None:
            full = len(children) >= _MAX_CHILDREN
            child = self._child(texts, full)
            if not full:
                children[key] = child
        return child

    def _child(self, labels: dict[str, str], full: bool, /) -> Self:
        raise AttributeError("_child")
