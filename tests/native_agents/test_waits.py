"""Native agents whose threads and callbacks wait for one another: with raw monitors, the GIL and the collector.

A deadlock is found by the time limit of every run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.c_agents import build

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring: no MethodEntry")

EIGHT = r"""
/* Four threads of the agent's, two of each kind; four of the program's come by MethodEntry; collections and freed
 * objects come on all. `a` is entered before `b`. */
#define ROUNDS 400
static jrawMonitorID a, b;
static int left = 4, entries, collections, freed, in_a;

static void visit(void) {
    if (__atomic_add_fetch(&in_a, 1, __ATOMIC_SEQ_CST) != 1) {
        say("two are in a");
    }
    __atomic_sub_fetch(&in_a, 1, __ATOMIC_SEQ_CST);
}

static void knock(int *counter) {
    (*ti)->RawMonitorEnter(ti, a);
    visit();
    *counter += 1;
    (*ti)->RawMonitorNotify(ti, a);
    (*ti)->RawMonitorExit(ti, a);
}

static void work(JNIEnv *jni) {
    for (int round = 0; round < ROUNDS; round++) {
        jint count;
        jthread *threads;
        (*ti)->RawMonitorEnter(ti, a);
        visit();
        jobject list = (*jni)->NewIntArray(jni, 10); /* needs the GIL, which a thread may have that waits for `a` */
        (*ti)->SetTag(ti, list, 1);
        (*jni)->DeleteLocalRef(jni, list); /* it is freed here */
        (*ti)->RawMonitorEnter(ti, b);
        if (round % 20 == 0 && (*ti)->GetAllThreads(ti, &count, &threads) == 0) {
            for (int i = 0; i < count; i++) {
                (*jni)->DeleteLocalRef(jni, threads[i]);
            }
            (*ti)->Deallocate(ti, (unsigned char *)threads);
        }
        (*ti)->RawMonitorNotifyAll(ti, b);
        (*ti)->RawMonitorExit(ti, b);
        (*ti)->RawMonitorWait(ti, a, 1 + round % 3);
        visit();
        (*ti)->RawMonitorExit(ti, a);
        (*ti)->RawMonitorEnter(ti, b);
        (*ti)->RawMonitorWait(ti, b, 1);
        (*ti)->RawMonitorExit(ti, b);
    }
    (*ti)->RawMonitorEnter(ti, b);
    left--;
    (*ti)->RawMonitorNotifyAll(ti, b);
    (*ti)->RawMonitorExit(ti, b);
}

static void JNICALL agent_thread(jvmtiEnv *env UNUSED, JNIEnv *jni, void *ignored UNUSED) {
    work(jni);
}

