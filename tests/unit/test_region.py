"""The region: capacity, allocation, overflow, and allocation in the middle of an allocation. On both forms."""

from __future__ import annotations

import contextlib
import gc
import mmap
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tests.implementations import both
from vmscope.counters.registry import Registry
from vmscope.errors import CounterNameError
from vmscope.memory import region as region_module
from vmscope.memory.region import Region
from vmscope.native import IMPLEMENTATION
from vmscope.wire import encode
from vmscope.wire.decode import decode

PAGE = mmap.ALLOCATIONGRANULARITY  # 64 KiB on Windows


@pytest.fixture(params=both())
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(region_module, "native", request.param)
    return request.param


def allocate(region: Region, name: str, value: int | bytes = 0, slot: Any = None) -> bool:
    return region.allocate([(name, value, 5 if isinstance(value, bytes) else 1, 3, slot, 0)])


def values(region: Region) -> dict[str, int | str]:
    """What a reader finds in the region, which agrees with its own prologue."""
    region.mirror.refresh()
    decoded = decode(region.mirror.image)
    assert len(decoded.entries) == decoded.prologue.num_entries == region.mirror.num_entries
    end = max((entry.offset for entry in decoded.entries), default=0)
    assert end < decoded.prologue.used == region.mirror.used or not decoded.entries
    assert len({entry.name for entry in decoded.entries}) == len(decoded.entries)
    return decoded.values(region.mirror.image)


@pytest.mark.parametrize(
    ("asked", "given"),
    [(1, PAGE), (1024, PAGE), (PAGE, PAGE), (PAGE + 1, 2 * PAGE), (65536, 65536), (1 << 24, 1 << 24)],
)
def test_the_capacity_is_whole_pages(native: Any, asked: int, given: int) -> None:
    region = Region(asked)
    assert region.capacity == given == len(region.mirror.image)
    assert bytes(region.mirror.image) == encode.prologue().ljust(given, b"\0")


def test_a_new_region_is_empty_and_closed(native: Any) -> None:
    region = Region(PAGE)
    prologue = decode(region.mirror.image).prologue
    assert (prologue.major, prologue.minor, prologue.byte_order) == (2, 0, int(sys.byteorder == "little"))
    assert not prologue.accessible
    assert (prologue.used, prologue.overflow, prologue.mod_time_stamp, prologue.num_entries) == (0, 0, 0, 0)
    assert prologue.entry_offset == 32
    region.set_accessible()
    assert decode(region.mirror.image).prologue.accessible


def test_entries_show_their_slots(native: Any) -> None:
    region = Region(PAGE)
    counter, text = native.CounterSlot(), native.TextSlot(5)
    assert allocate(region, "a.counter", 0, counter)
    assert allocate(region, "a.constant", 7)
    assert allocate(region, "a.text", b"", text)
    assert allocate(region, "a.string", b"fixed")
    counter.add(3)
    text.set("abcdef")
    assert values(region) == {"a.counter": 3, "a.constant": 7, "a.text": "abcde", "a.string": "fixed"}
    entries = {entry.name: entry for entry in decode(region.mirror.image).entries}
    assert entries["a.text"].vector_length == 6
    assert entries["a.string"].vector_length == 6
    assert entries["a.counter"].vector_length == 0


def test_the_time_of_the_last_entry(native: Any) -> None:
    region = Region(PAGE)
    allocate(region, "a")
    region.mirror.refresh()
    first = decode(region.mirror.image).prologue.mod_time_stamp
    allocate(region, "b" * 5000)
    region.mirror.refresh()
    assert decode(region.mirror.image).prologue.mod_time_stamp == first > 0, "what does not fit changes nothing"
    allocate(region, "b")
    region.mirror.refresh()
    assert decode(region.mirror.image).prologue.mod_time_stamp > first


@pytest.mark.parametrize("name", ["", "a b", "ä", "a\n", "a\0", "\x7f"])
def test_a_bad_name_takes_no_space(native: Any, name: str) -> None:
    region = Region(PAGE)
    with pytest.raises(CounterNameError):
        allocate(region, name)
    assert values(region) == {}


