"""Native agents at the end: calls after the VM's death, and from threads that it does not know;
libraries unloaded under
threads that run. Beside HotSpot, where that stands it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import programs
from tests.c_agents import WITH_MONITORING, CAgent, build

UNKNOWN = r"""
static JNIEnv *mains;
static jclass klass;
static jobject local;
static jrawMonitorID m;
static int entries, full; /* full: what HotSpot dies of, too */

static void *unattached(void *name) {
    jvmtiPhase phase;
    unsigned char *memory;
    jint number;
    jthread *threads;
    jlong time;
    char *text;
    void *storage;
    JNIEnv *jni = NULL;
    jvmtiEnv *more;
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    SAY(name, (*ti)->GetPhase(ti, &phase), (*ti)->Allocate(ti, 8, &memory), (*ti)->Deallocate(ti, memory),
      (*ti)->GetAllThreads(ti, &number, &threads), (*ti)->GetTime(ti, &time), (*ti)->GetErrorName(ti, 10, &text),
      (*ti)->GetVersionNumber(ti, &number), (*ti)->GetEnvironmentLocalStorage(ti, &storage),
          (*ti)->SetEnvironmentLocalStorage(ti, NULL), (*ti)->GetCurrentThread(ti, threads),
      (*ti)->GetObjectHashCode(ti, klass, &number), (*ti)->AddCapabilities(ti, &wanted), (*ti)->GetCapabilities(ti,
          &wanted),
      (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL), (*ti)->ForceGarbageCollection(ti),
      (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorExit(ti, m),
      (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10), full ? (*vm)->GetEnv(vm, (void **)&more, JVMTI_VERSION_11) : 0);
    return NULL;
}

static void *jni_foreign(void *name) {
    /* what a JVM may die of */
    jint total = 0;
    total += (*mains)->FindClass(mains, "java/lang/String") == NULL;
    total += (*mains)->NewGlobalRef(mains, local) == NULL;
    total += (*mains)->GetObjectClass(mains, local) == NULL;
    total += (*mains)->NewStringUTF(mains, "x") == NULL;
    total += (*mains)->GetMethodID(mains, klass, "x", "()V") == NULL;
    total += (*mains)->NewIntArray(mains, 3) == NULL;
    total += (*mains)->ExceptionCheck(mains) == 0;
    total += (*mains)->ExceptionOccurred(mains) == NULL;
    (*mains)->ExceptionClear(mains);
    (*mains)->ExceptionDescribe(mains);
    (*mains)->DeleteGlobalRef(mains, klass);
    (*mains)->DeleteLocalRef(mains, local);
    total += (*mains)->PushLocalFrame(mains, 3) != 0;
    total += (*mains)->PopLocalFrame(mains, NULL) == NULL;
    total += (*mains)->MonitorEnter(mains, klass) != 0;
    total += (*mains)->GetStringUTFChars(mains, (jstring)local, NULL) == NULL;
    total += (*mains)->GetPrimitiveArrayCritical(mains, (jarray)local, NULL) == NULL;
    total += (*mains)->CallIntMethod(mains, local, (jmethodID)13) == 0;
    total += (*mains)->NewDirectByteBuffer(mains, &total, 4) == NULL;
    total += (*mains)->IsSameObject(mains, local, klass);
    total += (*mains)->GetVersion(mains) > 0;
    say("%s: JNI %d", (char *)name, total);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    mains = jni;
    local = thread;
    klass = (*jni)->NewGlobalRef(jni, (*jni)->FindClass(jni, "java/lang/Thread"));
    (*ti)->CreateRawMonitor(ti, "m", &m);
    pthread_join(spawn(unattached, "unattached"), NULL);
    if (full) {
        pthread_join(spawn(jni_foreign, "unattached"), NULL);
    }
    say("there %d", (*jni)->IsSameObject(jni, klass, NULL));
}

static void late(void) {
    JNIEnv *jni;
    if (full) {
        unattached("atexit");
        jni_foreign("atexit");
        SAY("attach", (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL), (*vm)->DetachCurrentThread(vm));
        pthread_join(spawn(unattached, "atexit thread"), NULL);
        pthread_join(spawn(jni_foreign, "atexit thread"), NULL);
    }
}

__attribute__((destructor)) static void gone(void) {
    if (full) {
        unattached("destructor");
        jni_foreign("destructor");
    }
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    pthread_join(spawn(unattached, "dead, unattached"), NULL);
    unattached("dead");
    if (full) {
        jni_foreign("dead");
        pthread_join(spawn(jni_foreign, "dead, unattached"), NULL);
    }
}

static void JNICALL enter(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread, jmethodID method UNUSED) {
    entries += (*jni)->IsSameObject(jni, thread, thread);
}

static void JNICALL gc(jvmtiEnv *env UNUSED) {
    jlong time;
    entries += (*ti)->GetTime(ti, &time) == 0;
}

static int begin(char *options) {
    full = strcmp(options, "full") == 0;
    atexit(late);
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1, .can_generate_garbage_collection_events = 1};
    jvmtiEventCallbacks callbacks = {.VMInit = init, .MethodEntry = enter, .GarbageCollectionStart = gc};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    if (full) {
        (*ti)->AddCapabilities(ti, &wanted);
        enable(JVMTI_EVENT_METHOD_ENTRY);
        enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(UNKNOWN, tmp_path_factory.mktemp("agent"))


def test_calls_from_unattached_threads_and_after_death(unknown: CAgent) -> None:
    found = unknown.lines()
    assert found == unknown.java_lines()
    assert found == [
        "unattached: 115 0 0 115 0 115 115 0 0 115 115 115 115 115 115 0 0 -2 0",
        "there 0",
        "dead, unattached: 115 0 0 112 0 115 115 0 0 112 112 112 115 112 112 0 0 -2 0",
        "dead: 0 0 0 112 0 0 0 0 0 112 112 112 0 112 112 0 0 0 0",
    ]


AT_THE_END = programs.source("native_ends/at_the_end")


@pytest.mark.parametrize("checks", [(), ("-Xcheck:jni",)], ids=["plain", "checked"])
def test_calls_in_any_thread_at_any_time(unknown: CAgent, checks: tuple[str, ...]) -> None:
    """Of all that HotSpot would die of nothing happens; in exit handlers and destructors neither."""
    run = unknown.python(AT_THE_END, options="full", before=checks)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    gone = "115 0 0 112 0 115 115 0 0 112 112 112 115 112 112 0 0 -2 -2"
    for where in ("dead, unattached", "atexit", "atexit thread", "destructor"):
        assert f"{where}: {gone}" in lines
        assert f"{where}: JNI 15" in lines
    assert "unattached: JNI 15" in lines
    assert "attach: -1 0" in lines
    assert "Fatal" not in run.stderr


UNLOAD = r"""
static jrawMonitorID m, never;
static JNIEnv *mains;
static jclass klass;
static int running;

static void up(void) {
    __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static void JNICALL waits(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, void *arg UNUSED) {
    (*ti)->RawMonitorEnter(ti, m);
    up();
    (*ti)->RawMonitorWait(ti, m, 0);
    (*ti)->RawMonitorExit(ti, m);
}

static void JNICALL blocked(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, void *arg UNUSED) {
    up();
    (*ti)->RawMonitorEnter(ti, never);
}

static void *calls(void *argument UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&jni, NULL);
    for (int i = 0;; i++) {
        jint number;
        jthread *threads;
        if ((*ti)->GetAllThreads(ti, &number, &threads) == 0) {
            (*ti)->Deallocate(ti, (unsigned char *)threads);
        }
        (*jni)->PushLocalFrame(jni, 8);
        (*jni)->FindClass(jni, "java/lang/String");
        (*jni)->PopLocalFrame(jni, NULL);
        if (i == 10) {
            up();
        }
    }
    return NULL;
}

static void *foreign(void *argument UNUSED) {
    for (int i = 0;; i++) {
        jint number;
        jthread *threads;
        unsigned char *memory;
        (*ti)->Allocate(ti, 100, &memory);
        (*ti)->Deallocate(ti, memory);
        (*ti)->GetAllThreads(ti, &number, &threads);
        if (i == 10) {
            up();
        }
    }
    return NULL;
}

static jthread make(JNIEnv *jni) {
    jmethodID make = (*jni)->GetMethodID(jni, klass, "<init>", "()V");
    return (*jni)->NewObject(jni, klass, make);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    mains = jni;
    klass = (*jni)->NewGlobalRef(jni, (*jni)->FindClass(jni, "java/lang/Thread"));
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->CreateRawMonitor(ti, "never", &never);
    (*ti)->RawMonitorEnter(ti, never);
    say("run %d", (*ti)->RunAgentThread(ti, make(jni), waits, NULL, 5));
    say("run %d", (*ti)->RunAgentThread(ti, make(jni), blocked, NULL, 5));
    spawn(calls, NULL);
    spawn(foreign, NULL);
    while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) < 4) {
        nap(1);
    }
    say("all run");
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    say("death");
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    jclass found = (*mains)->FindClass(mains, "java/lang/String");
    say("find %d", found != NULL);
    say("dispose %d", (*ti)->DisposeEnvironment(ti));
    nap(50);
    say("unloaded");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""


def test_unloaded_while_its_threads_run(tmp_path: Path) -> None:
    """Of the agent's own: one that waits in a raw monitor, one that waits for one, one that calls, one not attached."""
    agent = build(UNLOAD, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found == ["run 0", "run 0", "all run", "death", "find 1", "dispose 0", "unloaded"]


UNLOAD_UNDER_CALLBACKS = r"""
static jrawMonitorID m;
static int inside, counted, dead, late;

static void JNICALL enter(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED, jmethodID method) {
    char *name = NULL;
    late += __atomic_load_n(&dead, __ATOMIC_SEQ_CST); /* those that are in here already may go on */
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    if (name != NULL && strcmp(name, "stuck") == 0) {
        __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        (*ti)->RawMonitorEnter(ti, m);
        say("let in");
    }
    (*ti)->Deallocate(ti, (unsigned char *)name);
    counted += (*jni)->IsSameObject(jni, thread, thread);
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) < 2) {
        nap(1);
    }
    say("death");
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    __atomic_store_n(&dead, 1, __ATOMIC_SEQ_CST);
    nap(50);
    say("unload: %d", late);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->RawMonitorEnter(ti, m); /* for good */
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.MethodEntry = enter, .VMDeath = death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_METHOD_ENTRY);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""

IN_CALLBACKS = programs.source("native_ends/in_callbacks")


@WITH_MONITORING
def test_unloaded_while_the_program_s_threads_are_in_its_callbacks(tmp_path: Path) -> None:
    """Two stay in a raw monitor for good, two go on calling functions, whose events end with the VM's death."""
    assert build(UNLOAD_UNDER_CALLBACKS, tmp_path).lines(IN_CALLBACKS) == ["death", "unload: 0"]
