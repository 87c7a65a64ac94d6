"""Who has which lock, and who waits for it. Each test is a process of its own: the locks are in place for good."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import programs
from tests.support import PATIENCE
from vmscope import native
from vmscope.tool.host import Host
from vmscope.tool.model import threads
from vmscope.tool.spec.capabilities import CapabilityRules
from vmscope.tool.spec.codes import Phase
from vmscope.tool.spec.errors import InvalidObject, InvalidThread, MustPossessCapability

ROOT = Path(__file__).parents[4]
BEGIN = programs.source("locks/begin")


def run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_owned_locks_and_the_frames_that_took_them() -> None:
    run("""
one, other, third = threading.Lock(), threading.RLock(), threading.Condition()
assert env.get_owned_monitor_info() == []
def inner():
    other.acquire()
    with other, third:
        depths = env.get_owned_monitor_stack_depth_info(None)
        assert [lock for lock, _ in depths] == [one, other, third._lock], depths
        assert [depth for _, depth in depths] == [1, 0, 0], depths
        assert env.get_owned_monitor_info(main) == [one, other, third._lock]
with one:
    inner()
    assert env.get_owned_monitor_stack_depth_info() == [(one, 0), (other, -1)]
    other.release()
assert env.get_owned_monitor_info() == []
with before:
    assert env.get_owned_monitor_info() == []
""")


def test_a_contended_lock_its_owner_and_who_waits() -> None:
    run("""
lock = threading.RLock()
seen = []
def tell(name):
    return lambda env, thread, thing, *rest: seen.append((name, thread, thing, *rest))
env.set_event_callbacks({event: tell(event.name) for event in (
    Event.MONITOR_CONTENDED_ENTER, Event.MONITOR_CONTENDED_ENTERED)})
for event in (Event.MONITOR_CONTENDED_ENTER, Event.MONITOR_CONTENDED_ENTERED):
    env.set_event_notification_mode(True, event)
lock.acquire()
lock.acquire()
python, other = start(lambda: lock.acquire() and lock.release())
wait_for(lambda: env.get_current_contended_monitor(other) is lock)
assert env.get_object_monitor_usage(lock) == (main, 2, [other], [])
assert seen == [("MONITOR_CONTENDED_ENTER", other, lock)]
assert env.get_frame_location(other, 0).method.co_name == "<lambda>", "vmscope's own frames are not the program's"
lock.release()
lock.release()
python.join()
assert seen[1:] == [("MONITOR_CONTENDED_ENTERED", other, lock)]
assert env.get_object_monitor_usage(lock) == (None, 0, [], [])
assert env.get_current_contended_monitor() is None
""")


def test_a_callback_that_takes_locks_itself_sets_off_no_other() -> None:
    run("""
lock, agents_own = threading.Lock(), threading.Lock()
seen = []
def contended(name):
    def tell(env, thread, thing):
        with agents_own:  # contended too
            time.sleep(0.01)  # others come to wait for it
            seen.append((name, thing, env.get_current_contended_monitor(thread)))
    return tell
env.set_event_callbacks({event: contended(event.name) for event in (
    Event.MONITOR_CONTENDED_ENTER, Event.MONITOR_CONTENDED_ENTERED)})
for event in (Event.MONITOR_CONTENDED_ENTER, Event.MONITOR_CONTENDED_ENTERED):
    env.set_event_notification_mode(True, event)
def take():
    with lock:
        pass
lock.acquire()
others = [elsewhere(take) for _ in range(4)]
wait_for(lambda: len(seen) == 4)
assert seen == [("MONITOR_CONTENDED_ENTER", lock, lock)] * 4
lock.release()
for other in others:
    other.join(20)
    assert not other.is_alive()
assert all(thing is lock for _, thing, _ in seen), "no event of the agent's own lock"
assert not lock.locked() and not agents_own.locked()
""")


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_an_interrupt_that_a_callback_lets_through_leaves_no_lock_taken(kind: str) -> None:
    run(f"""
lock = threading.{kind}()
def interrupted(env, thread, thing):
    raise KeyboardInterrupt
env.set_event_callbacks({{Event.MONITOR_CONTENDED_ENTERED: interrupted}})
env.set_event_notification_mode(True, Event.MONITOR_CONTENDED_ENTERED)
gone = []
def take():
    try:
        lock.acquire()
    except KeyboardInterrupt:
        gone.append(env.get_current_contended_monitor())
lock.acquire()
_, other = start(take)
wait_for(lambda: env.get_current_contended_monitor(other) is lock)
lock.release()
wait_for(lambda: gone)
assert gone == [None]
assert lock.acquire(timeout=5)
""")


STRESS = """
import signal


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


signal.signal(signal.SIGALRM, stop)
state, over = native.thread_state(), []


def other():
    while not over:
        with lock:
            time.sleep(0)
        time.sleep(0.0001)  # else the main thread never has it


callbacks = {
    event: lambda env, *what: len(what)
    for event in (
        Event.MONITOR_CONTENDED_ENTER,
        Event.MONITOR_CONTENDED_ENTERED,
        Event.MONITOR_WAIT,
        Event.MONITOR_WAITED,
    )
}
env.set_event_callbacks(callbacks)
for event in callbacks:
    env.set_event_notification_mode(True, event)
thread = elsewhere(other) if contended else None
stopped = kept = 0
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        while True:
            body()
    except Stop:
        stopped += 1
    except RuntimeError as error:  # the wait gave it back, and was stopped before it had it again, as CPython's may be
        assert str(error) == "cannot release un-acquired lock", error
    if lock.owner == state:
        kept += 1
        while lock.owner == state:
            lock.release()
