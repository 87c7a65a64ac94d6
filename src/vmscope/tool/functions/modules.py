"""The functions about modules, and about loaders and where they search."""

from __future__ import annotations

import os
import sys
from types import ModuleType

from vmscope.tool.functions.base import Base
from vmscope.tool.functions.entry_checks import function
from vmscope.tool.model import introspection
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import ClassLoaderUnsupported, IllegalArgument

OURS = "built-in", "frozen"  # where a module comes from that the interpreter brings with it
LOADS = frozenset(("exec_module", "load_module", "create_module"))

_added: list[str] = []  # what was added to the bootstrap search, in order


class Modules(Base):
    @function
    def get_all_modules(self) -> list[ModuleType]:
        """Every imported module, once.

        CPython: sys.modules, without what stands there and is not a module.
        """
        return loaded_modules()

    @function
    def get_named_module(self, class_loader: object, package_name: str) -> ModuleType | None:
        """The module of this name, `shop.models` or `shop/models`, if this loader made it; None for no such module.

        IllegalArgument for what is not a loader; None is the loader of builtin and frozen modules.

        CPython: sys.modules and the module's `__spec__`.
        Differs: most modules have a loader of their own.
        """
        check_loader(class_loader)
        found = sys.modules.get(package_name.replace("/", "."))
        return found if introspection.is_a(found, ModuleType) and loader_of(found) is class_loader else None

    @function
    def is_modifiable_module(self, module: ModuleType) -> bool:
        """Whether it can be changed.

        CPython: the attributes of any module can be set, so always.
        """
        return True

    @function
    def get_class_loader(self, klass: type) -> object:
        """What loaded its module; None for a class of a builtin or frozen module, or of none.

        CPython: the loader of the `__spec__` of its `__module__`.
        Differs: most modules have a loader of their own.
        """
        return class_loader_of(klass)

    @function
    def get_class_loader_classes(self, initiating_loader: object) -> list[type]:
        """The classes of the modules that this loader made; with None, of those that builtin and frozen modules have.

        IllegalArgument for what is not a loader.

        CPython: all classes, by their module.
        Differs: a loader that handed its work on is not asked.
        """
        check_loader(initiating_loader)
        return [klass for klass in introspection.loaded_classes() if class_loader_of(klass) is initiating_loader]

    @function
    def add_to_bootstrap_class_loader_search(self, segment: str) -> None:
        """Has modules searched here before any that are installed, but after the standard library's.

        IllegalArgument in LIVE for what is neither a folder nor a zip file.

        CPython: a place in sys.path behind the standard library's folders, and behind what was added before.
        Differs: the folder of the program's script, which stands first, still is.
        """
        self._check_segment(segment)
        path = search_path()
        before = [place for place, entry in enumerate(path) if entry in _added or is_standard(entry)]
        path.insert(before[-1] + 1 if before else 0, segment)
        _added.append(segment)
        sys.path_importer_cache.pop(segment, None)

    @function
    def add_to_system_class_loader_search(self, segment: str) -> None:
        """Has modules searched here too, after all other places.

        IllegalArgument in LIVE for what is neither a folder nor a zip file; ClassLoaderUnsupported when the program has
        made something else than a list of sys.path.

        CPython: the end of sys.path.
        """
        self._check_segment(segment)
        search_path().append(segment)
        sys.path_importer_cache.pop(segment, None)

    def _check_segment(self, segment: str) -> None:
        if self.phase() == Phase.LIVE and not os.path.isdir(segment) and not is_zip(segment):
            raise IllegalArgument(f"{segment} is neither a folder nor a zip file")


def loaded_modules() -> list[ModuleType]:
    found = {id(module): module for module in list(sys.modules.values()) if introspection.is_a(module, ModuleType)}
    return list(found.values())


def loader_of(module: ModuleType) -> object:
    """Its loader; None for builtin and frozen modules, and for those that say nothing of one."""
    spec = introspection.attribute(module, "__spec__")
    if spec is None:
        return introspection.attribute(module, "__loader__")
    return None if introspection.attribute(spec, "origin") in OURS else introspection.attribute(spec, "loader")


def class_loader_of(klass: type) -> object:
    module = introspection.module_of(klass)
    return None if module is None else loader_of(module)


def check_loader(loader: object) -> None:
    kind = loader if introspection.is_a(loader, type) else type(loader)
    if loader is not None and not any(LOADS & introspection.namespace(base).keys() for base in introspection.mro(kind)):
        raise IllegalArgument(f"{loader!r} is not a loader")


def search_path() -> list[str]:
    if not isinstance(sys.path, list):
        raise ClassLoaderUnsupported(f"sys.path is not a list but a {type(sys.path).__name__}")
    return sys.path


def is_standard(entry: object) -> bool:
    """Whether it is one of the standard library's places in sys.path."""
    library = os.path.dirname(os.__file__)
    version = "python{}{}.zip".format(*sys.version_info)
    return isinstance(entry, str) and (
        entry in (library, os.path.join(library, "lib-dynload")) or os.path.basename(entry) == version
    )


def is_zip(path: str) -> bool:
    from zipfile import is_zipfile

    return os.path.isfile(path) and is_zipfile(path)
