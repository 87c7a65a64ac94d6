"""ClassFileLoadHook, ClassLoad and ClassPrepare: what is loaded, seen where importlib and `class` make it.

A module's class file is its marshalled code, between the loader that read or compiled it and its execution; what a hook
gives back is executed instead. A class is loaded and prepared when its `class` statement has made it: one that `type()`
made is not seen. Nothing of this puts a frame between the program's own.
"""

from __future__ import annotations

import builtins
import sys
from types import CodeType

from vmscope import log
from vmscope.native import After
from vmscope.patches import Patches
from vmscope.tool.model import class_files, threads
from vmscope.tool.spec.errors import ToolError
from vmscope.tool.spec.events import Event, bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vmscope.tool.host import Host

HOOK = bit(Event.CLASS_FILE_LOAD_HOOK)
CLASSES = bit(Event.CLASS_LOAD) | bit(Event.CLASS_PREPARE)
# the loaders' classes that make or read code: module, class
LOADERS = (
    ("_frozen_importlib_external", "SourceLoader"),
    ("_frozen_importlib_external", "SourcelessFileLoader"),
    ("zipimport", "zipimporter"),
)


class ClassLoading:
    """The mechanism: in place while one of the three events is wanted."""

    def __init__(self) -> None:
        self._host: Host | None = None
        self._loaders, self._classes = Patches(), Patches()

    def update(self, host: Host) -> None:
        wanted = host.wanted()
        self._host = host
        if not wanted & HOOK:
            self._loaders.undo()
        elif not self._loaders:
            for module, name in LOADERS:
                loader = getattr(sys.modules.get(module), name, None)
                if loader is not None:
                    self._loaders.replace(loader, "get_code", After(vars(loader)["get_code"], self.loaded))
        if not wanted & CLASSES:
            self._classes.undo()
        elif not self._classes:
            self._classes.replace(builtins, "__build_class__", After(builtins.__build_class__, self.built))

    def built(self, klass: object, *_: object) -> None:
        """A `class` statement has made this."""
        if self._host is not None and isinstance(klass, type):
            thread = threads.current()
            self._host.post(Event.CLASS_LOAD, thread, klass)
            self._host.post(Event.CLASS_PREPARE, thread, klass)

    def loaded(self, code: object, loader: object, name: str = "", *_: object) -> CodeType | None:
        """A loader has a module's code; the other code that is to be executed, or None."""
        if self._host is None or not isinstance(code, CodeType) or not self._host.wanted() & HOOK:
            return None
        data = class_files.written(code)
        made = class_files.through_hooks(self._host, None, loader, name, data, again=False)
        if made == data:
            return None
        try:
            return class_files.read(made)
        except ToolError as error:
            log.say("error", "what the hooks made of %s is not loaded: %s", name, error, name=log.TOOL)
            return None
