"""A jthread is the program's own object for the thread, wherever it comes from and whenever it is looked at."""

from __future__ import annotations

from pathlib import Path

from tests import programs
from tests.c_agents import CAgent, build

LOOKS = r"""
static JNIEnv *now;
static jobject first, started, before_all;  /* global references */

static const char *named(jthread thread) {
    static char name[100];
    jvmtiThreadInfo info = {.name = NULL};
    int error = (*ti)->GetThreadInfo(ti, thread, &info);
    snprintf(name, sizeof name, "%d %s", error, info.name == NULL ? "" : info.name);
    (*ti)->Deallocate(ti, (unsigned char *)info.name);
    return name;
}

static const char *kind(jobject thing) {
    static char name[100];
    char *signature = "";
    (*ti)->GetClassSignature(ti, (*now)->GetObjectClass(now, thing), &signature, NULL);
    snprintf(name, sizeof name, "%s", signature);
    return name;
}

static jobject variable(const char *name) {
    jclass module = (*now)->FindClass(now, "__main__");
    jfieldID field = (*now)->GetStaticFieldID(now, module, name, "Lbuiltins/object;");
    if (field == NULL) {
        say("no %s", name);
        abort();
    }
    return (*now)->GetStaticObjectField(now, module, field);
}

static int same(jobject left, jobject right) {
    return (*now)->IsSameObject(now, left, right);
}

/* how many of the threads that there are the object is */
static int among_all(jthread thread) {
    jint count = 0, found = 0;
    jthread *all;
    (*ti)->GetAllThreads(ti, &count, &all);
    for (jint i = 0; i < count; i++) {
        found += same(all[i], thread);
    }
    (*ti)->Deallocate(ti, (unsigned char *)all);
    return found;
}

static void use(const char *what, jthread thread, const char *field) {
    jclass own = (*now)->GetObjectClass(now, thread), type = (*now)->FindClass(now, "java/lang/Thread");
    jmethodID run = (*now)->GetMethodID(now, own, "run", "()V");
    jmethodID get_name = (*now)->GetMethodID(now, type, "getName", "()Ljava/lang/String;");
    jstring text = (*now)->CallObjectMethod(now, thread, get_name);
    const char *name = (*now)->GetStringUTFChars(now, text, NULL);
    jint frames = -1;
    int got = (*ti)->GetFrameCount(ti, thread, &frames);
    say("%s: %s of %s, %d, run %d, named %s, frames %d %d, among all %d", what, named(thread), kind(thread),
        (*now)->IsInstanceOf(now, thread, type), run != NULL, name, got, frames > 0, among_all(thread));
    if (field != NULL) {
        jfieldID id = (*now)->GetFieldID(now, own, field, "Lbuiltins/object;");
        jstring value = id == NULL ? NULL : (*now)->GetObjectField(now, thread, id);
        say("  its field: %s", value == NULL ? "none" : (*now)->GetStringUTFChars(now, value, NULL));
    }
}

static void JNICALL look(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread, jmethodID method) {
    char *name;
    now = jni;
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    if (strcmp(name, "_bootstrap") == 0 && before_all == NULL) {
        before_all = (*jni)->NewGlobalRef(jni, thread);
        (*ti)->SetThreadLocalStorage(ti, thread, "early");
    }
    if (strcmp(name, "look") == 0) {
        jthread current;
        jlong tag = 0;
        void *stored = NULL;
        (*ti)->GetCurrentThread(ti, &current);
        say("the main one: %d %d %d", same(thread, variable("main")), same(current, thread), same(first, thread));
        use("main", thread, NULL);
        jobject worker = variable("worker");
        say("its start: %d %d", started != NULL && same(started, worker), same(before_all, worker));
        use("worker", worker, "shelf");
        int got = (*ti)->GetThreadLocalStorage(ti, worker, &stored);
        say("storage: %d %s", got, stored == NULL ? "none" : (char *)stored);
        say("tag: %d", (*ti)->SetTag(ti, before_all, 47));
        got = (*ti)->GetTag(ti, worker, &tag);
        say("tag: %d %d", got, (int)tag);
        jint state = -1;
        got = (*ti)->GetThreadState(ti, variable("new"), &state);
        say("new: %s, %d %x", named(variable("new")), got, state);
        say("no thread: %s", named(variable("worker_name")));
        say("a list: %d", (*ti)->GetThreadListStackTraces(ti, 1, &worker, 1, &(jvmtiStackInfo *){NULL}));
    } else if (strcmp(name, "ended") == 0) {
        jint state = -1;
        int got = (*ti)->GetThreadState(ti, before_all, &state);
        say("ended: %s, %d %x", named(variable("worker")), got, state);
        say("not alive: %d", (*ti)->GetFrameCount(ti, variable("worker"), &state));
    } else if (strcmp(name, "foreign") == 0) {
        use("foreign", thread, NULL);
    } else if (strcmp(name, "known") == 0) {
        say("dummy: %d", same(thread, variable("dummy")));
    }
    (*ti)->Deallocate(ti, (unsigned char *)name);
}

static void JNICALL start(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    now = jni;
    if (started == NULL && strcmp(named(thread), "0 worker") == 0) {
        say("start: %s", kind(thread));
        started = (*jni)->NewGlobalRef(jni, thread);
    }
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread) {
    first = (*jni)->NewGlobalRef(jni, thread);
}

static int begin(char *options) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1, .can_tag_objects = 1};
    jvmtiEventCallbacks callbacks = {.VMInit = init, .MethodEntry = look, .ThreadStart = start};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_METHOD_ENTRY);
    if (strcmp(options, "starts") == 0) {
        enable(JVMTI_EVENT_THREAD_START);
    }
    return 0;
}
"""

