"""Native agents that do what they must not: garbage given back, references kept for ever,
    exceptions left pending. Beside
HotSpot, where that stands it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.c_agents import WITH_MONITORING, CAgent, build

GARBAGE = r"""
static int calls;

static jint JNICALL iterate(jlong class_tag UNUSED, jlong size UNUSED, jlong *tag, jint length UNUSED,
    void *data UNUSED) {
    calls++;
    *tag = 0x5a5a5a5a00000000 + calls % 7;
    return (0x7fff7ff1 ^ calls % 3) & ~JVMTI_VISIT_ABORT; /* flags that there are not */
}
static jint JNICALL follow(jvmtiHeapReferenceKind kind UNUSED, const jvmtiHeapReferenceInfo *info UNUSED,
    jlong a UNUSED, jlong b UNUSED,
                          jlong c UNUSED, jlong *tag, jlong *referrer, jint length UNUSED, void *data UNUSED) {
    calls++;
    *tag = -calls;
    if (referrer != NULL) {
        *referrer = INT64_MIN + calls;
    }
    return calls % 2 ? (jint)0x80000001 : 0x7fff; /* not ABORT */
}
static jvmtiIterationControl JNICALL older(jlong class_tag UNUSED, jlong size UNUSED, jlong *tag, void *data UNUSED) {
    *tag = INT64_MIN;
    return (jvmtiIterationControl)(++calls * 1234567);
}
static jvmtiIterationControl JNICALL root(jvmtiHeapRootKind kind UNUSED, jlong a UNUSED, jlong b UNUSED, jlong *tag,
    void *data UNUSED) {
    *tag = ++calls;
    return (jvmtiIterationControl)-5;
}
static jvmtiIterationControl JNICALL stack(jvmtiHeapRootKind kind UNUSED, jlong a UNUSED, jlong b UNUSED, jlong *tag,
    jlong t UNUSED, jint d UNUSED,
                    jmethodID method UNUSED, jint slot UNUSED, void *data UNUSED) {
    *tag = ++calls;
    return (jvmtiIterationControl)77;
}
static jvmtiIterationControl JNICALL object(jvmtiObjectReferenceKind kind UNUSED, jlong a UNUSED, jlong b UNUSED,
    jlong *tag, jlong t UNUSED, jint d UNUSED, void *data UNUSED) {
    *tag = ++calls;
    return (jvmtiIterationControl)-1;
}
static jint JNICALL array(jlong a UNUSED, jlong b UNUSED, jlong *tag, jint n UNUSED, jvmtiPrimitiveType type UNUSED,
    const void *elements UNUSED, void *data UNUSED) {
    *tag = ++calls;
    return 12345;
}
static jint JNICALL string(jlong a UNUSED, jlong b UNUSED, jlong *tag, const jchar *text UNUSED, jint n UNUSED,
    void *data UNUSED) {
    *tag = ++calls;
    return -12345 & ~JVMTI_VISIT_ABORT;
}
static jint JNICALL field(jvmtiHeapReferenceKind kind UNUSED, const jvmtiHeapReferenceInfo *info UNUSED,
    jlong b UNUSED, jlong *tag,
    jvalue value UNUSED, jvmtiPrimitiveType type UNUSED, void *data UNUSED) {
    *tag = ++calls;
    return -2 & ~JVMTI_VISIT_ABORT;
}

static void tell_walk(const char *name, jvmtiError error) {
    say("%s: %d %d", name, error, calls > 3);
    calls = 0;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    jvmtiHeapCallbacks all = {.heap_iteration_callback = iterate, .heap_reference_callback = follow,
                              .array_primitive_value_callback = array, .string_primitive_value_callback = string,
                              .primitive_field_callback = field};
    tell_walk("through", (*ti)->IterateThroughHeap(ti, 0, NULL, &all, NULL));
    tell_walk("through, odd filter", (*ti)->IterateThroughHeap(ti, -1, NULL, &all, NULL));
    tell_walk("follow", (*ti)->FollowReferences(ti, 0, NULL, thread, &all, NULL));
    tell_walk("over", (*ti)->IterateOverHeap(ti, JVMTI_HEAP_OBJECT_EITHER, older, NULL));
    tell_walk("reachable", (*ti)->IterateOverReachableObjects(ti, root, stack, object, NULL));
    tell_walk("from", (*ti)->IterateOverObjectsReachableFromObject(ti, thread, object, NULL));
}

