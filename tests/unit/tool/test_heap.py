"""Tags and walks through the heap, beside gc, sys and the objects themselves."""

from __future__ import annotations

import array
import collections
import gc
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable

import pytest

from tests.agents import live
from vmscope import native
from vmscope.tool.environment import Environment
from vmscope.tool.model import introspection, references
from vmscope.tool.model.tags import Tag, Tags
from vmscope.tool.spec.errors import (
    IllegalArgument,
    InvalidClass,
    InvalidEnvironment,
    InvalidObject,
    MustPossessCapability,
    NullPointer,
)
from vmscope.tool.spec.events import Event
from vmscope.tool.spec.heap_types import (
    HeapCallbacks,
    HeapFilter,
    IterationControl,
    ObjectFilter,
    PrimitiveType,
    ReferenceInfo,
    ReferenceKind,
    RootKind,
    StackLocal,
    VisitControl,
)


class Node:
    """A thing of this test's, with no code of its own that a walk could run."""

    kept: object = None

    def __init__(self, *links: object) -> None:
        self.links = links


class Loud(collections.UserString):
    """Says no to whatever it is asked."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(name)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("eq")

    def __hash__(self) -> int:
        raise AssertionError("hash")

    def __len__(self) -> int:
        raise AssertionError("len")


@pytest.fixture
def env() -> Environment:
    return live()


# -- tags -----------------------------------------------------------------------------------------


def test_tags_are_each_environment_s_own(env: Environment) -> None:
    other = env.host.get_env()
    other.add_capabilities(env.get_capabilities())
    things = [Node(), Node, "text", ("t",), [], {}, 7, sys, env, lambda: None]
    for number, thing in enumerate(things, 1):
        assert env.get_tag(thing) == 0
        env.set_tag(thing, number)
    assert [env.get_tag(thing) for thing in things] == list(range(1, len(things) + 1))
    assert [other.get_tag(thing) for thing in things] == [0] * len(things)
    env.set_tag(things[0], -(1 << 63))
    assert env.get_tag(things[0]) == -(1 << 63)
    env.set_tag(things[0], 0)
    assert env.get_tag(things[0]) == 0


def test_equal_objects_have_tags_of_their_own(env: Environment) -> None:
    one, two = [1], [1]
    env.set_tag(one, 5)
    assert (env.get_tag(one), env.get_tag(two)) == (5, 0)
    loud = Loud.__new__(Loud)
    env.set_tag(loud, 6)
    assert env.get_tag(loud) == 6


def test_objects_by_tag(env: Environment) -> None:
    things = [Node() for _ in range(10)]
    for number, thing in enumerate(things):
        env.set_tag(thing, number % 3 + 1)
    found, tags = env.get_objects_with_tags([1, 3, 99])
    assert sorted(tags) == [1, 1, 1, 1, 3, 3, 3]
    assert {id(thing) for thing in found} == {id(thing) for thing in things if env.get_tag(thing) in (1, 3)}
    assert [(thing, tag) for thing, tag in zip(found, tags, strict=True) if env.get_tag(thing) != tag] == []
    assert env.get_objects_with_tags([]) == ([], [])


def test_a_tag_ends_with_its_object(env: Environment) -> None:
    thing = Node()
    env.set_tag(thing, 3)
    address, seen = id(thing), weakref.ref(thing)
    del thing
    assert seen() is None, "a tag does not keep it"
    assert env.get_objects_with_tags([3]) == ([], [])
    for other in [Node() for _ in range(1000)]:
        assert env.get_tag(other) == 0, f"not even at the address {address:#x}"


def test_objects_without_weak_references_live_while_they_are_tagged(env: Environment) -> None:
    witness = Node()
    seen = weakref.ref(witness)
    env.set_tag([witness], 4)
    del witness
    ((kept,), _) = env.get_objects_with_tags([4])
    assert seen() is not None
    env.set_tag(kept, 0)
    del kept
    assert seen() is None


def test_the_end_of_a_tagged_object_is_an_event(env: Environment) -> None:
    seen: list[int] = []
    env.set_event_callbacks({Event.OBJECT_FREE: lambda env, tag: seen.append(tag)})
    for number in (1, 2, 3):
        thing = Node()
        env.set_tag(thing, number)
        env.set_event_notification_mode(number > 1, Event.OBJECT_FREE)
        if number == 3:
            thing.links = (thing,)
        del thing
    env.force_garbage_collection()
    assert seen == [2, 3]


def test_disposal_forgets_all_tags() -> None:
    env = live()
    seen: list[int] = []
    env.set_event_callbacks({Event.OBJECT_FREE: lambda env, tag: seen.append(tag)})
    env.set_event_notification_mode(True, Event.OBJECT_FREE)
    thing, witness = Node(), Node()
    ended = weakref.ref(witness)
    env.set_tag(thing, 1)
    env.set_tag([witness], 2)
    env.dispose_environment()
    del thing, witness
    assert ended() is None
    assert seen == []
    with pytest.raises(InvalidEnvironment):
        env.get_tag(env)


def test_garbage_is_collected(env: Environment) -> None:
    thing = Node()
    thing.links = (thing,)
    ended = weakref.ref(thing)
    del thing
    env.force_garbage_collection()
    assert ended() is None


# -- iterating ------------------------------------------------------------------------------------


def test_every_object_is_met_once(env: Environment) -> None:
    """What gc knows is met, and what that refers to."""
    things = [Node(object(), f"leaf {len(sys.argv)}", float(len(sys.argv)))]
    expected = {id(each) for each in gc.get_objects()}
    met = [id(each) for each in references.objects()]
    counts = collections.Counter(met)
    assert [number for number in counts.values() if number > 1] == []
    assert len(expected - set(met)) < 100, "but for the test's own"
    for leaf in things[0].links:
        assert id(leaf) in counts
    assert id(int) in counts, "a class that gc does not know"


def classes() -> tuple[type[Node], type[Node]]:
    """Without objects of other tests."""

    class Kind(Node):
        pass

    class Derived(Kind):
        pass

    return Kind, Derived


def test_iterating_by_class_and_tag(env: Environment) -> None:
    Node, Derived = classes()
    nodes = [Node() for _ in range(5)] + [Derived()]
    for number, node in enumerate(nodes):
        env.set_tag(node, number)
    env.set_tag(Node, 100)
    seen: list[tuple[int, int, int, int]] = []

    def visit(class_tag: int, size: int, tag: Tag, length: int, data: object) -> None:
        assert data == "data"
        seen.append((class_tag, size, tag.value, length))

    def tags(heap_filter: int, klass: type = Node) -> list[int]:
        seen.clear()
        env.iterate_through_heap(heap_filter, klass, HeapCallbacks(heap_iteration=visit), "data")
        return sorted(tag for _, _, tag, _ in seen)

    assert tags(0) == [0, 1, 2, 3, 4]
    assert {(class_tag, size, length) for class_tag, size, _, length in seen} == {(100, sys.getsizeof(nodes[0]), -1)}
    assert tags(HeapFilter.TAGGED) == [0]
    assert tags(HeapFilter.UNTAGGED) == [1, 2, 3, 4]
    assert tags(HeapFilter.CLASS_TAGGED) == []
    assert tags(HeapFilter.CLASS_UNTAGGED) == [0, 1, 2, 3, 4]
    assert tags(HeapFilter.CLASS_TAGGED, Derived) == [5]


def test_tags_set_while_iterating(env: Environment) -> None:
    Node, _ = classes()
    nodes = [Node() for _ in range(5)]
    numbers = iter(range(1, 100))

    def visit(class_tag: int, size: int, tag: Tag, length: int, data: object) -> None:
        tag.value = next(numbers)
        assert tag.value > 0

    env.iterate_through_heap(0, Node, HeapCallbacks(heap_iteration=visit))
    assert sorted(env.get_tag(node) for node in nodes) == [1, 2, 3, 4, 5]


def test_an_answer_ends_it(env: Environment) -> None:
    nodes = [Node() for _ in range(5)]
    calls: list[int] = []

    def visit(*arguments: object) -> int:
        calls.append(1)
        return VisitControl.ABORT

    env.iterate_through_heap(0, Node, HeapCallbacks(heap_iteration=visit))
    env.follow_references(0, None, nodes, HeapCallbacks(heap_reference=visit))
    env.follow_references(0, None, None, HeapCallbacks(heap_reference=visit))
    assert len(calls) == 3

    def old(*arguments: object) -> int:
        calls.append(1)
        return IterationControl.ABORT

    env.iterate_over_heap(ObjectFilter.EITHER, old)
    env.iterate_over_instances_of_class(Node, ObjectFilter.EITHER, old)
    env.iterate_over_objects_reachable_from_object(nodes, old)
    env.iterate_over_reachable_objects(old, old, old)
    assert len(calls) == 7


def test_what_a_callback_raises_reaches_the_caller(env: Environment) -> None:
    def visit(*arguments: object) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        env.iterate_through_heap(0, None, HeapCallbacks(heap_iteration=visit))
    with pytest.raises(IllegalArgument, match="VisitControl or None"):
        env.iterate_through_heap(0, None, HeapCallbacks(heap_iteration=lambda *_: "on"))  # type: ignore[arg-type]
    for answer in (7, "on"):
        with pytest.raises(IllegalArgument, match="IterationControl or None"):
            env.iterate_over_heap(ObjectFilter.EITHER, lambda *_, answer=answer: answer)


def test_the_older_iterations(env: Environment) -> None:
    Node, Derived = classes()
    nodes = [Node(), Node(), Derived()]
    env.set_tag(nodes[0], 1)
    env.set_tag(nodes[2], 3)
    seen: list[int] = []

    def visit(class_tag: int, size: int, tag: Tag, data: object) -> None:
        assert data == "data"
        seen.append(tag.value)

    def instances(object_filter: int) -> list[int]:
        seen.clear()
        env.iterate_over_instances_of_class(Node, object_filter, visit, "data")
        return sorted(seen)

    assert instances(ObjectFilter.EITHER) == [0, 1, 3]
    assert instances(ObjectFilter.TAGGED) == [1, 3]
    assert instances(ObjectFilter.UNTAGGED) == [0]
    seen.clear()
    env.iterate_over_heap(ObjectFilter.TAGGED, visit, "data")
    assert sorted(seen) == [1, 3]
    seen.clear()
    env.iterate_over_heap(ObjectFilter.EITHER, visit, "data")
    assert len(seen) > len(gc.get_objects()) - 1000


def test_primitive_values(env: Environment) -> None:
    Node, _ = classes()
    node = Node(1)
    node.number = 1 << 40  # type: ignore[attr-defined]
    node.ratio = 0.5  # type: ignore[attr-defined]
    node.yes = True  # type: ignore[attr-defined]
    node.big = 1 << 70  # type: ignore[attr-defined]
    fields: dict[str, tuple[object, str]] = {}

    def on_field(
        kind: ReferenceKind,
        info: ReferenceInfo,
        class_tag: int,
        tag: Tag,
        value: object,
        type_: PrimitiveType,
        data: object,
    ) -> None:
        assert kind == ReferenceKind.FIELD
        fields[info.name] = value, type_.name

    env.iterate_through_heap(0, Node, HeapCallbacks(primitive_field=on_field))
    assert fields == {"number": (1 << 40, "LONG"), "ratio": (0.5, "DOUBLE"), "yes": (True, "BOOLEAN")}

    arrays = [b"bytes", bytearray(b"mutable"), array.array("i", [1, -2, 3]), array.array("d", [0.5])]
    texts = ["".join(["unique ", "text"])]
    for number, thing in enumerate([*arrays, *texts], 1):
        env.set_tag(thing, number)
    values: dict[int, tuple[object, ...]] = {}
    env.iterate_through_heap(
        HeapFilter.UNTAGGED,
        None,
        HeapCallbacks(
            array_primitive_value=lambda class_tag, size, tag, count, type_, elements, data: values.update(
                {tag.value: (count, type_, elements)}
            ),
            string_primitive_value=lambda class_tag, size, tag, value, data: values.update({tag.value: (value,)}),
        ),
    )
    assert values == {
        1: (5, PrimitiveType.BYTE, b"bytes"),
        2: (7, PrimitiveType.BYTE, b"mutable"),
        3: (3, PrimitiveType.INT, array.array("i", [1, -2, 3]).tobytes()),
        4: (1, PrimitiveType.DOUBLE, array.array("d", [0.5]).tobytes()),
        5: ("unique text",),
    }


# -- references -----------------------------------------------------------------------------------


def pause(number: int) -> int:
    """Lets other threads run."""
    time.sleep(0.0005)  # others run in between
    return number


Seen = tuple[str, object, int]


def followed(env: Environment, start: object, *, deeper: Callable[[int], bool] = lambda tag: False) -> list[Seen]:
    """Kind, name or index, and the tag of the referee: from this object, and from those with a tag that is wanted."""
    seen: list[Seen] = []

    def on_reference(
        kind: ReferenceKind,
        info: ReferenceInfo | StackLocal | None,
        class_tag: int,
        referrer_class_tag: int,
        size: int,
        tag: Tag,
        referrer_tag: Tag | None,
        length: int,
        data: object,
    ) -> int:
        assert isinstance(info, ReferenceInfo)
        seen.append((kind.name, info.name or info.index, tag.value))
        return VisitControl.OBJECTS if deeper(tag.value) else VisitControl.NOTHING

    env.follow_references(0, None, start, HeapCallbacks(heap_reference=on_reference))
    return seen


def test_references_of_each_kind(env: Environment) -> None:
    target = Node()
    env.set_tag(target, 9)

    class Pair(tuple[object, object]):
        pass

    class Slotted:
        __slots__ = ("slot",)
        slot: object

    class Holder(Node):
        kept = target

    class Made(dict[str, object]):
        pass

    slotted, pair, made = Slotted(), Pair([None, target]), Made(a=target)
    slotted.slot = target
    pair.extra = target  # type: ignore[attr-defined]
    made.extra = target  # type: ignore[attr-defined]
    node = Node()
    node.link = target  # type: ignore[attr-defined]
    constants = compile("0", "<text>", "exec").replace(co_consts=(None, target))
    cases: list[tuple[object, list[tuple[str, object]]]] = [
        ([0, target, 2, target], [("ARRAY_ELEMENT", 1), ("ARRAY_ELEMENT", 3)]),
        ((target, None), [("ARRAY_ELEMENT", 0)]),
        (pair, [("ARRAY_ELEMENT", 1), ("FIELD", "extra")]),
        ({"name": target}, [("FIELD", "name")]),
        ({1: 2, 3: target}, [("ARRAY_ELEMENT", 1)]),
        (made, [("FIELD", "a"), ("FIELD", "extra")]),
        (slotted, [("FIELD", 0)]),
        (Holder, [("STATIC_FIELD", "kept")]),
        (constants, [("CONSTANT_POOL", 1)]),
        ({target}, [("FIELD", 0)]),
        (lambda value=target: value, []),
    ]
    for start, expected in cases:
        seen = [(kind, place) for kind, place, tag in followed(env, start) if tag == 9]
        if isinstance(start, types.FunctionType):
            continue  # its defaults are a tuple of their own
        if start is pair or start is made:  # attributes stand in a `__dict__`, or, while nobody asked for it, not
            env.set_tag(vars(start), 8)
            seen = [(kind, place) for kind, place, tag in followed(env, start, deeper=lambda tag: tag == 8) if tag == 9]
        assert seen == expected, start
    env.set_tag(vars(node), 8)
    assert ("FIELD", "link", 9) in followed(env, node, deeper=lambda tag: tag == 8)


def test_references_of_a_class(env: Environment) -> None:
    Node, Derived = classes()
    for number, thing in enumerate([type, Node, sys.modules[__name__].__spec__.loader], 1):  # type: ignore[union-attr]
        env.set_tag(thing, number)
    seen = followed(env, Derived)
    assert ("CLASS", -1, 1) in seen
    assert ("SUPERCLASS", 0, 2) in seen
    assert ("CLASS_LOADER", -1, 3) in seen
    names = [name for kind, name, _ in seen if kind == "STATIC_FIELD"]
    assert names == list(vars(Derived))


def test_all_that_gc_says_is_referred_to_is_reported(env: Environment) -> None:
    # A C type of another package may hold what no name leads to, as json's scanner does.
    known = (sys.stdlib_module_names | {"vmscope"}) - {"_json"}
    things = [
        each
        for each in gc.get_objects()
        if not issubclass(type(each), type) and str(type(each).__module__).partition(".")[0] in known
    ][::50]
    for thing in things:
        if not isinstance(thing, Tags | types.ModuleType):  # of a module its names only
            before = gc.get_referents(thing)
            told = {id(referee) for _, _, _, referee in references.references(thing)}
            after = gc.get_referents(thing)
            assert {id(each) for each in before} & {id(each) for each in after} <= told, type(thing)


def test_names_of_attributes_that_have_no_dict_yet(env: Environment) -> None:
    Node, _ = classes()
    node, target = Node(), Node()
    node.first = target  # type: ignore[attr-defined]
    env.set_tag(target, 9)
    names = [name for kind, name, tag in followed(env, node) if tag == 9 and kind == "FIELD"]
    assert names == ["first"]
    assert "first" in vars(node)


def test_each_object_is_visited_once(env: Environment) -> None:
    """References are told of each time, also in a circle; objects are visited once."""
    a, b, c = [], [], []  # type: ignore[var-annotated]
    a += [b, c, b]
    b += [a, c]
    c += [c]
    for number, thing in enumerate((a, b, c), 1):
        env.set_tag(thing, number)
    seen = [tag for _, _, tag in followed(env, a, deeper=lambda tag: tag > 0) if tag]
    assert [seen.count(tag) for tag in (1, 2, 3)] == [1, 2, 3]
    assert [tag for _, _, tag in followed(env, a, deeper=lambda tag: tag == 3) if tag] == [2, 3, 2, 3]


def test_filters_hide_but_do_not_stop(env: Environment) -> None:
    inner = Node()
    start = [[inner]]
    env.set_tag(inner, 5)
    seen: list[int] = []

    def on_reference(*arguments: object) -> None:
        tag = arguments[5]
        assert isinstance(tag, Tag)
        seen.append(tag.value)

    env.follow_references(HeapFilter.UNTAGGED, None, start, HeapCallbacks(heap_reference=on_reference))
    assert seen == [5]
    seen.clear()
    env.follow_references(0, Node, start, HeapCallbacks(heap_reference=on_reference))
    assert set(seen) <= {0, 5}
    assert seen.count(5) == 1


def test_roots(env: Environment) -> None:
    """Modules, classes of the interpreter, threads, and the variables of every thread's frames."""
    ready, stop = threading.Event(), threading.Event()

    def run(argument: object) -> None:
        local = Node()
        env.set_tag(local, 21)
        ready.set()
        stop.wait()

    other = Node()
    env.set_tag(other, 22)
    mine = Node()
    env.set_tag(mine, 23)
    thread = threading.Thread(target=run, args=(other,))
    thread.start()
    assert ready.wait(30)
    env.set_tag(sys.modules[__name__], 24)
    env.set_tag(int, 25)
    env.set_tag(thread, 26)
    found: dict[int, set[tuple[str, object]]] = {}

    def on_reference(*arguments: object) -> int:
        kind, info, tag, referrer = arguments[0], arguments[1], arguments[5], arguments[6]
        assert isinstance(kind, ReferenceKind)
        assert isinstance(tag, Tag)
        assert referrer is None, "nothing but roots is visited"
        name = introspection.slots(info.method)[info.slot] if isinstance(info, StackLocal) else None
        found.setdefault(tag.value, set()).add((kind.name, name))
        return VisitControl.NOTHING

    old: dict[int, set[str]] = {}

    def on_root(kind: RootKind, class_tag: int, size: int, tag: Tag, data: object) -> int:
        old.setdefault(tag.value, set()).add(kind.name)
        return IterationControl.IGNORE

    def on_local(*arguments: object) -> int:
        _, _, _, tag, _, depth, method, slot, _ = arguments
        assert isinstance(tag, Tag)
        assert isinstance(method, types.CodeType)
        assert isinstance(slot, int)
        assert isinstance(depth, int)
        old.setdefault(tag.value, set()).add(introspection.slots(method)[slot] if tag.value else "")
        return IterationControl.IGNORE

    try:
        env.follow_references(0, None, None, HeapCallbacks(heap_reference=on_reference))
        env.iterate_over_reachable_objects(on_root, on_local, None)
    finally:
        stop.set()
        thread.join()
    assert ("STACK_LOCAL", "local") in found[21]
    assert ("STACK_LOCAL", "argument") in found[22]
    assert ("STACK_LOCAL", "mine") in found[23]
    assert found[24] == {("JNI_GLOBAL", None)}
    assert found[25] == {("SYSTEM_CLASS", None)}
    assert ("THREAD", None) in found[26]
    assert (old[21], old[24], old[25]) == ({"local"}, {"JNI_GLOBAL"}, {"SYSTEM_CLASS"})
    assert {"THREAD", "thread"} <= old[26]


