"""Callbacks of the collector and of freed objects, which wait for threads of the agent's, and notify them.

A deadlock is found by the time limit of every run.
"""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

COLLECTOR = r"""
static jrawMonitorID m;
static int begun, over, gone;
static jclass type;

static void functions(const char *where) {
    jthread thread;
    jlong number;
    jint state;
    void *data;
    unsigned char *memory = NULL;
    JNIEnv *jni;
    SAY(where, (*ti)->Allocate(ti, 8, &memory), (*ti)->Deallocate(ti, memory), (*ti)->GetTime(ti, &number),
        (*ti)->SetEnvironmentLocalStorage(ti, &m), (*ti)->GetEnvironmentLocalStorage(ti, &data), data == &m);
    SAY("not there", (*ti)->GetCurrentThread(ti, &thread), (*ti)->GetTag(ti, type, &number),
        (*ti)->ForceGarbageCollection(ti), (*ti)->GetThreadState(ti, NULL, &state),
        (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10));
}

static void knock(int *counter, const char *where) {
    int first = *counter == 0;
    (*ti)->RawMonitorEnter(ti, m);
    *counter += 1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
    if (first) {
        functions(where);
    }
}

static void JNICALL start(jvmtiEnv *env UNUSED) {
    knock(&begun, "start");
}

static void JNICALL finish(jvmtiEnv *env UNUSED) {
    knock(&over, "finish");
}

static void JNICALL object_free(jvmtiEnv *env UNUSED, jlong tag) {
    if (tag == 7) {
        knock(&gone, "free");
    }
}

static void JNICALL waits(jvmtiEnv *env UNUSED, JNIEnv *jni, void *ignored UNUSED) {
    (*ti)->RawMonitorEnter(ti, m);
    jobject thing = (*jni)->NewIntArray(jni, 1);
    (*ti)->SetTag(ti, thing, 7);
    (*jni)->DeleteLocalRef(jni, thing);
    while (!begun || !over || !gone) {
        (*ti)->RawMonitorExit(ti, m);
        (*ti)->ForceGarbageCollection(ti);
        (*ti)->RawMonitorEnter(ti, m);
        if (!begun || !over || !gone) {
            (*ti)->RawMonitorWait(ti, m, 10);
        }
    }
    begun = -1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread main UNUSED) {
    jclass thread = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID made = (*jni)->GetMethodID(jni, thread, "<init>", "(Ljava/lang/String;)V");
    type = (*jni)->NewGlobalRef(jni, thread);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
    enable(JVMTI_EVENT_OBJECT_FREE);
    jobject worker = (*jni)->NewObject(jni, thread, made, (*jni)->NewStringUTF(jni, "waits"));
    (*ti)->RunAgentThread(ti, worker, waits, NULL, 5);
    (*ti)->RawMonitorEnter(ti, m);
    while (begun >= 0) {
        (*ti)->RawMonitorWait(ti, m, 0);
    }
    (*ti)->RawMonitorExit(ti, m);
    say("woken");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .GarbageCollectionStart = start, .GarbageCollectionFinish = finish,
                                     .ObjectFree = object_free};
    jvmtiCapabilities wanted = {.can_generate_garbage_collection_events = 1,
                                .can_generate_object_free_events = 1,
                                .can_tag_objects = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_callbacks_of_the_collector_notify_a_thread_that_waits(tmp_path: Path) -> None:
    found = build(COLLECTOR, tmp_path).lines()
    forbidden = "not there: 115 115 115 115 -2"
    assert found[-1] == "woken"
    allowed = [f"{each}: 0 0 0 0 0 1" for each in ("start", "finish", "free")]
    assert sorted(found[:-1]) == sorted(allowed + [forbidden] * 3)


LOCKS = r"""
/* Threads that call what takes locks of the VM's, two with the monitor that the collector's callbacks enter, two
 * without. Objects are freed, and garbage is collected, in the middle of that. */
static jrawMonitorID m;
static int collections, freed, left = 4;

static void knock(int *counter) {
    (*ti)->RawMonitorEnter(ti, m);
    *counter += 1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
}

static void JNICALL collected(jvmtiEnv *env UNUSED) {
    knock(&collections);
}

static void JNICALL object_free(jvmtiEnv *env UNUSED, jlong tag UNUSED) {
    knock(&freed);
}

static void *calls(void *holds) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    for (int round = 0; round < 300; round++) {
        jint count;
        jthread *threads;
        if (holds != NULL) {
            (*ti)->RawMonitorEnter(ti, m);
        }
        (*ti)->SetEventNotificationMode(ti, round % 2, JVMTI_EVENT_CLASS_PREPARE, NULL);
        jobject list = (*jni)->NewIntArray(jni, 10);
        (*ti)->SetTag(ti, list, 1);
        (*jni)->DeleteLocalRef(jni, list);
        (*ti)->GetAllThreads(ti, &count, &threads);
        for (int i = 0; i < count; i++) {
            (*jni)->DeleteLocalRef(jni, threads[i]);
        }
        (*ti)->Deallocate(ti, (unsigned char *)threads);
        jobject text = (*jni)->NewStringUTF(jni, "its monitor");
        (*jni)->MonitorEnter(jni, text);
        (*jni)->MonitorExit(jni, text);
        (*jni)->DeleteLocalRef(jni, text);
        if (holds != NULL) {
            (*ti)->RawMonitorExit(ti, m);
        }
        if (round % 10 == 0) {
            (*vm)->DetachCurrentThread(vm);
            (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
        }
    }
    (*vm)->DetachCurrentThread(vm);
    (*ti)->RawMonitorEnter(ti, m);
    left--;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
    return NULL;
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
    enable(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
    enable(JVMTI_EVENT_OBJECT_FREE);
    for (intptr_t i = 0; i < 4; i++) {
        spawn(calls, (void *)(i % 2));
    }
    (*ti)->RawMonitorEnter(ti, m);
    while (left > 0) {
        (*ti)->RawMonitorWait(ti, m, 0);
    }
    (*ti)->RawMonitorExit(ti, m);
    SAY("done", collections > 10, freed);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = death, .GarbageCollectionStart = collected,
                                     .GarbageCollectionFinish = collected, .ObjectFree = object_free};
    jvmtiCapabilities wanted = {.can_generate_garbage_collection_events = 1,
                                .can_generate_object_free_events = 1,
                                .can_tag_objects = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""


def test_callbacks_of_the_collector_do_not_come_while_a_lock_of_ours_is_held(tmp_path: Path) -> None:
    assert build(LOCKS, tmp_path).lines("import gc; gc.set_threshold(20)") == ["done: 1 1200"]
