"""What of a recording makes a profile, and how much it weighs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flight.jfr_writer import EVENTS, SAMPLE, START, Writer
from vmscope.flight.convert import modes
from vmscope.flight.convert.modes import Window
from vmscope.flight.convert.profile import CODE, NATIVE, Profile

MILLISECOND = 10**6


def made(folder: Path, *writers: Writer) -> str:
    path = folder / "a.jfr"
    path.write_bytes(b"".join(writer.chunk() for writer in writers))
    return str(path)


def stacks(profile: Profile) -> dict[str, int]:
    """`thread: a;b` and its weight."""
    names = [name for name, _ in profile.frames]
    return {
        f"{thread}: {';'.join(names[frame] for frame in stack)}": weight
        for (thread, stack), weight in profile.stacks.items()
    }


@pytest.fixture
def service(tmp_path: Path) -> str:
    """A recording of vmscope's, with some of everything."""
    writer = Writer()
    for _ in range(3):
        writer.sample("jdk.ExecutionSample", "main", "shop/Orders.run", "shop/Orders.price", at=5 * MILLISECOND)
    writer.sample("jdk.NativeMethodSample", "main", "shop/Orders.run", "zlib.compress", at=10 * MILLISECOND)
    writer.wait("main", 40, "shop/Orders.run", "queue/Queue.get")
    thread, stack = writer.thread("worker-1"), writer.stack("shop/Orders.run")
    gil = writer.thread("worker-1"), writer.stack("shop/Orders.run", "shop/Orders.price")
    writer.event("vmscope.GILWait", START, 7 * MILLISECOND, *gil)
    writer.event("jdk.ObjectAllocationSample", START, thread, stack, writer.type("[Ljava/lang/String;"), 4096)
    writer.event("jdk.ObjectAllocationSample", START, thread, stack, writer.type("[[I"), 100)
    writer.event("jdk.JavaMonitorEnter", START, 9 * MILLISECOND, thread, stack, writer.type("threading/Lock"))
    writer.event("jdk.ThreadPark", START, 2 * MILLISECOND, thread, stack, 0)
    writer.event("jdk.JavaExceptionThrow", START, 0, thread, stack, "no", writer.type("shop/OutOfStock"))
    return made(tmp_path, writer)


RUN = "shop.Orders.run"
EXPECTED = {
    "cpu": {f"main: {RUN};shop.Orders.price": 3, f"main: {RUN};zlib.compress": 1},
    "wall": {
        f"main: {RUN};shop.Orders.price": 3, f"main: {RUN};zlib.compress": 1, f"main: {RUN};queue.Queue.get": 40,
    },
    "gil": {
        f"main: [holds the GIL];{RUN};shop.Orders.price": 60 * MILLISECOND,
        f"worker-1: [waits for the GIL];{RUN};shop.Orders.price": 7 * MILLISECOND,
    },
    "alloc": {f"worker-1: {RUN};java.lang.String[]": 4096, f"worker-1: {RUN};int[][]": 100},
    "lock": {
        f"worker-1: {RUN};threading.Lock": 9 * MILLISECOND, f"worker-1: {RUN}": 2 * MILLISECOND,
        f"worker-1: {RUN};shop.Orders.price;GIL": 7 * MILLISECOND,
    },
    "exception": {f"worker-1: {RUN};shop.OutOfStock": 1},
}  # fmt: skip


@pytest.mark.parametrize("mode", modes.MODES)
def test_each_mode_takes_its_events(service: str, mode: str) -> None:
    profile = modes.profile([service], mode)
    assert stacks(profile) == EXPECTED[mode]
    assert profile.unit == modes.MODES[mode].unit


def test_recordings_are_added_up(service: str) -> None:
    once, twice = modes.profile([service], "wall"), modes.profile([service, service], "wall")
    assert stacks(twice) == {stack: 2 * weight for stack, weight in stacks(once).items()}


def test_a_part_by_thread_and_by_time(service: str) -> None:
    for window, weight in (
        (Window(is_wanted="worker-1".__eq__), 0),
        (Window(begin=5 * MILLISECOND), 4),
        (Window(begin=5 * MILLISECOND + 1), 1),
        (Window(begin=START + 5 * MILLISECOND, end=START + 10 * MILLISECOND), 3),
        (Window(end=1), 0),
    ):
        assert modes.profile([service], "cpu", window).total == weight