def test_a_full_region_grows(native: Any) -> None:
    """What has mapped the region as it was meets its end; what looks again finds all, under different names."""
    region = Region(PAGE, 20 * PAGE)
    slots = [native.CounterSlot() for _ in range(900)]
    sizes, shown = set(), {}
    for number, slot in enumerate(slots):
        assert region.allocate([(f"number.{number}" + "x" * (number % 9), 0, 1, 2, slot, 0)])
        slot.add(number)
        if region.capacity not in sizes:
            sizes.add(region.capacity)
            shown[region.capacity] = bytes(region.mirror.image), region.mirror.used
    assert sizes == {PAGE, 2 * PAGE, 4 * PAGE, 8 * PAGE, 16 * PAGE}
    region.mirror.refresh()
    whole = decode(region.mirror.image)
    values = {name: value for name, value in whole.values(region.mirror.image).items() if name.startswith("number.")}
    assert sorted(values.values()) == list(range(900))
    fillers = [entry.name for entry in whole.entries if not entry.name.startswith("number.")]
    assert fillers == [f"vmscope.fill.{number}" for number in range(1, 5)]
    for size in sizes - {max(sizes)}:
        ends = {entry.offset for entry in whole.entries}
        assert size in ends  # an entry begins where the region ended
    assert region.mirror.overflow == 0
    while region.allocate([(f"more.{len(region.mirror.image)}.{region.mirror.used}", 0, 1, 2, slots[0], 0)]):
        pass
    assert (region.capacity, region.mirror.overflow > 0) == (20 * PAGE, True)


def test_overflow_is_hotspots(native: Any) -> None:
    """An entry that would end exactly at the end does not fit; one that is smaller may still come later."""
    region = Region(PAGE)
    exact = PAGE - 32 - len(encode.entry("big", units=5, variability=3, value=b""))
    big = b"x" * exact
    size = len(encode.entry("big", units=5, variability=3, value=big))
    assert 32 + size == PAGE
    assert not allocate(region, "big", big)
    assert region.mirror.used == 0
    assert region.mirror.overflow == size
    assert allocate(region, "big", big[:-8])
    assert region.mirror.used == PAGE - 8
    assert not allocate(region, "x")
    small = len(encode.entry("x", units=1, variability=3, value=0))
    assert region.mirror.overflow == size + small
    assert values(region) == {"big": "x" * (exact - 8)}
    region.mirror.refresh()
    assert decode(region.mirror.image).prologue.overflow == size + small


def test_smaller_entries_fill_what_is_left(native: Any) -> None:
    region = Region(PAGE)
    count = 0
    while allocate(region, f"long.name.{'x' * 80}.{count}"):
        count += 1
    lost = region.mirror.overflow
    assert allocate(region, "s")
    assert region.mirror.overflow == lost
    assert len(values(region)) == count + 1


