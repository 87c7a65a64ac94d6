"""Native agents' walks of the heap, which are in C: they tell what the same functions tell callbacks in Python."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from tests.c_agents import CAgent, build

AGENT = r"""
typedef struct { jlong class_tag, size, tag; jint length; } Row;

JNIEXPORT Row rows[1 << 20];
JNIEXPORT jlong count, most;
static jlong added;
static int error_inside;

static jvmtiIterationControl record(jlong class_tag, jlong size, jlong *tag, jint length) {
    JNIEnv *jni;
    unsigned char *memory;
    jint hash;
    if ((*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10) != JNI_EDETACHED) {
        error_inside++; /* nothing of Python may be touched here */
    }
    if ((*ti)->Allocate(ti, 8, &memory) != 0 || (*ti)->Deallocate(ti, memory) != 0 ||
        (*ti)->GetObjectHashCode(ti, (jobject)1, &hash) != JVMTI_ERROR_UNATTACHED_THREAD) {
        error_inside++;
    }
    if (count < 1 << 20) {
        rows[count] = (Row){class_tag, size, *tag, length};
    }
    *tag += *tag ? added : 0;
    return ++count == most ? JVMTI_ITERATION_ABORT : JVMTI_ITERATION_CONTINUE;
}

static jint JNICALL newer(jlong class_tag, jlong size, jlong *tag, jint length, void *data) {
    error_inside += data != (void *)42;
    return record(class_tag, size, tag, length) == JVMTI_ITERATION_ABORT ? JVMTI_VISIT_ABORT : JVMTI_VISIT_OBJECTS;
}

static jvmtiIterationControl JNICALL older(jlong class_tag, jlong size, jlong *tag, void *data) {
    error_inside += data != (void *)42;
    return record(class_tag, size, tag, -7);
}

static jint JNICALL field(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info UNUSED,
                          jlong class_tag UNUSED, jlong *tag UNUSED, jvalue value UNUSED,
                          jvmtiPrimitiveType type UNUSED, void *data UNUSED) {
    error_inside += kind != JVMTI_HEAP_REFERENCE_FIELD && kind != JVMTI_HEAP_REFERENCE_STATIC_FIELD;
    return JVMTI_VISIT_OBJECTS;
}

/* How many objects were told of; below 0, an error. `of` is the tag of a class. */
JNIEXPORT jlong walk(jint how, jint filter, jlong of, jlong add, jlong limit, jint fields) {
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = newer};
    callbacks.primitive_field_callback = fields ? field : NULL;
    JNIEnv *jni;
    jobject *found = NULL;
    jint many = 0;
    (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10);
    (*jni)->PushLocalFrame(jni, 16);
    if (of && ((*ti)->GetObjectsWithTags(ti, 1, &of, &many, &found, NULL) != 0 || many != 1)) {
        return -99;
    }
    jclass klass = found == NULL ? NULL : found[0];
    added = add;
    most = limit;
    count = 0;
    jvmtiError error = how == 0   ? (*ti)->IterateThroughHeap(ti, filter, klass, &callbacks, (void *)42)
                       : how == 1 ? (*ti)->IterateOverHeap(ti, filter, older, (void *)42)
                                  : (*ti)->IterateOverInstancesOfClass(ti, klass, filter, older, (void *)42);
    (*ti)->Deallocate(ti, (unsigned char *)found);
    (*jni)->PopLocalFrame(jni, NULL);
    return error ? -(jlong)error : error_inside ? -1000 - error_inside : count;
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    return (*ti)->AddCapabilities(ti, &wanted);
}
"""
PROGRAM = """
import array, collections, ctypes, gc, json, sys
from vmscope import tool

class Row(ctypes.Structure):
    _fields_ = [("class_tag", ctypes.c_int64), ("size", ctypes.c_int64), ("tag", ctypes.c_int64),
                ("length", ctypes.c_int32)]

library = ctypes.CDLL({library!r})
library.walk.restype = ctypes.c_int64
library.walk.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
table = (Row * (1 << 20)).in_dll(library, "rows")
env = tool.vm().environments[0]

def here(how=0, filter=0, of=0, add=0, limit=-1, fields=0):
    many = library.walk(how, filter, of, add, limit, fields)
    assert many >= 0, many
    return [(row.class_tag, row.size, row.tag, row.length) for row in table[:many]]

def there(how=0, filter=0, klass=None):
    rows = []
    def newer(class_tag, size, tag, length, data):
        rows.append((class_tag, size, tag.value, length))
    def older(class_tag, size, tag, data):
        rows.append((class_tag, size, tag.value, -7))
    if how == 0:
        env.iterate_through_heap(filter, klass, tool.HeapCallbacks(heap_iteration=newer))
    elif how == 1:
        env.iterate_over_heap(filter, older)
    else:
        env.iterate_over_instances_of_class(klass, filter, older)
    return rows

class Plain:
    pass

class Slotted:
    __slots__ = ("a", "b")

