"""Environments of native agents that are disposed of in callbacks: their own, others,
under threads that are in them."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import WITH_MONITORING, build

DISPOSE = r"""
static jvmtiEnv *other, *late;
static jrawMonitorID m;

static void after(const char *name, jvmtiEnv *env, jthread thread) {
    unsigned char *memory = NULL;
    void *data;
    jint number;
    jlong time;
    char *text;
    jthread *threads;
    jvmtiPhase phase;
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    jvmtiEventCallbacks callbacks = {.VMDeath = NULL};
    jrawMonitorID made;
    SAY(name, (*env)->GetPhase(env, &phase), (*env)->Allocate(env, 8, &memory), (*env)->Deallocate(env, NULL),
        (*env)->GetVersionNumber(env, &number), (*env)->GetEnvironmentLocalStorage(env, &data),
        (*env)->SetEnvironmentLocalStorage(env, NULL), (*env)->GetTime(env, &time), (*env)->GetErrorName(env, 1, &text),
        (*env)->CreateRawMonitor(env, "n", &made), (*env)->RawMonitorEnter(env, m), (*env)->RawMonitorExit(env, m),
        (*env)->AddCapabilities(env, &wanted), (*env)->GetCapabilities(env, &wanted),
        (*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks),
        (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL),
        (*env)->GetAllThreads(env, &number, &threads), (*env)->GetFrameCount(env, thread, &number),
        (*env)->SetTag(env, thread, 1), (*env)->DisposeEnvironment(env));
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    say("a disposed one's VMDeath");
}

static void JNICALL late_death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    say("the late one's VMDeath");
}

static void JNICALL other_init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED) {
    say("the other one's VMInit");
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    jvmtiEventCallbacks callbacks = {.VMDeath = late_death};
    (*ti)->CreateRawMonitor(ti, "m", &m);
    say("other %d", (*other)->DisposeEnvironment(other));
    after("other", other, thread);
    say("own %d", (*ti)->DisposeEnvironment(ti));
    after("own", ti, thread);
    (*vm)->GetEnv(vm, (void **)&late, JVMTI_VERSION_11);
    (*late)->SetEventCallbacks(late, &callbacks, sizeof callbacks);
    say("late %d", (*late)->SetEventNotificationMode(late, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL));
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = death}, others = {.VMInit = other_init,
        .VMDeath = death};
    (*vm)->GetEnv(vm, (void **)&other, JVMTI_VERSION_11);
    say("%d", (*ti)->AddCapabilities(ti, &wanted));
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    (*other)->SetEventCallbacks(other, &others, sizeof others);
    for (int i = 0; i < 2; i++) {
        jvmtiEnv *each = i ? other : ti;
        (*each)->SetEventNotificationMode(each, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
        (*each)->SetEventNotificationMode(each, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    }
    return 0;
}
"""


def test_disposed_of_in_a_callback(tmp_path: Path) -> None:
    agent = build(DISPOSE, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    gone = " ".join(["116"] * 19)
    assert found == ["0", "other 0", f"other: {gone}", "own 0", f"own: {gone}", "late 0", "the late one's VMDeath"]


DISPOSE_UNDER_OTHERS = r"""
#define THREADS 4

static jvmtiEnv *of_monitor;
static jrawMonitorID m;
static int inside, after, gone, disposed;

/* The first time in each thread it waits, in the callback, until its environment is disposed of. */
static void JNICALL enter(jvmtiEnv *env, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method) {
    char *name = NULL;
    jvmtiPhase phase;
    if (__atomic_load_n(&disposed, __ATOMIC_SEQ_CST)) {
        __atomic_add_fetch(&after, 1, __ATOMIC_SEQ_CST);
    }
    if ((*env)->GetMethodName(env, method, &name, NULL, NULL) != 0 || strcmp(name, "work") != 0) {
        (*env)->Deallocate(env, (unsigned char *)name);
        return;
    }
    (*of_monitor)->RawMonitorEnter(of_monitor, m);
    inside++;
    (*of_monitor)->RawMonitorNotifyAll(of_monitor, m);
    while (!disposed) {
        (*of_monitor)->RawMonitorWait(of_monitor, m, 0);
    }
    gone += (*env)->GetPhase(env, &phase) == 116;
    gone += (*env)->GetMethodName(env, method, &name, NULL, NULL) == 116;
    gone += (*env)->DisposeEnvironment(env) == 116;
    (*of_monitor)->RawMonitorExit(of_monitor, m);
}

JNIEXPORT void dispose(void) {
    (*of_monitor)->RawMonitorEnter(of_monitor, m);
    while (inside < THREADS) {
        (*of_monitor)->RawMonitorWait(of_monitor, m, 0);
    }
    say("dispose %d", (*ti)->DisposeEnvironment(ti));
    __atomic_store_n(&disposed, 1, __ATOMIC_SEQ_CST);
    (*of_monitor)->RawMonitorNotifyAll(of_monitor, m);
    (*of_monitor)->RawMonitorExit(of_monitor, m);
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    say("inside %d, told 116 %d times, callbacks afterwards %d", inside, gone, after);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*vm)->GetEnv(vm, (void **)&of_monitor, JVMTI_VERSION_11);
    (*of_monitor)->CreateRawMonitor(of_monitor, "m", &m);
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.MethodEntry = enter};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_METHOD_ENTRY);
    return 0;
}
"""

DISPOSING = """
    import ctypes, threading
    def work(): pass
    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads: each.start()
    ctypes.CDLL({library!r}).dispose()
    for each in threads: each.join()
    work()
