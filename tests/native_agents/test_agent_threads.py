"""RunAgentThread, and threads of an agent's that still run when the program ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.c_agents import CAgent, build

RUNS = r"""
static jrawMonitorID m;
static int over;
static jobject agent_thread;
static JNIEnv *of_main;

static jthread make(JNIEnv *jni, const char *name) {
    jclass type = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID made = (*jni)->GetMethodID(jni, type, "<init>", "(Ljava/lang/String;)V");
    return (*jni)->NewObject(jni, type, made, (*jni)->NewStringUTF(jni, name));
}

static void show(const char *what, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    jvmtiThreadGroupInfo group = {.name = "none"};
    jint state = -1;
    int error = (*ti)->GetThreadInfo(ti, thread, &info);
    if (strncmp(info.name, "agent", 5) != 0) {
        return;
    }
    if (info.thread_group != NULL) {
        (*ti)->GetThreadGroupInfo(ti, info.thread_group, &group);
    }
    (*ti)->GetThreadState(ti, thread, &state);
    say("%s: %d %s, a daemon %d, of priority %d, of %s, in state %x", what, error, info.name, info.is_daemon,
        info.priority, group.name, state);
}

static void JNICALL started(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    show("start", thread);
}

static void JNICALL ended(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    if (strncmp(info.name, "agent", 5) == 0) {
        say("end of %s", info.name);
    }
}

static void JNICALL run(jvmtiEnv *env, JNIEnv *jni, void *argument) {
    jthread thread;
    JNIEnv *own, *again = NULL;
    jint frames = -1;
    SAY("run", env == ti, jni != NULL && jni != of_main, strcmp(argument, "argument"));
    SAY("its JNIEnv", (*vm)->GetEnv(vm, (void **)&own, JNI_VERSION_10), own == jni,
        (*vm)->AttachCurrentThread(vm, (void **)&again, NULL), again == jni);
    SAY("its thread", (*ti)->GetCurrentThread(ti, &thread), (*jni)->IsSameObject(jni, thread, agent_thread),
        (*ti)->GetFrameCount(ti, thread, &frames), frames);
    show("in it", thread);
    (*ti)->RawMonitorEnter(ti, m);
    over = 1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread main) {
    of_main = jni;
    jthread thread = make(jni, "agent's");
    jobject none = (*jni)->NewStringUTF(jni, "no thread");
    agent_thread = (*jni)->NewGlobalRef(jni, thread);
    show("new", thread);
    SAY("threads", (*ti)->RunAgentThread(ti, NULL, run, NULL, 5), (*ti)->RunAgentThread(ti, none, run, NULL, 5),
        (*ti)->RunAgentThread(ti, main, run, NULL, 5));
    SAY("no function", (*ti)->RunAgentThread(ti, thread, NULL, NULL, 5),
        (*ti)->RunAgentThread(ti, NULL, NULL, NULL, 50), (*ti)->RunAgentThread(ti, thread, NULL, NULL, 50));
    SAY("priorities", (*ti)->RunAgentThread(ti, thread, run, NULL, 0), (*ti)->RunAgentThread(ti, thread, run, NULL, 11),
        (*ti)->RunAgentThread(ti, thread, run, NULL, -1));
    int status = (*ti)->RunAgentThread(ti, thread, run, "argument", 10);
    (*ti)->RawMonitorEnter(ti, m);
    while (!over) {
        (*ti)->RawMonitorWait(ti, m, 0);
    }
    (*ti)->RawMonitorExit(ti, m);
    for (jint state = 1; state & JVMTI_THREAD_STATE_ALIVE;) {
        nap(1);
        (*ti)->GetThreadState(ti, thread, &state);
    }
    SAY("run", status);
    show("ended", thread);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .ThreadStart = started, .ThreadEnd = ended};
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    SAY("before there are threads", (*ti)->RunAgentThread(ti, NULL, NULL, NULL, 50),
        (*ti)->RunAgentThread(ti, (jthread)m, run, NULL, 5));
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_THREAD_START);
    enable(JVMTI_EVENT_THREAD_END);
    return 0;
}
"""


def test_an_agent_s_thread_is_as_in_a_jvm(tmp_path: Path) -> None:
    agent = build(RUNS, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found == [
        "before there are threads: 112 112",
        "new: 0 agent's, a daemon 0, of priority 5, of main, in state 0",
        "threads: 10 10 10",
        "no function: 100 100 100",
        "priorities: 12 12 12",
        "start: 0 agent's, a daemon 1, of priority 10, of main, in state 5",
        "run: 1 1 0",
        "its JNIEnv: 0 1 0 1",
        "its thread: 0 1 0 0",
        "in it: 0 agent's, a daemon 1, of priority 10, of main, in state 5",
        "end of agent's",
        "run: 0",
        "ended: 0 agent's, a daemon 1, of priority 10, of none, in state 2",
    ]


LATE = r"""
/* Threads that never stop calling, of all kinds, while the program ends. */
static void calls(JNIEnv *jni, const char *kind) {
    for (unsigned round = 0; round != UINT32_MAX; round++) {
        jint count;
        jthread thread = NULL, *threads;
        jobject object = NULL;
        switch (*kind) {
        case 'i': /* JVM TI */
            if ((*ti)->GetCurrentThread(ti, &thread) == 0) {
                (*jni)->DeleteLocalRef(jni, thread);
            }
            if ((*ti)->GetAllThreads(ti, &count, &threads) == 0) {
                for (int i = 0; i < count; i++) {
                    (*jni)->DeleteLocalRef(jni, threads[i]);
                }
                (*ti)->Deallocate(ti, (unsigned char *)threads);
            }
            break;
        case 'j': /* JNI */
            (*jni)->DeleteLocalRef(jni, (*jni)->FindClass(jni, "java/lang/String"));
            object = (*jni)->NewStringUTF(jni, "text");
            (*jni)->DeleteLocalRef(jni, object);
            (*jni)->ExceptionClear(jni);
            break;
        default:
            (*vm)->DetachCurrentThread(vm);
            (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
        }
    }
}

static void *attached(void *kind) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    calls(jni, kind);
    return NULL;
}

static void JNICALL agent_thread(jvmtiEnv *env UNUSED, JNIEnv *jni, void *kind) {
    calls(jni, kind);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread main UNUSED) {
    jclass type = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID made = (*jni)->GetMethodID(jni, type, "<init>", "()V");
    (*ti)->RunAgentThread(ti, (*jni)->NewObject(jni, type, made), agent_thread, "i", 5);
    (*ti)->RunAgentThread(ti, (*jni)->NewObject(jni, type, made), agent_thread, "j", 5);
}

static int begin(char *options) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    if (*options == 'r') {
        enable(JVMTI_EVENT_VM_INIT);
    } else {
        spawn(attached, strdup(options));
        spawn(attached, strdup(options));
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> CAgent:
    return build(LATE, tmp_path_factory.mktemp("late"))


@pytest.mark.parametrize("kind", ["interface", "jni", "attach", "run"])
@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "import os; os._exit(0)"])
def test_a_program_ends_while_an_agent_s_threads_call(late: CAgent, kind: str, end: str) -> None:
    """They keep the processors busy: what could come in a moment, comes."""
    program = f"""
        import time
        class Last:
            def __del__(self, sleep=time.sleep):
                sleep(0.05)  # the interpreter is half gone
        __builtins__.last = Last()
        time.sleep(0.05)  # its thread runs
        {end}
    """
    assert late.lines(program, options=kind) == []