def test_everything_alive_is_reached_from_the_roots(env: Environment) -> None:
    """But for what only C code knows."""
    Node, _ = classes()
    nodes = [Node(Node(Node())) for _ in range(20)]
    sys.modules[__name__].__dict__["_kept"] = [Node()]
    count = 0

    def on_reference(*arguments: object) -> None:
        tag = arguments[5]
        assert isinstance(tag, Tag)
        tag.value = 1

    env.follow_references(0, Node, None, HeapCallbacks(heap_reference=on_reference))
    count = len(env.get_objects_with_tags([1])[0])
    del sys.modules[__name__].__dict__["_kept"]
    assert count == len(nodes) * 3 + 1


def test_the_older_walk_from_an_object(env: Environment) -> None:
    inner = Node()
    middle = [inner]
    start = {"middle": middle}
    for number, thing in enumerate((start, middle, inner), 1):
        env.set_tag(thing, number)
    seen: list[tuple[str, int, int, int]] = []

    def on_reference(
        kind: ReferenceKind, class_tag: int, size: int, tag: Tag, referrer: int, index: int, data: object
    ) -> int:
        assert data == "data"
        if tag.value:
            seen.append((kind.name, tag.value, referrer, index))
        return IterationControl.CONTINUE if tag.value else IterationControl.IGNORE

    env.iterate_over_objects_reachable_from_object(start, on_reference, "data")
    assert seen == [("FIELD", 2, 1, 0), ("ARRAY_ELEMENT", 3, 2, 0)]