"""


@WITH_MONITORING
def test_disposed_of_while_others_are_in_its_callbacks(tmp_path: Path) -> None:
    agent = build(DISPOSE_UNDER_OTHERS, tmp_path)
    assert agent.lines(DISPOSING.format(library=str(agent.library))) == [
        "dispose 0",
        "inside 4, told 116 12 times, callbacks afterwards 0",
    ]


MANY = r"""
static jvmtiEnv *made(void) {
    jvmtiEnv *env;
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_11) != JNI_OK) {
        abort();
    }
    return env;
}

static void use_up(int count) {
    for (int i = 0; i < count; i++) {
        jvmtiEnv *env = made();
        void *data = env;
        if ((*env)->GetEnvironmentLocalStorage(env, &data) != JVMTI_ERROR_NONE || data != NULL) {
            say("something is left of another's storage");
        }
        (*env)->SetEnvironmentLocalStorage(env, env);
        (*env)->DisposeEnvironment(env);
    }
}

static void JNICALL init(jvmtiEnv *env, JNIEnv *jni UNUSED, jthread current UNUSED) {
    jvmtiEnv *gone = made(), *kept = made();
    jvmtiPhase phase;
    jvmtiCapabilities held = {.can_tag_objects = 1};
    void *data;
    (*kept)->SetEnvironmentLocalStorage(kept, env);
    (*gone)->AddCapabilities(gone, &held);
    (*gone)->DisposeEnvironment(gone);
    use_up(900);
    SAY("gone", (*gone)->GetPhase(gone, &phase), (*gone)->GetCapabilities(gone, &held));
    use_up(9100);
    jvmtiEnv *late = made();
    SAY("late", (*late)->GetPhase(late, &phase), phase, (*late)->GetCapabilities(late, &held), held.can_tag_objects);
    SAY("kept", (*kept)->GetEnvironmentLocalStorage(kept, &data), data == env, kept == late);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_many_that_were_disposed_of(tmp_path: Path) -> None:
    """Their memory is used again, but long after: an agent may go on calling one for a while."""
    assert build(MANY, tmp_path).lines() == ["gone: 116 116", "late: 0 4 0 0", "kept: 0 1 0"]