static int begin(char *options) {
    if (strncmp(options, "return=", 7) == 0) {
        return (int)strtol(options + 7, NULL, 0);
    }
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


@pytest.fixture(scope="module")
def garbage(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(GARBAGE, tmp_path_factory.mktemp("agent"))


@pytest.mark.parametrize("status", ["1", "-1", "0x7fffffff", "-2147483648"])
def test_onload_returns_anything(garbage: CAgent, status: str) -> None:
    options = f"return={status}"
    run = garbage.python("", options=options)
    java = garbage.jdk.run("java", "-Xint", f"{garbage.option}={options}", "-version")
    assert (run.returncode, run.stderr.splitlines()) == (1, (java.stdout + java.stderr).splitlines()[:2])
    assert java.returncode == 1


def test_heap_callbacks_return_flags_that_there_are_not_and_tag_everything(garbage: CAgent) -> None:
    found = garbage.lines(options="walk")
    assert found == garbage.java_lines("walk")
    assert found[0] == "through: 0 1"


HOOK = r"""
static void JNICALL hook(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jclass k UNUSED, jobject loader UNUSED,
    const char *name, jobject domain UNUSED,
        jint length UNUSED, const unsigned char *data UNUSED, jint *new_length, unsigned char **new_data) {
    if (name == NULL || strstr(name, "wrong") == NULL) {
        return;
    }
    unsigned char *memory;
    (*ti)->Allocate(ti, 64, &memory);
    memset(memory, 0xe5, 64);
    *new_data = memory;
    *new_length = strstr(name, "negative") ? -7 : strstr(name, "zero") ? 0 : 64;
    if (strstr(name, "null")) { *new_data = NULL; }
    say("changed %s", name);
}
static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_all_class_hook_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.ClassFileLoadHook = hook};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
    return 0;
}
"""


def test_a_hook_that_makes_no_class_file(tmp_path: Path) -> None:
    """The module is loaded as it was, and that is told."""
    names = ["wrong", "wrong_negative", "wrong_zero", "wrong_null"]
    for name in names:
        (tmp_path / f"{name}.py").write_text("value = 42\n")
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        sys.dont_write_bytecode = True
        for name in {names}:
            print(name, __import__(name).value, flush=True)
    """
    run = build(HOOK, tmp_path).python(program)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [line for name in names for line in (f"changed {name}", f"{name} 42")]
    assert "what the hooks made of wrong is not loaded" in run.stderr
    assert "-7 bytes are no class data" in run.stderr


REFERENCES = r"""
#define MANY 1000000

static long kilobytes(void) {
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    int found = fscanf(file, "%ld %ld", &all, &resident);
    fclose(file);
    return found == 2 ? resident * (sysconf(_SC_PAGESIZE) / 1024) : -1;
}

/* Local references to `text`, never deleted: the last one. */
static jobject keep(JNIEnv *jni, jobject text, int many) {
    jobject last = NULL;
    for (int i = 0; i < many; i++) {
        last = (*jni)->NewLocalRef(jni, text);
    }
    return last;
}

static void *attached(void *argument UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    jstring text = (*jni)->NewStringUTF(jni, "kept");
    long before = kilobytes();
    jobject first = keep(jni, text, 1), last = keep(jni, text, MANY);
    SAY("capacity", (*jni)->EnsureLocalCapacity(jni, 16), (*jni)->EnsureLocalCapacity(jni, -1),
        (*jni)->EnsureLocalCapacity(jni, 1000000000), (*jni)->PushLocalFrame(jni, -1));
    SAY("all are there", (*jni)->IsSameObject(jni, first, last), first != last, (*jni)->GetObjectRefType(jni, first),
        (*jni)->GetObjectRefType(jni, last));
    say("at most 32 bytes each: %d", kilobytes() - before < 32 * (MANY / 1000));
    (*jni)->PushLocalFrame(jni, 16);
    keep(jni, text, MANY);
    (*jni)->PopLocalFrame(jni, NULL);
    long full = kilobytes();
    for (int frame = 0; frame < 5; frame++) {
        (*jni)->PushLocalFrame(jni, 16);
        last = keep(jni, text, MANY);
        (*jni)->PopLocalFrame(jni, NULL);
    }
    say("frames give all back: %d", kilobytes() - full < 2000);
    SAY("stale", (*jni)->GetObjectRefType(jni, last), (*jni)->GetObjectRefType(jni, first));
    SAY("detach", (*vm)->DetachCurrentThread(vm));
    return NULL;
}

static void *once(void *argument UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    keep(jni, (*jni)->NewStringUTF(jni, "kept"), 20000);
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    pthread_join(spawn(attached, NULL), NULL);
    pthread_join(spawn(once, NULL), NULL);
    long before = kilobytes();
    for (int i = 0; i < 100; i++) {
        pthread_join(spawn(once, NULL), NULL);
    }
    say("threads give all back: %d", kilobytes() - before < 5000);
    (*jni)->PushLocalFrame(jni, 16); /* never popped */
    keep(jni, thread, MANY);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_local_references_for_ever(tmp_path: Path) -> None:
    agent = build(REFERENCES, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found == [
        "capacity: 0 -1 -1 -1",
        "all are there: 1 1 1 1",
        "at most 32 bytes each: 1",
        "frames give all back: 1",
        "stale: 0 1",
        "detach: 0",
        "threads give all back: 1",
    ]


STALE = r"""
static jthread kept;
static JNIEnv *mains;
static jobject foreign;

static void JNICALL enter(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread, jmethodID method UNUSED) {
    jint state, count;
    if (kept == NULL) {
        kept = thread;
        mains = jni;
        return;
    }
    enable(JVMTI_EVENT_VM_DEATH);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    SAY("an earlier callback's", kept != thread, (*ti)->GetThreadState(ti, kept, &state),
        (*ti)->GetFrameCount(ti, kept, &count), (*ti)->GetObjectHashCode(ti, kept, &count),
        (*jni)->GetObjectRefType(jni, kept), (*ti)->GetThreadState(ti, thread, &state), jni == mains);
}

static void *elsewhere(void *own) {
    JNIEnv *jni;
    jint state;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    SAY("another thread's", (*ti)->GetThreadState(ti, own, &state), (*ti)->GetObjectHashCode(ti, own, &state),
        (*jni)->GetObjectRefType(jni, own), (*jni)->NewGlobalRef(jni, own) == NULL, (*jni)->ExceptionCheck(jni));
    (*jni)->ExceptionClear(jni);
    foreign = (*jni)->NewLocalRef(jni, (*jni)->NewStringUTF(jni, "gone with its thread"));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    jint hash;
    pthread_join(spawn(elsewhere, thread), NULL);
    SAY("an ended thread's", (*ti)->GetObjectHashCode(ti, foreign, &hash), (*jni)->GetObjectRefType(jni, foreign));
    enable(JVMTI_EVENT_METHOD_ENTRY);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.VMInit = init, .MethodEntry = enter};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


@WITH_MONITORING
def test_stale_references_are_found(tmp_path: Path) -> None:
    """HotSpot follows them, wherever they lead."""
    agent = build(STALE, tmp_path)
    lines = agent.lines("def method(): pass\nmethod()\nmethod()")
    assert lines == [
        "another thread's: 10 20 0 1 1",
        "an ended thread's: 20 0",
        "an earlier callback's: 1 10 10 20 0 0 1",
    ]


PENDING = r"""
static jvmtiEnv *other;
static char *where;
static int thrown;

static void leave(JNIEnv *jni, const char *text) {
    jclass error = (*jni)->FindClass(jni, "java/lang/IllegalStateException");
    say("throw %d", (*jni)->ThrowNew(jni, error, text));
}

static void JNICALL run(jvmtiEnv *env UNUSED, JNIEnv *jni, void *arg UNUSED) {
    leave(jni, "thread");
    __atomic_store_n(&thrown, 1, __ATOMIC_SEQ_CST);
}

static void *attached(void *argument UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    leave(jni, where);
    if (strcmp(where, "detach") == 0) {
        say("detach %d", (*vm)->DetachCurrentThread(vm));
    }
    return NULL;
}

static void JNICALL second(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    say("second: pending %d", (*jni)->ExceptionCheck(jni));
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    if (strcmp(where, "thread") == 0) {
        jclass klass = (*jni)->FindClass(jni, "java/lang/Thread");
        jmethodID make = (*jni)->GetMethodID(jni, klass, "<init>", "(Ljava/lang/String;)V");
        jobject own = (*jni)->NewObject(jni, klass, make, (*jni)->NewStringUTF(jni, "own"));
        say("run %d", (*ti)->RunAgentThread(ti, own, run, NULL, 5));
        while (__atomic_load_n(&thrown, __ATOMIC_SEQ_CST) == 0) {
            nap(1);
        }
        nap(200); /* for it to end */
    } else if (strcmp(where, "init") == 0) {
        leave(jni, "init");
    } else if (strcmp(where, "attach") == 0 || strcmp(where, "detach") == 0) {
        pthread_join(spawn(attached, NULL), NULL);
    }
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni) {
    say("death: pending %d", (*jni)->ExceptionCheck(jni));
    if (strcmp(where, "death") == 0) {
        leave(jni, "death");
    }
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    JNIEnv *jni;
    say("unload");
    if (strcmp(where, "unload") == 0 && (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10) == JNI_OK) {
        leave(jni, "unload");
    }
}

static int begin(char *options) {
    where = strdup(options);
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = death}, others = {.VMInit = second};
    (*vm)->GetEnv(vm, (void **)&other, JVMTI_VERSION_11);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    (*other)->SetEventCallbacks(other, &others, sizeof others);
    (*other)->SetEventNotificationMode(other, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    JNIEnv *jni;
    if (strcmp(where, "start") == 0 && (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10) == JNI_OK) {
        leave(jni, "start");
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def pending(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(PENDING, tmp_path_factory.mktemp("agent"))


def left(agent: CAgent, where: str, said: str) -> list[str]:
    """What it prints; its complaint is `said`, of the agent or of one without a name."""
    run = agent.python("print('program', flush=True)", options=where)
    assert run.returncode == 0, run.stderr
    name = "without a name" if where in ("attach", "detach") else agent.library
    assert run.stderr.splitlines()[0] == f"agent {name}: {said} left an exception pending"
    assert run.stderr.splitlines()[-1] == f"RuntimeError: {where}"
    return run.stdout.splitlines()


@pytest.mark.parametrize(("where", "said"), [("thread", "thread"), ("detach", "thread"), ("death", "VM_DEATH")])
def test_an_exception_left_pending_is_told_and_gone(pending: CAgent, where: str, said: str) -> None:
    found = left(pending, where, said)
    assert "program" in found
    assert sorted(line for line in found if line != "program") == sorted(pending.java_lines(where))


@pytest.mark.parametrize(
    ("where", "said"),
    [("init", "VM_INIT"), ("attach", "thread"), ("unload", "Agent_OnUnload")],
)
def test_so_is_one_that_hotspot_dies_of_or_waits_for(pending: CAgent, where: str, said: str) -> None:
    found = left(pending, where, said)
    assert found[-3:] == ["program", "death: pending 0", "unload"] or where == "unload"
    assert "second: pending 0" in found


def test_one_that_onattach_leaves(pending: CAgent) -> None:
    run = pending.python(
        f"""
        from vmscope import tool
        tool.load_agent({str(pending.library)!r}, "start")
    """,
        options="none",
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines()[0] == f"agent {pending.library}: Agent_OnAttach left an exception pending"
    assert run.stdout.splitlines().count("death: pending 0") == 2
