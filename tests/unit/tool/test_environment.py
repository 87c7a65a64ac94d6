"""Phases, environments, and how each function of the interface is entered."""

from __future__ import annotations

import _thread
import gc
import inspect
import logging
import sys
import threading
import time
from collections.abc import Callable

import pytest

from vmscope.tool.environment import Environment
from vmscope.tool.functions.entry_checks import function, parameters_of
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.available_capabilities import capability_sets
from vmscope.tool.spec.capabilities import Capability, CapabilityRules, CapabilitySet, mask
from vmscope.tool.spec.codes import Phase, Version
from vmscope.tool.spec.errors import (
    IllegalArgument,
    InvalidEnvironment,
    InvalidEventType,
    InvalidThread,
    MustPossessCapability,
    NotAttached,
    NotAvailable,
    NullPointer,
    ThreadNotAlive,
    ToolError,
    VersionNotOffered,
)
from vmscope.tool.spec.events import Event, bit
from vmscope.tool.spec.functions import BY_METHOD, SLOTS

PATHS = {
    Phase.PRIMORDIAL: [],
    Phase.ONLOAD: [Phase.ONLOAD],
    Phase.START: [Phase.ONLOAD, Phase.PRIMORDIAL, Phase.START],
    Phase.LIVE: [Phase.ONLOAD, Phase.PRIMORDIAL, Phase.START, Phase.LIVE],
    Phase.DEAD: [Phase.ONLOAD, Phase.PRIMORDIAL, Phase.START, Phase.LIVE, Phase.DEAD],
}


def host(always: int = (1 << 45) - 1) -> Host:
    """A VM in PRIMORDIAL in which everybody can have these capabilities at any time."""
    return Host(CapabilityRules(always, 0, 0, 0))


@pytest.fixture
def vm() -> Host:
    vm = host()
    vm.enter(Phase.ONLOAD)
    return vm


@pytest.fixture
def env(vm: Host) -> Environment:
    """An environment, with nothing held, in LIVE."""
    env = vm.get_env(Version.V1_2, "tester")
    advance_live(vm)
    return env


def advance_live(vm: Host) -> None:
    for phase in (Phase.PRIMORDIAL, Phase.START, Phase.LIVE):
        vm.enter(phase)


# -- phases ---------------------------------------------------------------------------------------


def test_a_vm_goes_through_its_phases_in_order() -> None:
    vm = host()
    assert vm.phase == Phase.PRIMORDIAL
    for phase in PATHS[Phase.DEAD]:
        vm.enter(phase)
        assert vm.phase == phase
    for phase in Phase:
        with pytest.raises(ValueError, match="from DEAD"):
            vm.enter(phase)


def test_a_vm_that_starts_late_is_live_at_once() -> None:
    vm = host()
    vm.enter(Phase.LIVE)
    assert vm.phase == Phase.LIVE
    assert vm.get_env().get_phase() == Phase.LIVE
    with pytest.raises(ValueError, match="from LIVE to START"):
        vm.enter(Phase.START)


def test_the_changes_are_events(vm: Host) -> None:
    seen: list[tuple[str, Phase]] = []
    env = vm.get_env()
    env.set_event_callbacks(
        {
            Event.VM_START: lambda env: seen.append(("start", env.get_phase())),
            Event.VM_INIT: lambda env, thread: seen.append((f"init {thread is threads.current()}", env.get_phase())),
            Event.VM_DEATH: lambda env: seen.append(("death", env.get_phase())),
        }
    )
    for event in (Event.VM_START, Event.VM_INIT, Event.VM_DEATH):
        env.set_event_notification_mode(True, event)
    advance_live(vm)
    vm.enter(Phase.DEAD)
    assert seen == [("start", Phase.START), ("init True", Phase.LIVE), ("death", Phase.LIVE)]


def test_a_failed_start_sends_no_death(vm: Host) -> None:
    env = vm.get_env()
    seen: list[str] = []
    env.set_event_callbacks({Event.VM_DEATH: lambda env: seen.append("death")})
    env.set_event_notification_mode(True, Event.VM_DEATH)
    vm.enter(Phase.DEAD)
    assert seen == []


