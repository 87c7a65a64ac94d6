"""Threads of native agents: attached ones, those that the interface starts, and what becomes of both."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

ATTACHED = r"""
static void JNICALL started(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    say("start %s %d", info.name, jni != NULL);
}

static void JNICALL ended(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    say("end %s %d", info.name, jni != NULL);
}

static void *attached(void *name) {
    JavaVMAttachArgs arguments = {JNI_VERSION_10, name, NULL};
    JNIEnv *jni = NULL, *again = NULL;
    jthread thread;
    SAY("before", (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10), jni == NULL,
        (*ti)->GetCurrentThread(ti, &thread),
        (*vm)->DetachCurrentThread(vm));
    SAY("attach", (*vm)->AttachCurrentThread(vm, (void **)&jni, &arguments), jni != NULL,
        (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&again, NULL), again == jni,
        (*vm)->GetEnv(vm, (void **)&again, JNI_VERSION_10), again == jni);
    SAY("current", (*ti)->GetCurrentThread(ti, &thread), thread != NULL);
    SAY("detach", (*vm)->DetachCurrentThread(vm), (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10));
    SAY("again", (*vm)->AttachCurrentThread(vm, (void **)&jni, &arguments), (*vm)->DetachCurrentThread(vm));
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED) {
    enable(JVMTI_EVENT_THREAD_START);
    enable(JVMTI_EVENT_THREAD_END);
    pthread_join(spawn(attached, "worker"), NULL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_THREAD_START, NULL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_THREAD_END, NULL);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .ThreadStart = started, .ThreadEnd = ended};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_a_thread_is_attached_and_detached_as_in_a_jvm(tmp_path: Path) -> None:
    agent = build(ATTACHED, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found == [
        "before: -2 1 115 0",
        "start worker 1",
        "attach: 0 1 0 1 0 1",
        "current: 0 1",
        "end worker 1",
        "detach: 0 -2",
        "start worker 1",
        "end worker 1",
        "again: 0 0",
    ]


ASKS_FOR_THE_GIL = """
    static void unwound(void *ignored UNUSED) { say("unwound"); }

    static void *ask(void *ignored UNUSED) {
        JNIEnv *jni;
        pthread_cleanup_push(unwound, NULL);
        say("asks");
        for (;;) {
            (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
            (*vm)->DetachCurrentThread(vm);
        }
        pthread_cleanup_pop(0);
        return NULL;
    }

    static int begin(char *options UNUSED) {
        spawn(ask, NULL);
        return 0;
    }
"""


def test_a_thread_that_asks_for_the_gil_at_the_end_stays(tmp_path: Path) -> None:
    """CPython would unwind the agent's frames."""
    agent = build(ASKS_FOR_THE_GIL, tmp_path)
    program = """
        import sys, time
        class Late:
            def __del__(self, sleep=time.sleep, write=__import__("os").write):
                sleep(0.3)
                write(1, b"the end\\n")
        sys.late = Late()  # what sys has goes last
        time.sleep(0.1)
    """
    assert agent.lines(program) == ["asks", "the end"]