class Derived(Plain, list):
    def __len__(self):
        raise AssertionError("it is asked")
    def __sizeof__(self):
        raise AssertionError("it is asked")

class Sized(int):
    pass

def function(a, *, b=(1.5, "argument")):
    return lambda: a

things = [
    Plain(), Slotted(), Derived((1, 2, 3)), Sized(1 << 90), (1, 2), frozenset((3, 4)), "text of mine", "t\\xe9xt",
    "\\U0001F600",
    b"bytes", bytearray(33), [1] * 7, {{"a": 1}}, {{1, 2}}, 1 << 70, 2.25, 3j, range(7), slice(1, 2),
    array.array("d", [1, 2]), collections.deque([1, 2, 3]), collections.OrderedDict(a=1), function, function.__code__,
    function(1), sys, memoryview(b"abc"),
    type(sys), Plain.__dict__, iter([]), Exception("one"), property(), object(),
    type("Later", (), {{}})(),
]
for number, thing in enumerate(things, 1):
    env.set_tag(thing, number)
classes = [Plain, Slotted, Derived, Sized, tuple, list, int, Exception]
for number, klass in enumerate(classes, 1001):
    env.set_tag(klass, number)
env.set_tag("low" * 3, -(1 << 63))
answer = lambda **found: print(json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(AGENT, tmp_path_factory.mktemp("heap"))


def found(agent: CAgent, code: str) -> dict[str, object]:
    [line] = agent.lines(PROGRAM.format(library=str(agent.library)) + dedent(code))
    answer: dict[str, object] = json.loads(line)
    return answer


def test_both_tell_the_same_of_tagged_objects(agent: CAgent) -> None:
    """Class tag, size, tag and length, by each of the three functions and each filter that leaves tagged ones."""
    answer = found(
        agent,
        """
        pairs = {
            "tagged": (here(filter=8), there(filter=8)),
            "of tagged classes": (here(filter=8 | 32), there(filter=8 | 32)),
            "of others": (here(filter=8 | 16), there(filter=8 | 16)),
            "of a class": (here(filter=8, of=1001), there(filter=8, klass=Plain)),
            "of a class, all": (here(of=1002), there(klass=Slotted)),
            "older, tagged": (here(how=1, filter=1), there(how=1, filter=1)),
            "instances": (here(how=2, filter=3, of=1001), there(how=2, filter=3, klass=Plain)),
            "tagged instances": (here(how=2, filter=1, of=1007), there(how=2, filter=1, klass=int)),
        }
        answer(different=[name for name, (a, b) in pairs.items() if sorted(a) != sorted(b)],
               counts={name: len(a) for name, (a, b) in pairs.items()})
        """,
    )
    assert answer["different"] == []
    counts = answer["counts"]
    assert isinstance(counts, dict)
    assert counts["tagged"] == 43, counts  # 34 things, 8 classes, a text
    assert counts["of tagged classes"] + counts["of others"] == counts["tagged"]
    assert counts["instances"] == 2, "an instance of a derived class is one"
    assert (counts["of a class"], counts["of a class, all"]) == (1, 1)


def test_both_meet_the_same_objects(agent: CAgent) -> None:
    """All there are, by class, but for the few that the callbacks in Python make themselves."""
    answer = found(
        agent,
        """
        every = {kind: number for number, kind in enumerate(
            {type(each) for each in gc.get_objects()} | {str, float, bytes}, 5000)}
        for kind, number in every.items():
            env.set_tag(kind, number)
        gc.collect(); gc.disable()
        a, b = collections.Counter(row[0] for row in here()), collections.Counter(row[0] for row in there())
        answer(total=sum(a.values()), far=[(kind.__name__, a[number], b[number]) for kind, number in every.items()
            if abs(a[number] - b[number]) > 15 + a[number] // 20])
        """,
    )
    assert answer["far"] == []
    assert int(str(answer["total"])) > 20_000


def test_a_tag_is_written_through_its_pointer(agent: CAgent) -> None:
    answer = found(
        agent,
        """
        here(filter=8, add=100)
        tags = [env.get_tag(thing) for thing in things]
        before = [row[2] for row in here(how=1, filter=1)]
        here(filter=8, of=1101, add=-101)
        answer(right=tags == list(range(101, 101 + len(things))), classes=[env.get_tag(klass) for klass in classes],
               seen=sorted(before)[1:] == sorted([*tags, *range(1101, 1109)]), gone=env.get_tag(things[0]))
        """,
    )
    assert answer == {"right": True, "classes": list(range(1101, 1109)), "seen": True, "gone": 0}


def test_an_answer_ends_it_and_other_callbacks_take_the_long_way(agent: CAgent) -> None:
    answer = found(
        agent,
        """
        answer(limited=[len(here(limit=5)), len(here(how=1, filter=3, limit=3))],
               same=sorted(here(filter=8, fields=1)) == sorted(here(filter=8)))
        """,
    )
    assert answer == {"limited": [5, 3], "same": True}