def test_early_start_is_for_those_who_asked(vm: Host) -> None:
    seen: list[str] = []
    early, late = vm.get_env(agent="early"), vm.get_env(agent="late")
    early.add_capabilities({Capability.CAN_GENERATE_EARLY_VMSTART})
    for env in (early, late):
        env.set_event_callbacks({Event.VM_START: lambda env: seen.append(env.agent)})
        env.set_event_notification_mode(True, Event.VM_START)
    vm.enter(Phase.PRIMORDIAL)
    assert early.get_phase() == Phase.PRIMORDIAL
    vm.start_early()
    assert (early.get_phase(), late.get_phase()) == (Phase.START, Phase.PRIMORDIAL)
    assert seen == ["early"]
    vm.enter(Phase.START)
    assert seen == ["early", "late"]


# -- environments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version", [0x30010000, 0x30010100, 0x30010200, 0x30090000, 0x300B0000, 0x300D0000, 0x30190000]
)
def test_versions_that_are_offered(vm: Host, version: int) -> None:
    assert vm.get_env(version).get_version_number() == Version.CURRENT


@pytest.mark.parametrize(
    "version", [0, 0x10006, 0x30000000, 0x30010300, 0x30080000, 0x300A0100, 0x300C0000, 0x301A0000]
)
def test_versions_that_are_not(vm: Host, version: int) -> None:
    with pytest.raises(VersionNotOffered) as raised:
        vm.get_env(version)
    assert raised.value.code == -3


@pytest.mark.parametrize("phase", [Phase.PRIMORDIAL, Phase.START, Phase.DEAD])
def test_environments_are_made_in_onload_and_live_only(phase: Phase) -> None:
    vm = host()
    for step in PATHS[phase]:
        vm.enter(step)
    with pytest.raises(NotAttached) as raised:
        vm.get_env()
    assert raised.value.code == -2


def test_storage_is_each_environment_s_own(vm: Host) -> None:
    first, second = vm.get_env(), vm.get_env()
    assert first.get_environment_local_storage() is None
    data = object()
    first.set_environment_local_storage(data)
    assert first.get_environment_local_storage() is data
    assert second.get_environment_local_storage() is None


def test_error_names(env: Environment) -> None:
    assert env.get_error_name(0) == "JVMTI_ERROR_NONE"
    assert env.get_error_name(InvalidEnvironment.code) == "JVMTI_ERROR_INVALID_ENVIRONMENT"
    for gap in (1, 9, 16, 99999, -1):
        with pytest.raises(IllegalArgument):
            env.get_error_name(gap)


def test_after_its_disposal_every_call_is_invalid(vm: Host, env: Environment) -> None:
    env.add_capabilities(Capability)
    env.set_event_callbacks({Event.METHOD_ENTRY: print})
    env.set_event_notification_mode(True, Event.METHOD_ENTRY)
    env.dispose_environment()
    assert vm.environments == []
    assert env.wanted() == 0
    for each in IMPLEMENTED:
        assert call(env, each.method, [None] * len(parameters_of(each))) == (116 if each.phases >> 4 & 1 else 112)
    with pytest.raises(InvalidEnvironment):
        env.dispose_environment()


def test_a_solo_capability_is_free_again_after_disposal(vm: Host, caplog: pytest.LogCaptureFixture) -> None:
    vm.rules = CapabilityRules(0, 0, mask(20), 0)
    first, second = vm.get_env(agent="first"), vm.get_env(agent="second")
    first.add_capabilities({Capability.CAN_SUSPEND})
    assert second.get_potential_capabilities() == set()
    with pytest.raises(NotAvailable, match="CAN_SUSPEND; held by first") as raised:
        second.add_capabilities({Capability.CAN_SUSPEND})
    assert "relinquish" in raised.value.hint
    assert "agent second: not available in this VM now: CAN_SUSPEND; held by first" in caplog.text
    with pytest.raises(NotAvailable, match=r"CAN_TAG_OBJECTS$"):
        second.add_capabilities({Capability.CAN_TAG_OBJECTS})
    first.dispose_environment()
    second.add_capabilities(iter([Capability.CAN_SUSPEND]))
    assert second.get_capabilities() == {Capability.CAN_SUSPEND}
    second.relinquish_capabilities({Capability.CAN_SUSPEND, Capability.CAN_TAG_OBJECTS})
    assert second.get_capabilities() == set()


