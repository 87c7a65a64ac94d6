"""Finding functions by name, those that are there and those that come: as code objects, before they run.

A name is `module.qualname`, as in `shop.cart.Cart.total` or `shop.cart.total.<locals>.step`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import CodeType, FunctionType

from vmscope import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CO_OPTIMIZED = 1  # bodies of modules and classes are not


def present(patterns: Sequence[str]) -> dict[CodeType, str]:
    """The functions that this process has now, by their code, with their names."""
    found: dict[CodeType, str] = {}
    for each in native.tracked_objects(FunctionType):
        if isinstance(each, FunctionType):
            found.update(within(each.__code__, str(each.__globals__.get("__name__", "?")), patterns))
    return found


def within(code: CodeType, module: str, patterns: Sequence[str]) -> Iterator[tuple[CodeType, str]]:
    """The functions that match of those that this code is or will make."""
    name = f"{module}.{code.co_qualname}"
    if code.co_flags & CO_OPTIMIZED and any(fnmatchcase(name, pattern) for pattern in patterns):
        yield code, name
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from within(each, module, patterns)
