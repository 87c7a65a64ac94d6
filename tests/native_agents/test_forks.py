"""Native agents where a process or an interpreter is made: forks by the program and by the agent, sub-interpreters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import programs
from tests.c_agents import WITH_MONITORING, build

FORK = r"""
#include <sys/wait.h>

static int forks, agent_threads, parent, counted;
static jrawMonitorID m;

static void JNICALL enter(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method) {
    char *name;
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    if (strcmp(name, "step") == 0) {
        counted++;
    } else if (strcmp(name, "fork_here") == 0 || strcmp(name, "fork_again") == 0) {
        pid_t child = fork(); /* the agent's own: Python's hooks do not run */
        if (child == 0) {
            jvmtiPhase phase;
            jint number;
            jthread *threads;
            jclass text = (*jni)->FindClass(jni, "java/lang/String");
            SAY("child", (*ti)->GetPhase(ti, &phase), phase, (*ti)->GetAllThreads(ti, &number, &threads), text != NULL,
                (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorExit(ti, m), (*ti)->ForceGarbageCollection(ti));
            if (name[5] == 'h') {
                _exit(3);
            }
            forks++;
            return;
        }
        int status;
        waitpid(child, &status, 0);
        say("status %d", WEXITSTATUS(status));
    }
}

static void JNICALL runs(jvmtiEnv *env UNUSED, JNIEnv *jni, void *arg UNUSED) {
    for (;;) {
        jint number;
        jthread *threads;
        (*ti)->RawMonitorEnter(ti, m);
        (*jni)->PushLocalFrame(jni, 8);
        if ((*ti)->GetAllThreads(ti, &number, &threads) == 0) {
            (*ti)->Deallocate(ti, (unsigned char *)threads);
        }
        (*jni)->PopLocalFrame(jni, NULL);
        (*ti)->RawMonitorExit(ti, m);
        nap(1);
        __atomic_add_fetch(&agent_threads, 1, __ATOMIC_SEQ_CST);
    }
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    jclass klass = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID make = (*jni)->GetMethodID(jni, klass, "<init>", "()V");
    (*ti)->RunAgentThread(ti, (*jni)->NewObject(jni, klass, make), runs, NULL, 5);
    while (!__atomic_load_n(&agent_threads, __ATOMIC_SEQ_CST)) {
        nap(1);
    }
    parent = getpid();
    enable(JVMTI_EVENT_METHOD_ENTRY);
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    say("unload in %s: counted %d forks %d", getpid() == parent ? "parent" : "child", counted, forks);
}

static int begin(char *options UNUSED) {
    (*ti)->CreateRawMonitor(ti, "m", &m);
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.VMInit = init, .MethodEntry = enter};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""

FORKING = programs.source("native_forks/forking")


@WITH_MONITORING
def test_forks_in_a_callback_and_by_the_program(tmp_path: Path) -> None:
    """While a thread of the agent's has the monitor every other moment. A child has all but that thread."""
    assert build(FORK, tmp_path).lines(FORKING) == [
        "child: 0 4 0 1 0 0 0",
        "status 3",
        "child: 0 4 0 1 0 0 0",
        "unload in child: counted 2 forks 1",
        "python's 0",
        "unload in child: counted 2 forks 1",
        "status 0",
        "unload in child: counted 2 forks 0",
        "python's 0",
        "unload in parent: counted 2 forks 0",
    ]


MONITORS = r"""
static jobject thing, other;
static int up;

/* Has the monitor of one thing, and changes another's all the time. */
static void *holds(void *arg UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    (*jni)->MonitorEnter(jni, thing);
    __atomic_store_n(&up, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        (*jni)->MonitorEnter(jni, other);
        (*jni)->MonitorExit(jni, other);
    }
    return NULL;
}

static void *then(void *arg UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    for (int i = 0; i < 2; i++) {
        jobject each = i ? other : thing;
        if ((*jni)->MonitorEnter(jni, each) != 0 || (*jni)->MonitorExit(jni, each) != 0) {
            say("it is not free");
        }
    }
    __atomic_store_n(&up, 2, __ATOMIC_SEQ_CST);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    thing = (*jni)->NewGlobalRef(jni, (*jni)->NewStringUTF(jni, "thing"));
    other = (*jni)->NewGlobalRef(jni, (*jni)->NewStringUTF(jni, "other"));
    spawn(holds, NULL);
    while (!__atomic_load_n(&up, __ATOMIC_SEQ_CST)) {
        nap(1);
    }
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    if (getenv("CHILD") != NULL) {
        pthread_join(spawn(then, NULL), NULL);
    }
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""


def test_in_a_child_the_monitors_that_others_had_are_free(tmp_path: Path) -> None:
    """Whatever the others are just doing with monitors."""
    program = programs.source("native_forks/monitors")
    assert build(MONITORS, tmp_path).lines(program) == ["all ended"]


SUB_INTERPRETERS = r"""
static JNIEnv *mains;
static jrawMonitorID m;
static int entries;
JNIEXPORT void ask(const char *where) {
    jvmtiPhase phase;
    jint number = 0;
    jthread *threads;
    JNIEnv *jni = NULL;
    unsigned char *memory;
    char name[64];
    snprintf(name, sizeof name, "%s %d", where, entries);
    SAY(name, (*ti)->GetPhase(ti, &phase), (*ti)->Allocate(ti, 9, &memory), (*ti)->RawMonitorEnter(ti, m),
        (*ti)->RawMonitorExit(ti, m),
       (*ti)->GetAllThreads(ti, &number, &threads), (*mains)->FindClass(mains, "java/lang/String") != NULL,
           (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_10),
       (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL), (*vm)->DetachCurrentThread(vm));
    entries = 0;
}

static void JNICALL enter(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method UNUSED) {
    entries++;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    mains = jni;
    enable(JVMTI_EVENT_METHOD_ENTRY);
}

static int begin(char *options UNUSED) {
    (*ti)->CreateRawMonitor(ti, "m", &m);
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    jvmtiEventCallbacks callbacks = {.VMInit = init, .MethodEntry = enter};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


@WITH_MONITORING
@pytest.mark.parametrize("kind", ["legacy", "isolated"])
def test_a_thread_that_runs_another_interpreter_is_not_attached(tmp_path: Path, kind: str) -> None:
    """Nor are there events. What needs no Python works."""
    agent = build(SUB_INTERPRETERS, tmp_path)
    if kind == "isolated" and sys.version_info < (3, 13):
        pytest.skip("ctypes is not for interpreters with a GIL of their own")
    library = str(agent.library)
    program = f"""
        import ctypes, sys, threading
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
            create = lambda: interpreters.create({kind!r})
        else:
            import _xxsubinterpreters as interpreters
            create = lambda: interpreters.create(isolated=False)
        ask = ctypes.CDLL({library!r}).ask
        inside = '''if True:
            import ctypes
            with_gil, without = ctypes.PyDLL({library!r}), ctypes.CDLL({library!r})
            with_gil.ask(b"clear")
            def method(): pass
            method()
            with_gil.ask(b"with the GIL")
            without.ask(b"without the GIL")
        '''
        def run():
            interpreter = create()
            interpreters.run_string(interpreter, inside)
            ask(b"main")
            interpreters.destroy(interpreter)
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    """
    there = ["with the GIL 0: 115 0 0 0 115 0 -2 -1 -1", "without the GIL 0: 115 0 0 0 115 0 -2 -1 -1"]
    found = agent.lines(program)
    assert [line for line in found if not line.startswith("clear")] == 2 * [*there, "main 0: 0 0 0 0 0 1 0 0 -1"]