def test_threads_that_fight_over_a_solo_capability(vm: Host) -> None:
    vm.rules = CapabilityRules(0, 0, mask(20), 0)
    environments = [vm.get_env() for _ in range(4)]
    holders: list[Environment] = []
    most = had = 0
    logging.getLogger("vmscope.tool").disabled = True

    def fight(env: Environment) -> None:
        nonlocal most, had
        for _ in range(300):
            try:
                env.add_capabilities({Capability.CAN_SUSPEND})
            except NotAvailable:
                continue
            holders.append(env)
            most = max(most, len(holders))
            had += 1
            time.sleep(0)
            holders.remove(env)
            env.relinquish_capabilities({Capability.CAN_SUSPEND})

    fighters = [threading.Thread(target=fight, args=(env,)) for env in environments]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for fighter in fighters:
            fighter.start()
        for fighter in fighters:
            fighter.join()
    finally:
        sys.setswitchinterval(interval)
        logging.getLogger("vmscope.tool").disabled = False
    assert most == 1
    assert had
    assert vm.rules.potential(0, 0, Phase.LIVE) == mask(20)


# -- how functions are entered --------------------------------------------------------------------


def call(env: Environment, name: str, arguments: list[object]) -> int:
    try:
        getattr(env, name)(*arguments)
    except ToolError as error:
        return error.code
    return 0


IMPLEMENTED = [each for each in BY_METHOD.values() if hasattr(Environment, each.method)]


@pytest.mark.parametrize("phase", Phase, ids=lambda phase: phase.name)
def test_a_wrong_phase_comes_before_all_else(phase: Phase) -> None:
    for each in IMPLEMENTED:
        vm = host(0)
        vm.enter(Phase.ONLOAD)
        env = vm.get_env()
        for step in PATHS[phase][1:]:
            vm.enter(step)
        if phase == Phase.PRIMORDIAL:
            vm.enter(phase)
        env.disposed = True
        wrong = not each.phases >> phase & 1
        assert call(env, each.method, [None] * len(parameters_of(each))) == (112 if wrong else 116), each.method


def test_a_missing_capability_comes_before_the_arguments() -> None:
    tried = 0
    for each in IMPLEMENTED:
        vm = host(0)
        vm.enter(Phase.LIVE)
        env = vm.get_env()
        if each.capability is not None and each.phases >> Phase.LIVE & 1:
            assert call(env, each.method, [object()] * len(parameters_of(each))) == 99, each.method
            tried += 1
    assert tried >= 9


def test_every_method_has_the_parameters_of_its_row() -> None:
    """The decorator sees to that when the class is made; this looks at what a user sees."""
    public = {name for name, value in inspect.getmembers(Environment, inspect.isfunction) if not name.startswith("_")}
    ours = {
        "phase",
        "ready",
        "wanted",
        "wants",
        "deliver",
        "failed",
        "set_callbacks",
    }  # not the interface's: what dispatching needs
    assert public - ours <= set(BY_METHOD)
    assert len(BY_METHOD) == SLOTS - 5
    signature = inspect.signature(Environment.set_event_notification_mode)
    assert list(signature.parameters) == ["self", "mode", "event_type", "event_thread"]


def test_a_method_that_the_table_does_not_have_cannot_be_written() -> None:
    def get_tag(self: Environment, thing: object) -> int:
        return 0

    with pytest.raises(TypeError, match="get_tag has the parameters"):
        function(get_tag)

    def get_tags(self: Environment) -> int:
        return 0

    with pytest.raises(KeyError):
        function(get_tags)