signal.setitimer(signal.ITIMER_REAL, 0)
over.append(True)
if thread is not None:
    thread.join()
assert stopped > 20, stopped
assert kept == 0, f"{kept} of {stopped}"
assert lock.acquire(timeout=20)
"""
BODIES = {
    "Lock": "lock = threading.Lock()\ndef body():\n    with lock: pass\n",
    "RLock": "lock = threading.RLock()\ndef body():\n    with lock, lock: pass\n",
    "Condition": "lock = threading.RLock()\ncondition = threading.Condition(lock)\n"
    "def body():\n    with lock: condition.wait(0.00001)\n",
}


@pytest.mark.skipif(native.IMPLEMENTATION != "c", reason="the twin's locks are written in Python")
@pytest.mark.skipif(sys.version_info[:2] == (3, 14), reason="there any lock may stay taken: CPython's issue 148874")
@pytest.mark.parametrize("contended", [False, True], ids=["free", "contended"])
@pytest.mark.parametrize("kind", BODIES)
def test_what_a_signal_handler_raises_leaves_no_lock_taken(kind: str, contended: bool) -> None:
    run(f"contended = {contended}\n{BODIES[kind]}{STRESS}")


def test_who_waits_to_be_notified() -> None:
    run("""
condition = threading.Condition()
seen = []
env.set_event_callbacks({
    Event.MONITOR_WAIT: lambda env, *what: seen.append(("wait", *what)),
    Event.MONITOR_WAITED: lambda env, *what: seen.append(("waited", *what)),
})
env.set_event_notification_mode(True, Event.MONITOR_WAIT)
env.set_event_notification_mode(True, Event.MONITOR_WAITED)
def wait():
    with condition:
        condition.wait(20)
        condition.wait(0.001)
python, other = start(wait)
wait_for(lambda: env.get_object_monitor_usage(condition).notify_waiters)
assert env.get_object_monitor_usage(condition)[0:1] + env.get_object_monitor_usage(condition)[2:] == (None, [], [other])
assert env.get_current_contended_monitor(other) is condition
told = native.runtime_span()[1]  # or else a wait for a lock cannot be told from one for the GIL
wait_for(lambda: env.get_thread_state(other) & ThreadState.IN_OBJECT_WAIT or not told)
with condition:
    condition.notify()
python.join()
seen = [(name, last) for name, thread, thing, last in seen if (thread, thing) == (other, condition)]
assert seen == [("wait", 20000), ("waited", False), ("wait", 1), ("waited", True)], seen
""")


def test_they_behave_as_what_they_replace() -> None:
    run("""
import os, queue, concurrent.futures
for make, theirs in ((threading.Lock, before.__class__), (threading.RLock, before.__class__)):
    lock = make()
    for wrong in ((False, 1), (True, -2)):
        try:
            lock.acquire(*wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)
    assert lock.acquire(timeout=1) and lock.locked()
    elsewhere(lambda: lock.acquire(False)).join()
    lock.release()
    assert not lock.locked()
    try:
        lock.release()
    except RuntimeError:
        pass
    else:
        raise AssertionError
    assert isinstance(lock, make)
lock = threading.Lock()
lock.acquire()
assert not lock.acquire(timeout=0.01) and not lock.acquire(False) and not lock.acquire(timeout=0)
elsewhere(lock.release).join()
assert not lock.locked() and env.get_owned_monitor_info() == []
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(lambda number: number * number, range(100))) == 328350
numbers = queue.Queue(3)
producer = elsewhere(lambda: [numbers.put(number) for number in range(200)])
assert [numbers.get() for _ in range(200)] == [*range(200)]
producer.join()
total = 0
shared = threading.RLock()
def add():
    global total
    for _ in range(500):
        with shared, shared:
            was = total
            time.sleep(0)
            total = was + 1
adding = [elsewhere(add) for _ in range(3)]
for thread in adding:
    thread.join()
assert total == 1500
barrier = threading.Barrier(3)
both = [elsewhere(barrier.wait) for _ in range(2)]
barrier.wait()
for thread in both:
    thread.join()
""")


@pytest.mark.parametrize("count", [1, 3])
def test_the_usage_of_locks_that_were_there_before(count: int) -> None:
    vm = Host(CapabilityRules((1 << 45) - 1, 0, 0, 0))
    vm.enter(Phase.LIVE)
    env = vm.get_env()
    with pytest.raises(MustPossessCapability):
        env.get_object_monitor_usage(None)
    env.add_capabilities({7})  # type: ignore[arg-type]
    reentrant, plain = _thread.RLock(), _thread.allocate_lock()
    condition = threading.Condition(_thread.RLock())
    for _ in range(count):
        reentrant.acquire()
    with plain, condition:
        assert env.get_object_monitor_usage(reentrant) == (threads.current(), count, [], [])
        assert env.get_object_monitor_usage(plain) == (None, 1, [], [])
        assert env.get_object_monitor_usage(condition) == (threads.current(), 1, [], [])
    for _ in range(count):
        reentrant.release()
    for free in (reentrant, plain, condition, object(), "text"):
        assert env.get_object_monitor_usage(free) == (None, 0, [], [])
    with pytest.raises(InvalidObject):
        env.get_object_monitor_usage(None)
    with pytest.raises(MustPossessCapability):
        env.get_owned_monitor_info(5)  # type: ignore[arg-type]
    env.add_capabilities({5, 6, 34})  # type: ignore[arg-type]
    for function in (
        env.get_owned_monitor_info,
        env.get_owned_monitor_stack_depth_info,
        env.get_current_contended_monitor,
    ):
        with pytest.raises(InvalidThread):
            function(5)  # type: ignore[arg-type]
