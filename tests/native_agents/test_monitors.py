"""What JVM TI tells of the monitors that agents enter by JNI, as in a JVM."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

SOURCE = r"""
static jobject thing;

static void *waits(void *place) {
    JNIEnv *env;
    jthread own;
    (*vm)->AttachCurrentThread(vm, (void **)&env, NULL);
    (*ti)->GetCurrentThread(ti, &own);
    __atomic_store_n((jobject *)place, (*env)->NewGlobalRef(env, own), __ATOMIC_SEQ_CST);
    SAY("enter", (*env)->MonitorEnter(env, thing), (*env)->MonitorExit(env, thing));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void usage(JNIEnv *env, jthread thread, const char *when) {
    jvmtiMonitorUsage use;
    int error = (*ti)->GetObjectMonitorUsage(ti, thing, &use);
    SAY("entered", use.entry_count);
    SAY(when, error, use.owner != NULL && (*env)->IsSameObject(env, use.owner, thread),
        use.waiter_count, use.notify_waiter_count);
}

static void owned(JNIEnv *env) {
    jint count, many;
    jobject *monitors;
    jvmtiMonitorStackDepthInfo *depths;
    int error = (*ti)->GetOwnedMonitorInfo(ti, NULL, &count, &monitors);
    int other = (*ti)->GetOwnedMonitorStackDepthInfo(ti, NULL, &many, &depths);
    SAY("owned", error, count, count == 1 && (*env)->IsSameObject(env, monitors[0], thing));
    SAY("depth", other, many, many == 1 ? depths[0].stack_depth : 0);
}

static void JNICALL vm_init(jvmtiEnv *given UNUSED, JNIEnv *env, jthread thread) {
    thing = (*env)->NewGlobalRef(env, (*env)->NewByteArray(env, 3));
    usage(env, thread, "nobody's");
    (*env)->MonitorEnter(env, thing);
    (*env)->MonitorEnter(env, thing);
    jobject waiter = NULL, contended = NULL;
    pthread_t other = spawn(waits, &waiter);
    jvmtiMonitorUsage use = {0};
    while (use.waiter_count == 0) {
        nap(1);
        (*ti)->GetObjectMonitorUsage(ti, thing, &use);
    }
    usage(env, thread, "contended");
    (*ti)->GetCurrentContendedMonitor(ti, waiter, &contended);
    SAY("waits for", (*env)->IsSameObject(env, contended, thing));
    owned(env);
    (*env)->MonitorExit(env, thing);
    (*env)->MonitorExit(env, thing);
    pthread_join(other, NULL);
    usage(env, thread, "nobody's");
    owned(env);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {
        .can_get_monitor_info = 1, .can_get_owned_monitor_info = 1, .can_get_owned_monitor_stack_depth_info = 1,
        .can_get_current_contended_monitor = 1,
    };
    jvmtiEventCallbacks callbacks = {.VMInit = vm_init};
    if ((*ti)->AddCapabilities(ti, &wanted) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_they_are_told_of_as_in_a_jvm(tmp_path: Path) -> None:
    """But for how often one was entered: HotSpot 17 counts what Java's frames have entered alone."""
    agent = build(SOURCE, tmp_path)
    found, expected = agent.lines(), agent.java_lines()
    entered = [each for each in found if each.startswith("entered")]
    assert entered == ["entered: 0", "entered: 2", "entered: 0"]
    assert [each for each in found if each not in entered] == [each for each in expected if each[:7] != "entered"]