def test_a_jvm_s_native_samples_are_no_cpu_time_and_it_has_no_gil(tmp_path: Path) -> None:
    """It takes them of threads that wait in native code too, and does not say which."""
    writer = Writer({name: EVENTS[name] for name in ("jdk.ExecutionSample", "jdk.NativeMethodSample")})
    writer.sample("jdk.ExecutionSample", "main", "Shop.run")
    writer.sample("jdk.NativeMethodSample", "main", "sun/nio/ch/EPoll.wait")
    path = made(tmp_path, writer)
    assert stacks(modes.profile([path], "cpu")) == {"main: Shop.run": 1}
    assert modes.profile([path], "wall").total == 2
    assert not modes.profile([path], "gil").stacks


def test_of_two_events_that_tell_the_same_one_counts(tmp_path: Path) -> None:
    cpu_time = ["startTime long", "stackTrace *jdk.types.StackTrace", "eventThread *java.lang.Thread"]
    writer = Writer({"jdk.ExecutionSample": SAMPLE, "jdk.CPUTimeSample": cpu_time})
    writer.sample("jdk.ExecutionSample", "main", "Shop.run")
    path = made(tmp_path, writer)
    assert stacks(modes.profile([path], "cpu")) == {"main: Shop.run": 1}
    writer.event("jdk.CPUTimeSample", START, writer.stack("Shop.price"), writer.thread("main"))
    path = made(tmp_path, writer)
    assert stacks(modes.profile([path], "cpu")) == {"main: Shop.price": 1}


def test_the_period_of_samples_is_the_setting_s(tmp_path: Path) -> None:
    setting = ["startTime long", "id long", "name java.lang.String", "value java.lang.String"]
    writer = Writer({**EVENTS, "jdk.ActiveSetting": setting})
    writer.event("jdk.ActiveSetting", START, writer.numbers["jdk.ExecutionSample"], "period", "5 ms")
    writer.sample("jdk.ExecutionSample", "main", "shop/Orders.run")
    assert modes.profile([made(tmp_path, writer)], "gil").total == 5 * MILLISECOND


def test_what_throws_is_not_the_exception_s_own_constructor(tmp_path: Path) -> None:
    writer = Writer()
    stack = writer.stack("Shop.<init>", "Gone.<init>", "java/lang/Exception.<init>", "java/lang/Throwable.<init>")
    writer.event("jdk.JavaExceptionThrow", START, 0, writer.thread("main"), stack, None, writer.type("Gone"))
    assert stacks(modes.profile([made(tmp_path, writer)], "exception")) == {"main: Shop.<init>;Gone": 1}


def test_a_function_s_share_counts_recursion_once_and_what_it_allocates() -> None:
    profile = Profile("alloc", "bytes")
    a, b = profile.frame("a"), profile.frame("b", NATIVE)
    type = profile.frame("list", "type")
    profile.add("main", (a, b, a), 10, 1)
    profile.add("other", (a, type), 5, 2)
    assert [(each.name, each.kind, each.own, each.total) for each in profile.functions()] == [
        ("a", CODE, 15, 15),
        ("b", NATIVE, 0, 10),
    ]
    assert [(each.name, each.own) for each in profile.types()] == [("list", 5)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("java/lang/Thread", "java.lang.Thread"),
        ("[B", "byte[]"),
        ("[[Ljava/util/Map$Entry;", "java.util.Map$Entry[][]"),
        ("Shop$$Lambda+0x0000000100086208/330382173", "Shop$$Lambda"),
        ("Shop$$Lambda$14/0x0000000800c03000", "Shop$$Lambda"),
        ("java/lang/invoke/LambdaForm$MH/0x0000000800c03000", "java.lang.invoke.LambdaForm$MH"),
        ("shop/Orders", "shop.Orders"),
    ],
)
def test_class_names(name: str, shown: str) -> None:
    assert modes.class_name(name) == shown