PROGRAM = programs.source("native_jthreads/program")


def lines(tmp_path: Path, options: str = "") -> list[str]:
    return build(LOOKS, tmp_path).lines(PROGRAM, options=options)


def test_a_jthread_is_the_program_s_object(tmp_path: Path) -> None:
    found = lines(tmp_path, "starts")
    assert found == [
        "start: L__main__/Worker;",
        "the main one: 1 1 1",
        "main: 0 MainThread of Lthreading/_MainThread;, 1, run 1, named MainThread, frames 0 1, among all 1",
        "its start: 1 1",
        "worker: 0 worker of L__main__/Worker;, 1, run 1, named worker, frames 0 1, among all 1",
        "  its field: of the worker",
        "storage: 0 early",
        "tag: 0",
        "tag: 0 47",
        "new: 0 new, 0 0",
        "no thread: 10 ",
        "a list: 0",
        "ended: 0 worker, 0 2",
        "not alive: 15",
        "foreign: 0  of Lvmscope/tool/jni/jthreads/UnknownThread;, 1, run 1, named , frames 0 1, among all 1",
        "dummy: 1",
    ]


def test_a_reference_from_before_threading_knew_the_thread_is_to_the_same_object(tmp_path: Path) -> None:
    assert "its start: 0 1" in lines(tmp_path)


OF_AGENT = r"""
static jrawMonitorID m;
static int over;
static jobject given;

static void JNICALL run(jvmtiEnv *env UNUSED, JNIEnv *jni, void *argument UNUSED) {
    jthread thread;
    jvmtiThreadInfo info;
    (*ti)->GetCurrentThread(ti, &thread);
    (*ti)->GetThreadInfo(ti, thread, &info);
    say("%s: the same %d, a daemon %d, by its method %d", info.name, (*jni)->IsSameObject(jni, thread, given),
        info.is_daemon, (*jni)->CallBooleanMethod(jni, thread, (*jni)->GetMethodID(jni,
            (*jni)->FindClass(jni, "java/lang/Thread"), "isDaemon", "()Z")));
    (*ti)->RawMonitorEnter(ti, m);
    over = 1;
    (*ti)->RawMonitorNotifyAll(ti, m);
    (*ti)->RawMonitorExit(ti, m);
}

static void JNICALL entered(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED, jmethodID method) {
    char *name;
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    if (strcmp(name, "here") == 0) {
        jclass main = (*jni)->FindClass(jni, "__main__");
        jfieldID worker = (*jni)->GetStaticFieldID(jni, main, "worker", "Lbuiltins/object;");
        given = (*jni)->GetStaticObjectField(jni, main, worker);
        given = (*jni)->NewGlobalRef(jni, given);
        int status = (*ti)->RunAgentThread(ti, given, run, NULL, 5);
        (*ti)->RawMonitorEnter(ti, m);
        while (status == 0 && !over) {
            (*ti)->RawMonitorWait(ti, m, 0);
        }
        (*ti)->RawMonitorExit(ti, m);
        for (jint state = 1; status == 0 && state & JVMTI_THREAD_STATE_ALIVE;) {
            nap(1);
            (*ti)->GetThreadState(ti, given, &state);
        }
        say("run: %d, again: %d", status, (*ti)->RunAgentThread(ti, given, run, NULL, 5));
    }
    (*ti)->Deallocate(ti, (unsigned char *)name);
}

static int begin(char *options UNUSED) {
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    jvmtiEventCallbacks callbacks = {.MethodEntry = entered};
    (*ti)->CreateRawMonitor(ti, "m", &m);
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_METHOD_ENTRY);
    return 0;
}
"""


def test_an_agent_s_thread_may_be_an_object_of_the_program_s(tmp_path: Path) -> None:
    agent: CAgent = build(OF_AGENT, tmp_path)
    found = agent.lines("import threading\ndef here(): pass\nworker = threading.Thread(name='its worker')\nhere()")
    assert found == ["its worker: the same 1, a daemon 1, by its method 1", "run: 0, again: 10"]