def test_no_code_of_the_program_runs(env: Environment) -> None:
    loud = Loud.__new__(Loud)
    env.set_tag(loud, 77)
    seen: list[int] = []
    nothing = lambda *_: None  # noqa: E731
    env.iterate_through_heap(
        HeapFilter.UNTAGGED,
        None,
        HeapCallbacks(
            heap_iteration=lambda class_tag, size, tag, length, data: seen.append(tag.value),
            primitive_field=nothing,
            array_primitive_value=nothing,
            string_primitive_value=nothing,
        ),
    )
    env.follow_references(0, None, [loud], HeapCallbacks(heap_reference=nothing))
    assert 77 in seen


@pytest.mark.skipif(
    native.IMPLEMENTATION == "python", reason="another thread may run before the twin lets go of tuples"
)
def test_walks_while_other_threads_run(env: Environment) -> None:
    """Objects come and go, dictionaries and lists change, tuples are being filled."""
    stop = threading.Event()
    failed: list[BaseException] = []
    rounds: list[int] = []

    def work() -> None:
        shared: dict[object, object] = {}
        rows: list[object] = []
        try:
            while not stop.is_set():
                for number in range(10):
                    shared[number] = Node(shared, rows, tuple(Node(each) for each in range(3)))
                    rows.append(tuple(pause(each) for each in range(30)))
                    rounds.append(1)
                shared.clear()
                rows.clear()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    counts: list[int] = []
    try:
        while len(rounds) < 10 and not failed:  # they run between walks, and in the midst of one
            env.iterate_through_heap(0, Node, HeapCallbacks(heap_iteration=lambda *_: counts.append(1)))
            env.iterate_over_instances_of_class(Node, ObjectFilter.EITHER, lambda *_: counts.append(1))
            env.follow_references(0, Node, None, HeapCallbacks(heap_reference=lambda *_: counts.append(1)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert counts


def test_a_walk_ends_though_objects_are_made_all_the_time(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each object that is met gets another: as if a thread were quicker than the walk."""
    monkeypatch.setattr("vmscope.tool.model.heap_walks.UNBOUNDED", 100)
    last = [Node()]
    visits: list[int] = []

    def on_reference(*arguments: object) -> None:
        visits.append(1)
        assert len(visits) < 10_000
        last[0].links = (Node(),)
        last[:] = last[0].links

    env.follow_references(0, Node, Node(last[0]), HeapCallbacks(heap_reference=on_reference))
    assert 10 < len(visits) < 200


# -- what is vmscope's own ------------------------------------------------------------------------


def ours(thing: object) -> bool:
    """Its classes, modules, functions and their objects."""
    name = thing.__module__ if isinstance(thing, type | types.FunctionType) else type(thing).__module__
    if isinstance(thing, types.ModuleType):
        name = thing.__name__
    return str(name).partition(".")[0] == "vmscope"


def walked(env: Environment, klass: type | None = None) -> dict[str, dict[int, object]]:
    """What each of the walks meets, by id()."""
    met: dict[str, dict[int, object]] = {"iterate": {}, "follow": {}, "reachable": {}}

    def tag(place: int, name: str) -> Callable[..., None]:
        def visit(*arguments: object) -> None:
            found = arguments[place]
            assert isinstance(found, Tag)
            met[name][id(found.thing)] = found.thing

        return visit

    env.iterate_through_heap(0, klass, HeapCallbacks(heap_iteration=tag(2, "iterate")))
    env.follow_references(0, klass, None, HeapCallbacks(heap_reference=tag(5, "follow")))
    reachable = tag(3, "reachable")
    env.iterate_over_reachable_objects(reachable, reachable, reachable)
    return met


def own_objects_met(env: Environment) -> list[str]:
    """What of vmscope's own the walks of this process meet."""
    found = []
    for name, met in walked(env).items():
        assert len(met) > 10_000
        found += [f"{name}: {each!r}" for each in met.values() if ours(each)][:10]
        if id(vars(sys.modules["vmscope.tool.host"])) in met:
            found.append(f"{name}: the names of a module")
        if native.IMPLEMENTATION == "c" and id(env.host.environments) in met:
            found.append(f"{name}: a list that only vmscope has")
    return found


def test_what_vmscope_keeps_for_the_program_is_met(env: Environment) -> None:
    Node, _ = classes()
    kept, tagged = Node(), [Node()]
    env.set_environment_local_storage(kept)
    env.set_tag(tagged, 5)
    ids = [id(kept), id(tagged[0])]
    del kept, tagged
    assert set(walked(env, Node)["iterate"]) == set(ids)


def test_a_walk_leaves_no_garbage(env: Environment) -> None:
    nothing = lambda *_: None  # noqa: E731
    newer = HeapCallbacks(heap_iteration=nothing, heap_reference=nothing, primitive_field=nothing)
    walks: list[Callable[[], None]] = [
        lambda: env.iterate_through_heap(0, Node, newer),
        lambda: env.follow_references(0, Node, None, newer),
        lambda: env.follow_references(0, None, [Node()], newer),
        lambda: env.iterate_over_heap(ObjectFilter.TAGGED, nothing),
        lambda: env.iterate_over_reachable_objects(nothing, nothing, nothing),
        lambda: env.iterate_over_objects_reachable_from_object([Node()], nothing),
    ]
    env.set_tag(Node, 1)
    gc.collect()
    gc.disable()
    try:
        for number, walk in enumerate(walks):
            walk()
            assert gc.collect() == 0, number
    finally:
        gc.enable()


@pytest.mark.skipif(not native.traces_allocations(), reason="new objects are not told here")
def test_what_a_walk_makes_is_not_sent_as_a_new_object(env: Environment) -> None:
    seen: list[object] = []

    def on_allocation(env: Environment, thread: object, thing: object, klass: type, size: int) -> None:
        seen.append(klass)

    def visit(*arguments: object) -> None:
        made.append([])

    made: list[list[object]] = []
    callbacks = HeapCallbacks(heap_iteration=visit, heap_reference=visit)
    env.set_event_callbacks({Event.VM_OBJECT_ALLOC: on_allocation})
    env.set_event_notification_mode(True, Event.VM_OBJECT_ALLOC)
    env.follow_references(HeapFilter.UNTAGGED, None, None, callbacks)
    env.iterate_through_heap(HeapFilter.UNTAGGED, None, callbacks)
    env.follow_references(0, None, None, callbacks)
    env.set_event_notification_mode(False, Event.VM_OBJECT_ALLOC)
    assert len(seen) < 20, collections.Counter(seen)


# -- what is wrong --------------------------------------------------------------------------------


def test_wrong_arguments(env: Environment) -> None:
    callbacks = HeapCallbacks()
    for tag in (1 << 63, "1", 1.5, None):
        with pytest.raises(IllegalArgument):
            env.set_tag(env, tag)  # type: ignore[arg-type]
        with pytest.raises(IllegalArgument):
            env.get_objects_with_tags([1, tag])  # type: ignore[list-item]
    with pytest.raises(IllegalArgument):
        env.get_objects_with_tags([1, 0])
    with pytest.raises(NullPointer):
        env.get_objects_with_tags(None)  # type: ignore[arg-type]
    for ask in (env.get_tag, lambda thing: env.set_tag(thing, 1)):
        with pytest.raises(InvalidObject):
            ask(None)
    with pytest.raises(InvalidClass):
        env.iterate_through_heap(0, 3, callbacks)  # type: ignore[arg-type]
    with pytest.raises(InvalidClass):
        env.follow_references(0, 3, None, callbacks)  # type: ignore[arg-type]
    with pytest.raises(InvalidClass):
        env.iterate_over_instances_of_class(None, 3, print)  # type: ignore[arg-type]
    with pytest.raises(InvalidObject):
        env.iterate_over_objects_reachable_from_object(None, print)
    for wrong, error in ((None, NullPointer), (3, IllegalArgument)):
        with pytest.raises(error):
            env.iterate_through_heap(0, None, wrong)  # type: ignore[arg-type]
        with pytest.raises(error):
            env.follow_references(0, None, None, wrong)  # type: ignore[arg-type]
        with pytest.raises(error):
            env.iterate_over_heap(ObjectFilter.EITHER, wrong)  # type: ignore[arg-type]
        with pytest.raises(error):
            env.iterate_over_instances_of_class(Node, ObjectFilter.EITHER, wrong)  # type: ignore[arg-type]
        with pytest.raises(error):
            env.iterate_over_objects_reachable_from_object(env, wrong)  # type: ignore[arg-type]
    with pytest.raises(IllegalArgument):
        env.iterate_over_reachable_objects(None, 3, None)  # type: ignore[arg-type]
    for wrong_filter in (0, 4, None):
        with pytest.raises(IllegalArgument):
            env.iterate_over_heap(wrong_filter, print)  # type: ignore[arg-type]


def test_what_needs_a_capability() -> None:
    env = live(holding=False)
    for name, arguments in (
        ("get_tag", 1),
        ("set_tag", 2),
        ("get_objects_with_tags", 1),
        ("iterate_through_heap", 4),
        ("follow_references", 5),
        ("iterate_over_heap", 3),
        ("iterate_over_instances_of_class", 4),
        ("iterate_over_objects_reachable_from_object", 3),
        ("iterate_over_reachable_objects", 4),
    ):
        with pytest.raises(MustPossessCapability):
            getattr(env, name)(*[None] * arguments)
    env.force_garbage_collection()
