"""Native agents that interrupt, suspend and stop threads, and signals that come while their calls run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import programs
from tests.c_agents import build

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, which this needs")

INTERRUPTS = r"""
static jrawMonitorID m;
static int ready;
static jobject own;

static void *waits(void *ignored UNUSED) {
    JNIEnv *jni;
    jthread thread;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    (*ti)->GetCurrentThread(ti, &thread);
    own = (*jni)->NewGlobalRef(jni, thread);
    (*ti)->RawMonitorEnter(ti, m);
    ready = 1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    SAY("for ever", (*ti)->RawMonitorWait(ti, m, 0), (*ti)->RawMonitorWait(ti, m, 1));
    SAY("before", (*ti)->InterruptThread(ti, own), (*ti)->RawMonitorWait(ti, m, 0), (*ti)->RawMonitorWait(ti, m, 1));
    SAY("twice", (*ti)->InterruptThread(ti, own), (*ti)->InterruptThread(ti, own),
        (*ti)->RawMonitorWait(ti, m, 1000000), (*ti)->RawMonitorWait(ti, m, 1));
    SAY("no owner", (*ti)->InterruptThread(ti, own), (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorWait(ti, m, 0),
        (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorWait(ti, m, 0));
    SAY("enter", (*ti)->InterruptThread(ti, own), (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorExit(ti, m),
        (*ti)->RawMonitorExit(ti, m));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    (*ti)->RawMonitorEnter(ti, m);
    pthread_t other = spawn(waits, NULL);
    while (!ready) {
        (*ti)->RawMonitorWait(ti, m, 0);
    }
    SAY("interrupt", (*ti)->InterruptThread(ti, own));
    (*ti)->RawMonitorExit(ti, m);
    pthread_join(other, NULL);
    jstring none = (*jni)->NewStringUTF(jni, "no thread, and no exception");
    SAY("ended", (*ti)->InterruptThread(ti, own), (*ti)->StopThread(ti, own, none), (*ti)->SuspendThread(ti, own),
        (*ti)->ResumeThread(ti, own));
    SAY("none", (*ti)->InterruptThread(ti, none), (*ti)->StopThread(ti, none, none), (*ti)->SuspendThread(ti, none),
        (*ti)->ResumeThread(ti, none));
}

static int begin(char *options) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    jvmtiCapabilities wanted = {.can_signal_thread = 1, .can_suspend = 1};
    if (strcmp(options, "none") != 0 && (*ti)->AddCapabilities(ti, &wanted) != 0) {
        return 1;
    }
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


@needs_monitoring
def test_an_interrupt_ends_a_wait_in_a_raw_monitor(tmp_path: Path) -> None:
    agent = build(INTERRUPTS, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found == [
        "interrupt: 0",
        "for ever: 52 0",
        "before: 0 52 0",
        "twice: 0 0 52 0",
        "no owner: 0 0 51 0 52",
        "enter: 0 0 0 0",
        "ended: 15 15 15 15",
        "none: 10 10 10 10",
    ]


CONTROL = r"""
/* A thread of the agent's stops one of the program's for a while, and then for good. */
static jlong cpu_time(jthread thread) {
    jlong nanos = -1;
    (*ti)->GetThreadCpuTime(ti, thread, &nanos);
    return nanos;
}

static void *controls(void *given) {
    JNIEnv *jni;
    jint state;
    jthread worker = given;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    SAY("suspend", (*ti)->SuspendThread(ti, worker), (*ti)->SuspendThread(ti, worker));
    (*ti)->GetThreadState(ti, worker, &state);
    jlong before;
    do { /* it stops at its next line */
        before = cpu_time(worker);
        nap(50);
    } while (cpu_time(worker) != before);
    SAY("suspended", (state & JVMTI_THREAD_STATE_SUSPENDED) != 0);
    SAY("resume", (*ti)->ResumeThread(ti, worker), (*ti)->ResumeThread(ti, worker));
    while (cpu_time(worker) == before) {
        nap(1);
    }
    jclass type = (*jni)->FindClass(jni, "java/lang/RuntimeException");
    (*jni)->ThrowNew(jni, type, "from the agent");
    jthrowable error = (*jni)->ExceptionOccurred(jni);
    (*jni)->ExceptionClear(jni);
    SAY("stop", (*ti)->StopThread(ti, worker, error));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL started(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    if (strcmp(info.name, "worker") == 0) {
        spawn(controls, (*jni)->NewGlobalRef(jni, thread));
    }
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.ThreadStart = started};
    jvmtiCapabilities wanted = {.can_signal_thread = 1, .can_suspend = 1, .can_get_thread_cpu_time = 1};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_THREAD_START);
    return (*ti)->AddCapabilities(ti, &wanted);
}
"""


@needs_monitoring
def test_a_thread_of_the_program_is_suspended_resumed_and_stopped(tmp_path: Path) -> None:
    program = programs.source("native_interrupts/suspended")
    found = build(CONTROL, tmp_path).lines(program)
    assert sorted(found) == sorted(
        ["suspend: 0 14", "suspended: 1", "resume: 0 13", "stop: 0", "RuntimeError('from the agent')"]
    )


NOTHING = r"""
static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    jobject new = (*jni)->AllocObject(jni, (*jni)->FindClass(jni, "java/lang/Thread"));
    SAY("stop", (*ti)->StopThread(ti, thread, NULL), (*ti)->StopThread(ti, NULL, NULL),
        (*ti)->StopThread(ti, new, NULL));
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    jvmtiCapabilities wanted = {.can_signal_thread = 1};
    SAY("other", (*ti)->SetVerboseFlag(ti, JVMTI_VERBOSE_OTHER, JNI_TRUE),
        (*ti)->SetVerboseFlag(ti, JVMTI_VERBOSE_OTHER, JNI_FALSE), (*ti)->SetVerboseFlag(ti, 3, JNI_TRUE));
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return (*ti)->AddCapabilities(ti, &wanted);
}
"""


def test_no_exception_and_no_flag_of_ours_are_answered_as_in_a_jvm(tmp_path: Path) -> None:
    """HotSpot 17: a null exception is NULL_POINTER, after the thread; VERBOSE_OTHER is taken, and does nothing."""
    agent = build(NOTHING, tmp_path)
    found = agent.lines()
    assert found == ["other: 0 0 103", "stop: 100 10 15"]
    assert found == agent.java_lines()


SIGNALS = r"""
#include <signal.h>
static void jvmti(JNIEnv *jni) {
    jint count = 0;
    jthread *threads;
    raise(SIGUSR1);
    int error = (*ti)->GetAllThreads(ti, &count, &threads);
    SAY("JVM TI", error);
    SAY("again", (*ti)->GetAllThreads(ti, &count, &threads), (*jni)->ExceptionCheck(jni));
}

static void jni_call(JNIEnv *jni) {
    jclass type = (*jni)->FindClass(jni, "java/lang/String");
    raise(SIGUSR1);
    (*jni)->GetMethodID(jni, type, "length", "()I");
    SAY("JNI", (*jni)->ExceptionCheck(jni));
}

static void wait(void) {
    jrawMonitorID m;
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->RawMonitorEnter(ti, m);
    raise(SIGUSR1);
    SAY("wait", (*ti)->RawMonitorWait(ti, m, 20), (*ti)->RawMonitorExit(ti, m));
}

static void JNICALL entry(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED, jmethodID method) {
    char *name = NULL;
    if ((*ti)->GetMethodName(ti, method, &name, NULL, NULL) != 0) {
        return;
    }
    if (strcmp(name, "in_jvmti") == 0) {
        jvmti(jni);
    } else if (strcmp(name, "in_jni") == 0) {
        jni_call(jni);
    } else if (strcmp(name, "in_wait") == 0) {
        wait();
    }
    (*ti)->Deallocate(ti, (unsigned char *)name);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    jvmtiEventCallbacks callbacks = {.MethodEntry = entry};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_METHOD_ENTRY);
    return 0;
}
"""


@needs_monitoring
def test_what_a_handler_raises_in_a_call_of_the_agent_s_reaches_the_program(tmp_path: Path) -> None:
    """SIGUSR1 comes before a call, whose Python code is the first that may run the handler."""
    program = programs.source("native_interrupts/handler_raises")
    found = build(SIGNALS, tmp_path).lines(program)
    once = ["JVM TI: 113", "again: 0 0", "{}", "JNI: 1", "{}", "wait: 0 0", "{}"]
    assert found == [line.format(name) for name in ("Stop()", "KeyboardInterrupt()") for line in once]
