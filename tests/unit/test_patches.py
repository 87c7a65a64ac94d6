"""vmscope.patches: attributes that are replaced, and put back."""

from __future__ import annotations

from types import ModuleType

from vmscope.patches import Patches


class Base:
    def own(self) -> str:
        return "own"


class Derived(Base):
    pass


def replacement(*_: object) -> str:
    return "replacement"


def another(*_: object) -> str:
    return "another"


def test_attributes_of_modules_and_classes_are_put_back() -> None:
    module = ModuleType("module")
    original = module.__dict__["name"] = object()
    patches = Patches()
    assert not patches
    patches.replace(module, "name", replacement)
    patches.replace(Base, "own", replacement)
    assert patches
    assert Base().own() == module.name() == "replacement"
    patches.undo()
    assert not patches
    assert module.name is original
    assert Base().own() == "own"


def test_an_inherited_attribute_is_inherited_again() -> None:
    patches = Patches()
    patches.replace(Derived, "own", replacement)
    assert Derived().own() == "replacement"
    patches.undo()
    assert "own" not in vars(Derived)


def test_the_metaclass_is_passed_by() -> None:
    class Strict(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise AttributeError(name)

        def __delattr__(cls, name: str) -> None:
            raise AttributeError(name)

    class Guarded(Base, metaclass=Strict):
        pass

    patches = Patches()
    patches.replace(Guarded, "own", replacement)
    assert Guarded().own() == "replacement"
    patches.undo()
    assert Guarded().own() == "own"


def test_what_was_replaced_since_stays() -> None:
    module = ModuleType("module")
    vars(module).update(first="first", second="second")
    patches = Patches()
    patches.replace(module, "first", replacement)
    patches.replace(module, "second", replacement)
    vars(module)["first"] = another
    assert not patches.undo_all()
    assert (module.first, module.second) == (another, replacement), "all or none"
    assert patches
    patches.undo()
    assert (module.first, module.second) == (another, "second"), "each by itself"
    assert not patches


def test_all_are_undone_while_all_are_in_place() -> None:
    module = ModuleType("module")
    vars(module).update(first="first", second="second")
    patches = Patches()
    patches.replace(module, "first", replacement)
    patches.replace(module, "second", replacement)
    patches.replace(module, "second", another)
    assert not patches.undo_all(), "a replacement of ours that ours has replaced counts as gone"
    patches.undo()
    assert (module.first, module.second) == ("first", "second")
    patches.replace(module, "first", replacement)
    assert patches.undo_all()
    assert module.first == "first"
