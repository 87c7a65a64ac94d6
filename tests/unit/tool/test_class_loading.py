"""ClassFileLoadHook, ClassLoad and ClassPrepare, of what a running program loads."""

from __future__ import annotations

import builtins
import importlib
import marshal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import live_vm
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.host import Host
from vmscope.tool.spec.capabilities import Capability
from vmscope.tool.spec.events import Event

HOOK, LOAD, PREPARE = Event.CLASS_FILE_LOAD_HOOK, Event.CLASS_LOAD, Event.CLASS_PREPARE


@pytest.fixture
def vm() -> Iterator[Host]:
    importlib.import_module("zipimport")
    external: Any = sys.modules["_frozen_importlib_external"]
    before = builtins.__build_class__, external.SourceLoader.get_code, external.SourcelessFileLoader.get_code
    with live_vm() as vm:
        yield vm
    after = builtins.__build_class__, external.SourceLoader.get_code, external.SourcelessFileLoader.get_code
    assert after == before


class Modules:
    """Modules that are written, imported, and gone again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[str] = []

    def load(self, name: str, source: str) -> Any:
        (self.folder / f"{name}.py").write_text(source)
        self.made.append(name)
        importlib.invalidate_caches()
        return importlib.import_module(name)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = Modules(tmp_path)
    yield modules
    for name in modules.made:
        sys.modules.pop(name, None)


def hooking(vm: Host, hook: Any, *capabilities: Capability) -> Environment:
    env = vm.get_env()
    env.add_capabilities(capabilities)
    env.set_event_callbacks({HOOK: hook})
    env.set_event_notification_mode(True, HOOK)
    return env


def test_a_module_that_is_loaded(vm: Host, modules: Modules) -> None:
    seen: list[Any] = []
    hooking(vm, lambda env, *arguments: seen.append(arguments))
    module = modules.load("hooked_one", "value = 1")
    assert module.value == 1
    ((klass, loader, _, domain, data),) = [each for each in seen if each[2] == "hooked_one"]
    assert (klass, domain) == (None, None)
    assert loader is module.__loader__
    assert marshal.loads(data).co_filename == module.__file__


def test_what_a_hook_gives_back_is_loaded(vm: Host, modules: Modules) -> None:
    def other(source: str) -> Any:
        def hook(env: Environment, *arguments: Any) -> bytes | None:
            _, _, name, _, data = arguments
            if name != "hooked_two":
                return None
            order.append(marshal.loads(data).co_consts[0])
            return marshal.dumps(compile(source, "made", "exec"))

        return hook

    order: list[object] = []
    hooking(vm, other("value = 3"), Capability.CAN_RETRANSFORM_CLASSES)
    hooking(vm, other("value = 2"))  # cannot retransform: it is asked first
    assert modules.load("hooked_two", "value = 1").value == 3
    assert order == [1, 2]


def test_what_is_no_class_file_is_not_loaded(vm: Host, modules: Modules, caplog: pytest.LogCaptureFixture) -> None:
    hooking(vm, lambda env, klass, loader, name, *_: b"nonsense" if name == "hooked_three" else None)
    assert modules.load("hooked_three", "value = 1").value == 1
    assert "hooked_three" in caplog.text


def test_a_hook_that_raises(vm: Host, modules: Modules, caplog: pytest.LogCaptureFixture) -> None:
    def hook(*_: object) -> None:
        raise ImportError

    hooking(vm, hook)
    assert modules.load("hooked_four", "value = 1").value == 1
    assert "CLASS_FILE_LOAD_HOOK" in caplog.text


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="frames of the twin stand between the program's own")
def test_a_module_with_an_error_is_shown_as_ever(vm: Host, modules: Modules) -> None:
    hooking(vm, lambda *_: None)
    with pytest.raises(SyntaxError) as raised:
        modules.load("hooked_five", "value =")
    names = []
    trace = raised.value.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert not [name for name in names if "/vmscope/" in name]


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="frames of the twin stand between the program's own")
def test_classes(vm: Host) -> None:
    log: list[Any] = []
    env = vm.get_env()
    env.set_event_callbacks(
        {
            LOAD: lambda env, thread, klass: log.append(("load", klass)),
            PREPARE: lambda env, thread, klass: log.append(("prepare", klass)),
        }
    )
    env.set_event_notification_mode(True, LOAD)
    env.set_event_notification_mode(True, PREPARE)

    class Meta(type):
        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **named: Any) -> Any:
            frames.append(sys._getframe(1).f_code.co_name)
            return super().__new__(cls, name, bases, space)

    frames: list[str] = []

    class Made(metaclass=Meta, tag=1):
        pass

    assert log == [("load", Meta), ("prepare", Meta), ("load", Made), ("prepare", Made)]
    assert frames == ["test_classes"]
    env.set_event_notification_mode(False, LOAD)
    env.set_event_notification_mode(False, PREPARE)

    class Unseen:
        pass

    assert len(log) == 4