def test_arguments_are_checked_by_position_and_by_name(env: Environment) -> None:
    with pytest.raises(IllegalArgument):
        env.set_event_notification_mode(7, Event.VM_INIT)
    with pytest.raises(InvalidEventType):
        env.set_event_notification_mode(event_type=72, mode=True)  # type: ignore[arg-type]
    with pytest.raises(NullPointer):
        env.add_capabilities(None)  # type: ignore[arg-type]
    with pytest.raises(NullPointer):
        env.relinquish_capabilities(capabilities=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        env.get_error_name()  # type: ignore[call-arg]


def test_the_impossible_is_checked_and_then_not_available(env: Environment) -> None:
    with pytest.raises(MustPossessCapability):
        env.pop_frame(None)
    with pytest.raises(NotAvailable, match="reads, exports and opens everything"):
        env.add_module_reads(sys, sys)
    assert [each for each in capability_sets() if CapabilitySet([8, 33, 36]) & each] == []


# -- events ---------------------------------------------------------------------------------------


class Recorder:
    """A mechanism that notes which events it is to make."""

    def __init__(self) -> None:
        self.wanted = 0

    def update(self, host: Host) -> None:
        self.wanted = host.wanted()


def test_the_order_of_errors_when_events_are_enabled(env: Environment) -> None:
    ended = threads.Thread(0)
    ended.end()
    not_a_thread: threads.Thread = object()  # type: ignore[assignment]
    for thread in (ended, not_a_thread, threads.current()):
        with pytest.raises(InvalidEventType):
            env.set_event_notification_mode(True, 49, thread)  # type: ignore[arg-type]
        with pytest.raises(MustPossessCapability):
            env.set_event_notification_mode(True, Event.GARBAGE_COLLECTION_START, thread)
    env.add_capabilities({Capability.CAN_GENERATE_GARBAGE_COLLECTION_EVENTS})
    for thread, error in ((ended, ThreadNotAlive), (not_a_thread, InvalidThread), (threads.current(), IllegalArgument)):
        for mode in (True, False):
            with pytest.raises(error):
                env.set_event_notification_mode(mode, Event.GARBAGE_COLLECTION_START, thread)
    env.set_event_notification_mode(False, Event.METHOD_ENTRY, threads.current())  # disabling needs no capability


def test_the_first_class_hook_decides_about_retransforming(vm: Host) -> None:
    can, cannot, undecided = vm.get_env(), vm.get_env(), vm.get_env()
    can.add_capabilities({Capability.CAN_RETRANSFORM_CLASSES})
    for env in (can, cannot):
        env.set_event_notification_mode(True, Event.CLASS_FILE_LOAD_HOOK)
        env.set_event_notification_mode(False, Event.CLASS_FILE_LOAD_HOOK)
    undecided.set_event_notification_mode(False, Event.CLASS_FILE_LOAD_HOOK)
    with pytest.raises(NotAvailable):
        cannot.add_capabilities({Capability.CAN_RETRANSFORM_CLASSES})
    assert Capability.CAN_RETRANSFORM_CLASSES not in cannot.get_potential_capabilities()
    undecided.add_capabilities({Capability.CAN_RETRANSFORM_CLASSES})
    can.relinquish_capabilities({Capability.CAN_RETRANSFORM_CLASSES})
    can.add_capabilities({Capability.CAN_RETRANSFORM_CLASSES})


def test_an_event_needs_callback_mode_and_phase(vm: Host) -> None:
    recorder = Recorder()
    vm.add_event_source(recorder)
    env = vm.get_env()
    env.add_capabilities({Capability.CAN_GENERATE_METHOD_ENTRY_EVENTS})
    env.set_event_notification_mode(True, Event.METHOD_ENTRY)
    assert recorder.wanted == 0, "no callback"
    env.set_event_callbacks({Event.METHOD_ENTRY: lambda *_: None})
    assert recorder.wanted == 0, "not in ONLOAD"
    advance_live(vm)
    assert recorder.wanted == bit(Event.METHOD_ENTRY)
    env.set_event_notification_mode(False, Event.METHOD_ENTRY)
    assert recorder.wanted == 0
    env.set_event_notification_mode(True, Event.METHOD_ENTRY, threads.current())
    assert recorder.wanted == bit(Event.METHOD_ENTRY)
    env.set_event_callbacks(None)
    assert recorder.wanted == 0, "all callbacks cleared"


def test_events_go_to_environments_in_creation_order_and_by_thread(vm: Host) -> None:
    seen: list[str] = []
    envs = [vm.get_env(agent=name) for name in "abc"]
    advance_live(vm)
    for env in envs:
        env.add_capabilities({Capability.CAN_GENERATE_MONITOR_EVENTS})
        env.set_event_callbacks({Event.MONITOR_WAIT: lambda env, *_: seen.append(env.agent)})
    for env in reversed(envs):
        env.set_event_notification_mode(True, Event.MONITOR_WAIT)
    vm.post(Event.MONITOR_WAIT, threads.current(), None, 0)
    assert seen == ["a", "b", "c"]
    seen.clear()
    envs[1].set_event_notification_mode(False, Event.MONITOR_WAIT)
    envs[1].set_event_notification_mode(True, Event.MONITOR_WAIT, threads.Thread(1))
    vm.post(Event.MONITOR_WAIT, threads.current(), None, 0)
    assert seen == ["a", "c"], "b asked for another thread"


def test_a_callback_may_dispose_of_the_next_environment(vm: Host) -> None:
    seen: list[str] = []
    first, second = vm.get_env(agent="first"), vm.get_env(agent="second")
    advance_live(vm)

    def on_dump(env: Environment) -> None:
        seen.append(env.agent)
        second.dispose_environment()

    for env in (first, second):
        env.set_event_callbacks({Event.DATA_DUMP_REQUEST: on_dump})
        env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
    vm.post(Event.DATA_DUMP_REQUEST)
    assert seen == ["first"]


@pytest.mark.parametrize(
    "raised", [ValueError("no"), SystemExit(3), GeneratorExit()], ids=lambda error: type(error).__name__
)
def test_a_callback_that_raises_ten_times_in_a_row_is_disabled(
    env: Environment, vm: Host, caplog: pytest.LogCaptureFixture, raised: BaseException
) -> None:
    calls = 0
    good = {9}

    def callback(env: Environment) -> None:
        nonlocal calls
        calls += 1
        if calls not in good:
            raise raised

    env.set_event_callbacks({Event.DATA_DUMP_REQUEST: callback})
    env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
    with caplog.at_level(logging.ERROR, "vmscope.tool"):
        for _ in range(30):
            vm.post(Event.DATA_DUMP_REQUEST)
    assert calls == 19, "one that went well begins the count anew"
    assert len(caplog.records) == 11, "ten of a kind, and the one that disables"
    assert "agent tester" in caplog.text
    assert "10 times in a row" in caplog.records[-1].getMessage()


def test_the_user_s_interrupt_reaches_the_program(env: Environment, vm: Host) -> None:
    def callback(env: Environment) -> None:
        raise KeyboardInterrupt

    env.set_event_callbacks({Event.DATA_DUMP_REQUEST: callback})
    env.set_event_notification_mode(True, Event.DATA_DUMP_REQUEST)
    with pytest.raises(KeyboardInterrupt):
        vm.post(Event.DATA_DUMP_REQUEST)


@pytest.mark.parametrize(
    ("callbacks", "error"),
    [({72: print}, InvalidEventType), ({Event.VM_INIT: 3}, IllegalArgument)],
    ids=["no event", "not callable"],
)
def test_callbacks_are_checked_before_any_is_set(
    env: Environment, callbacks: dict[Event, Callable[..., object]], error: type[ToolError]
) -> None:
    env.set_event_callbacks({Event.VM_DEATH: print})
    with pytest.raises(error):
        env.set_event_callbacks(callbacks)
    assert env.callbacks == {Event.VM_DEATH: print}
    env.set_event_callbacks({Event.VM_INIT: None})
    assert env.callbacks == {}


# -- threads --------------------------------------------------------------------------------------


def test_a_thread_is_one_object_that_outlives_its_thread() -> None:
    seen: list[threads.Thread] = []
    done = _thread.allocate_lock()
    for _ in range(3):
        done.acquire()

        def run() -> None:
            seen.append(threads.current())
            assert threads.current() is seen[-1]
            done.release()

        _thread.start_new_thread(run, ())
        assert done.acquire(timeout=30)
        done.release()
    for _ in range(3000):
        if not any(thread.alive for thread in seen):
            break
        gc.collect()
    assert [thread.alive for thread in seen] == [False] * 3
    assert len({thread.id for thread in seen}) == 3
    assert threads.current().alive
