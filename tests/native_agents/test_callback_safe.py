"""What JVM TI calls callback-safe works in callbacks of heap walks and of collections, as in a JVM."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

SAFE = r"""
#include <stdatomic.h>
static jrawMonitorID m;
static atomic_int holds, asked;
static int waits;

static void *holder(void *ignored) {
    unsigned char *memory;
    (*ti)->RawMonitorEnter(ti, m);
    holds = 1;
    while (!asked) {
        nap(1);
    }
    (*ti)->Allocate(ti, 10, &memory);
    (*ti)->Deallocate(ti, memory);
    (*ti)->RawMonitorExit(ti, m);
    return ignored;
}

static int wait_for_another(void) {
    holds = asked = 0;
    pthread_t other = spawn(holder, NULL);
    while (!holds) {
        nap(1);
    }
    asked = 1;
    int entered = (*ti)->RawMonitorEnter(ti, m);
    pthread_join(other, NULL);
    return entered + (*ti)->RawMonitorExit(ti, m);
}

static void safe(const char *where) {
    static char before[1000];
    if (strstr(before, where) != NULL) {
        return;
    }
    strcat(before, where);
    jrawMonitorID own = NULL;
    jvmtiTimerInfo info, current;
    jlong time = -1;
    unsigned char *memory = NULL;
    void *data = NULL;
    char *name;
    say("  %s", where);
    if (waits) {
        SAY("another's monitor", wait_for_another());
        return;
    }
    SAY("monitors", (*ti)->CreateRawMonitor(ti, "own", &own), (*ti)->RawMonitorEnter(ti, own),
        (*ti)->RawMonitorNotify(ti, own), (*ti)->RawMonitorNotifyAll(ti, own), (*ti)->RawMonitorWait(ti, own, 1),
        (*ti)->RawMonitorExit(ti, own), (*ti)->DestroyRawMonitor(ti, own));
    SAY("memory", (*ti)->Allocate(ti, 10, &memory), (*ti)->Deallocate(ti, memory));
    SAY("storage", (*ti)->SetEnvironmentLocalStorage(ti, "data"), (*ti)->GetEnvironmentLocalStorage(ti, &data));
    SAY("timer", (*ti)->GetTimerInfo(ti, &info), info.kind, (*ti)->GetTime(ti, &time), time > 0);
    SAY("processor time", (*ti)->GetCurrentThreadCpuTimerInfo(ti, &current), current.kind, current.may_skip_forward,
        current.may_skip_backward);
    time = -1;
    int got = (*ti)->GetCurrentThreadCpuTime(ti, &time);
    SAY("processor time", got, time > 0);
    SAY("null", (*ti)->GetCurrentThreadCpuTime(ti, NULL), (*ti)->GetCurrentThreadCpuTimerInfo(ti, NULL));
    if (strcmp(where, "free") != 0) { /* in a JVM on a thread of its own's, which may call them all */
        SAY("not safe", (*ti)->GetThreadCpuTime(ti, NULL, &time), (*ti)->GetThreadCpuTimerInfo(ti, &info),
            (*ti)->GetErrorName(ti, 0, &name));
    }
}

static void JNICALL start(jvmtiEnv *env UNUSED) {
    safe("start");
}

static void JNICALL finish(jvmtiEnv *env UNUSED) {
    safe("finish");
}

static void JNICALL object_free(jvmtiEnv *env UNUSED, jlong tag UNUSED) {
    safe("free");
}

static jint JNICALL object(jlong of UNUSED, jlong size UNUSED, jlong *tag UNUSED, jint length UNUSED,
                           void *data UNUSED) {
    safe("iteration");
    return JVMTI_VISIT_ABORT;
}

static jvmtiIterationControl JNICALL old(jlong of UNUSED, jlong size UNUSED, jlong *tag UNUSED, void *data UNUSED) {
    safe("heap");
    return JVMTI_ITERATION_ABORT;
}

static jint JNICALL reference(jvmtiHeapReferenceKind kind UNUSED, const jvmtiHeapReferenceInfo *info UNUSED,
                              jlong of UNUSED, jlong from UNUSED, jlong size UNUSED, jlong *tag UNUSED,
                              jlong *referrer UNUSED, jint length UNUSED, void *data UNUSED) {
    safe("reference");
    return JVMTI_VISIT_ABORT;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    static const jvmtiHeapCallbacks objects = {.heap_iteration_callback = object},
                                    references = {.heap_reference_callback = reference};
    (*ti)->IterateThroughHeap(ti, 0, NULL, &objects, NULL);
    (*ti)->IterateOverHeap(ti, JVMTI_HEAP_OBJECT_EITHER, old, NULL);
    (*ti)->FollowReferences(ti, 0, NULL, NULL, &references, NULL);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
    (*ti)->ForceGarbageCollection(ti);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_GARBAGE_COLLECTION_START, NULL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, NULL);
    enable(JVMTI_EVENT_OBJECT_FREE);
    jobject thing = (*jni)->NewIntArray(jni, 1);
    (*ti)->SetTag(ti, thing, 7);
    (*jni)->DeleteLocalRef(jni, thing);
    (*ti)->ForceGarbageCollection(ti);
}

static void JNICALL none(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
}

static int begin(char *options) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .GarbageCollectionStart = start, .GarbageCollectionFinish = finish,
                                     .ObjectFree = object_free, .VMDeath = none};
    jvmtiCapabilities wanted = {.can_generate_garbage_collection_events = 1,
                                .can_generate_object_free_events = 1,
                                .can_tag_objects = 1,
                                .can_get_current_thread_cpu_time = 1,
                                .can_get_thread_cpu_time = 1};
    waits = strcmp(options, "waits") == 0;
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH); /* before it the JVM tells of what has been freed */
    return 0;
}
"""
PLACES = ("iteration", "heap", "reference", "start", "finish", "free")


def test_callback_safe_functions_work_where_nothing_else_does(tmp_path: Path) -> None:
    agent = build(SAFE, tmp_path)
    found = agent.lines()
    assert [line.strip() for line in found if line.startswith(" ")] == [*PLACES]
    assert found[1:8] == [
        "monitors: 0 0 0 0 0 0 0",
        "memory: 0 0",
        "storage: 0 0",
        "timer: 0 32 0 1",
        "processor time: 0 31 0 0",
        "processor time: 0 1",
        "null: 100 100",
    ]
    assert found == agent.java_lines()


def test_a_raw_monitor_of_another_thread_s_is_waited_for(tmp_path: Path) -> None:
    """HotSpot 17 fails an assertion of its own there: `guarantee(_recursions == 0)`."""
    found = build(SAFE, tmp_path).lines(options="waits")
    assert found == [line for place in PLACES for line in (f"  {place}", "another's monitor: 0")]