static void *attached(void *ignored UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    work(jni);
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL entry(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method UNUSED) {
    knock(&entries);
}

static void JNICALL collected(jvmtiEnv *env UNUSED) {
    knock(&collections);
}

static void JNICALL object_free(jvmtiEnv *env UNUSED, jlong tag UNUSED) {
    knock(&freed);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread main UNUSED) {
    jclass type = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID made = (*jni)->GetMethodID(jni, type, "<init>", "(Ljava/lang/String;)V");
    for (int i = 0; i < 2; i++) {
        jobject thread = (*jni)->NewObject(jni, type, made, (*jni)->NewStringUTF(jni, "worker"));
        (*ti)->RunAgentThread(ti, thread, agent_thread, NULL, 5);
        spawn(attached, NULL);
    }
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
    enable(JVMTI_EVENT_OBJECT_FREE);
    enable(JVMTI_EVENT_METHOD_ENTRY);
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    (*ti)->RawMonitorEnter(ti, b);
    while (left > 0) {
        (*ti)->RawMonitorWait(ti, b, 0);
    }
    (*ti)->RawMonitorExit(ti, b);
    SAY("all have come", entries >= 4000, collections >= 20, freed >= 1000);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {
        .VMInit = init, .VMDeath = death, .MethodEntry = entry, .GarbageCollectionStart = collected,
        .GarbageCollectionFinish = collected, .ObjectFree = object_free};
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1,
                                .can_generate_garbage_collection_events = 1,
                                .can_generate_object_free_events = 1,
                                .can_tag_objects = 1};
    if ((*ti)->AddCapabilities(ti, &wanted) != 0) {
        return 1;
    }
    (*ti)->CreateRawMonitor(ti, "a", &a);
    (*ti)->CreateRawMonitor(ti, "b", &b);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""


@needs_monitoring
def test_eight_threads_and_the_collector_share_raw_monitors(tmp_path: Path) -> None:
    program = """
        import gc, threading
        def step(kinds):
            kinds.append(type("Thing", (), {}))  # each in a cycle with itself
        def work():
            for _ in range(20):
                kinds = []
                for _ in range(50):
                    step(kinds)
                kinds.clear()
                gc.collect()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    """
    assert build(EIGHT, tmp_path).lines(program) == ["all have come: 1 1 1"]


CALLBACK = r"""
/* A callback waits for a thread that needs the GIL before it can go on: in MethodEntry, where the GIL is kept, and in
 * ThreadEnd, where it is not; waiting, in turn, in a monitor and for one. */
static jrawMonitorID m;
static int asked, answered;

static void *helper(void *ignored UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&jni, NULL);
    (*ti)->RawMonitorEnter(ti, m);
    for (;;) {
        while (answered == asked) {
            (*ti)->RawMonitorWait(ti, m, 0);
        }
        jstring text = (*jni)->NewStringUTF(jni, "with the GIL");
        answered += (*jni)->GetStringLength(jni, text) == 12;
        (*jni)->DeleteLocalRef(jni, text);
        (*ti)->RawMonitorNotifyAll(ti, m);
    }
    return NULL;
}

static void *holder(void *held) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    (*ti)->RawMonitorEnter(ti, m);
    __atomic_store_n((int *)held, 1, __ATOMIC_SEQ_CST);
    nap(20); /* long enough for the callback to wait */
    jclass type = (*jni)->FindClass(jni, "java/lang/String");
    SAY("the holder", type != NULL, (*ti)->RawMonitorExit(ti, m));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void ask(const char *where, jlong millis) {
    (*ti)->RawMonitorEnter(ti, m);
    int wanted = ++asked;
    (*ti)->RawMonitorNotifyAll(ti, m);
    while (answered < wanted) {
        (*ti)->RawMonitorWait(ti, m, millis);
    }
    SAY(where, answered == asked, (*ti)->RawMonitorExit(ti, m));
}

static void contend(const char *where) {
    int held = 0;
    spawn(holder, &held);
    SAY(where, (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorExit(ti, m));
    while (!__atomic_load_n(&held, __ATOMIC_SEQ_CST)) { /* it had not come yet: it gets the monitor in any case */
        (*ti)->RawMonitorEnter(ti, m);
        (*ti)->RawMonitorWait(ti, m, 1);
        (*ti)->RawMonitorExit(ti, m);
    }
    (*ti)->RawMonitorEnter(ti, m);
    SAY("then", (*ti)->RawMonitorExit(ti, m));
}

static void JNICALL entry(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method) {
    char *name = NULL;
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    int asks = strcmp(name, "asks") == 0, contends = strcmp(name, "contends") == 0;
    (*ti)->Deallocate(ti, (unsigned char *)name);
    if (asks) {
        ask("an entry", 0);
        ask("with a limit", 5);
    } else if (contends) {
        contend("a contended entry");
    }
}

static void JNICALL ended(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    if (strcmp(info.name, "worker") == 0) {
        ask("an end", 0);
    }
}

static int begin(char *options) {
    jvmtiEventCallbacks callbacks = {.MethodEntry = entry, .ThreadEnd = ended};
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_THREAD_END);
    if (strcmp(options, "entries") == 0) {
        (*ti)->AddCapabilities(ti, &wanted);
        enable(JVMTI_EVENT_METHOD_ENTRY);
    }
    spawn(helper, NULL);
    return 0;
}
"""

WORKER = """
import threading
def asks(): pass
def contends(): pass
threading.Thread(target=asks, name="worker").start()
"""


@needs_monitoring
def test_a_callback_with_the_gil_waits_for_a_thread_that_needs_it(tmp_path: Path) -> None:
    found = build(CALLBACK, tmp_path).lines(WORKER + "contends()", options="entries")
    assert sorted(found) == sorted(
        ["an entry: 1 0", "with a limit: 1 0", "an end: 1 0", "the holder: 1 0", "a contended entry: 0 0", "then: 0"]
    )


def test_a_callback_without_the_gil_waits_for_a_thread_that_needs_it(tmp_path: Path) -> None:
    assert build(CALLBACK, tmp_path).lines(WORKER) == ["an end: 1 0"]
