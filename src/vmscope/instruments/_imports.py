"""Calls a function once the program has imported a module, and costs it nothing where it never does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class Watch:
    """A finder that lets the others find what is waited for, and has the module's loader tell when it has run."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[ModuleType], None]] = {}

    def add(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._waiting[name] = action
        if self not in sys.meta_path:  # for good: removing it could make another thread's import skip a finder
            sys.meta_path.insert(0, self)
        if name in sys.modules:  # another thread had begun to import it before it could see this finder
            __import__(name)
            self._tell(sys.modules[name])

    def forget(self, name: str) -> None:
        """It is no longer waited for."""
        self._waiting.pop(name, None)

    def _tell(self, module: ModuleType) -> None:
        action = self._waiting.pop(module.__name__, None)
        if action is not None:
            action(module)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        action = self._waiting.pop(name, None)
        if action is None:
            return None
        try:
            spec = _find(self, name, path, target)
        finally:
            self._waiting[name] = action  # the search may have been a call of importlib.util.find_spec
        loader = None if spec is None else spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):  # a class that loads all frozen modules is not ours to change
            return spec

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._tell(module)

        loader.exec_module = exec_module  # type: ignore[method-assign, union-attr]  # of this one loader
        return spec


def _find(watch: Watch, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """What the other finders find."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if finder is watch or find is None else find(name, path, target)
        if spec is not None:
            return spec
    return None


_watch = Watch()
when_imported, forget = _watch.add, _watch.forget