def test_a_counter_without_space_still_counts(native: Any) -> None:
    region = Region(PAGE)
    slots = [native.CounterSlot() for _ in range(PAGE // 20)]
    shown = [allocate(region, f"counter.{i}", 0, slot) for i, slot in enumerate(slots)]
    assert True in shown
    assert False in shown
    for slot in slots:
        slot.inc()
    assert {slot.value for slot in slots} == {1}
    assert values(region) == {f"counter.{i}": 1 for i, fits in enumerate(shown) if fits}


# -- in the middle of an allocation ---------------------------------------------------------------


@pytest.fixture
def registry(native: Any) -> Registry:
    """One with a region."""
    if "python" in (native.IMPLEMENTATION, IMPLEMENTATION):
        pytest.skip("the twin relies on where CPython runs handlers, which is not before every instruction")
    made = Registry()
    made.attach(Region(1 << 22))
    return made


def shown(registry: Registry) -> set[str]:
    region = registry._region
    assert region is not None
    return set(values(region))


@contextlib.contextmanager
def interrupted(handler: Callable[[], None], seconds: float = 0.0001) -> Iterator[None]:
    """A signal handler that runs all the time, in the midst of our code."""

    def handle(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_globals["__name__"].startswith("vmscope."):
            handler()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_handler_that_allocates(native: Any) -> None:
    region = Region(1 << 22)
    made: list[str] = []

    def handler() -> None:
        name = f"handler.{len(made)}"
        made.append(name)
        assert allocate(region, name, len(made))

    number = 0
    with interrupted(handler):
        while number < 4000 or len(made) <= 20:
            assert allocate(region, f"main.{number}", number)
            number += 1
    found = values(region)
    assert set(found) == {*made, *(f"main.{i}" for i in range(number))}
    assert [i for i in range(number) if found[f"main.{i}"] != i] == []


class Interrupted(BaseException):
    pass


def test_a_signal_handler_that_raises(native: Any) -> None:
    """Ctrl-C in the middle of an allocation leaves no hole that would hide all later entries."""
    region = Region(1 << 22)

    def handler() -> None:
        raise Interrupted

    caught, number = 0, 0
    with interrupted(handler):
        while caught < 100:
            number += 1
            try:
                allocate(region, f"main.{number}", number)
            except Interrupted:
                caught += 1
    assert [(name, value) for name, value in values(region).items() if f"main.{value}" != name] == []
    assert allocate(region, "last", 1)
    assert list(values(region))[-1] == "last"


def test_a_destructor_that_allocates(native: Any) -> None:
    region = Region(1 << 22)
    made: list[str] = []

    class Last:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            name = f"destructor.{len(made)}"
            made.append(name)
            allocate(region, name)

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(300):
            Last()
            assert allocate(region, f"main.{i}")
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert len(made) == 300
    assert set(values(region)) == {*made, *(f"main.{i}" for i in range(300))}


@contextlib.contextmanager
def at_every_instruction(action: Callable[[], None]) -> Iterator[None]:
    """Acts before every single instruction of the registry, the region and the encoder."""
    ready = active = False

    def each(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal active
        if active or not frame.f_globals.get("__name__", "").startswith("vmscope."):
            return None
        frame.f_trace_opcodes = True
        if ready and event == "opcode" and frame.f_code.co_name != "attach":  # its own steps are between calls
            active = True
            try:
                action()
            finally:
                active = False
        return each

    before = sys.gettrace()
    try:
        sys.settrace(each)  # 3.12 shows instructions only from the second time on
        Registry().counter("first")
        ready = True
        sys.settrace(each)
        yield
    finally:
        sys.settrace(before)


def test_a_counter_made_at_every_instruction_of_another(native: Any, registry: Registry) -> None:
    made: list[str] = []

    def action() -> None:
        name = f"nested.{len(made)}"
        made.append(name)
        registry.counter(name)

    with at_every_instruction(action):
        registry.counter("outer.counter")
        registry.text("outer.text")
        registry.constant("outer.constant", "x")
    assert len(made) > 200
    assert shown(registry) == {*made, "outer.counter", "outer.text", "outer.constant"}


def test_the_same_counter_made_at_every_instruction(native: Any, registry: Registry) -> None:
    found: list[object] = []
    with at_every_instruction(lambda: found.append(registry.counter("same"))):
        found.append(registry.counter("same"))
    assert len(set(map(id, found))) == 1
    assert shown(registry) == {"same"}


def test_interrupted_at_every_instruction(native: Any, registry: Registry) -> None:
    attempts = left = 0

    def action() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Interrupted

    while True:
        attempts += 1
        left = attempts
        try:
            with at_every_instruction(action):
                registry.counter(f"main.{attempts}")
            break
        except Interrupted:
            pass
    assert attempts > 30
    assert shown(registry) <= {f"main.{attempt}" for attempt in range(1, attempts + 1)}
    registry.counter("last")
    assert "last" in shown(registry)


def test_attaching_at_every_instruction(native: Any, registry: Registry) -> None:
    """Counters made while a region is attached are shown once, whenever they come."""
    made: list[str] = []

    def action() -> None:
        if len(made) < 5000:
            name = f"nested.{len(made)}"
            made.append(name)
            registry.counter(name)

    first = [registry.counter(name) for name in ("z", "y")]
    registry.counter("a")
    registry.detach()
    region = Region(1 << 22)
    with at_every_instruction(action):
        registry.attach(region, first)
    found = list(values(region))
    assert found.index("z") < found.index("y") < found.index("a")
    assert set(found) == {"z", "y", "a", *made}
