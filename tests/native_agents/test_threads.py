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
                sleep(0.3)  # the interpreter's end takes its time
                write(1, b"the end\\n")
        sys.late = Late()  # what sys has goes last
        time.sleep(0.1)  # its thread runs
    """
    assert agent.lines(program) == ["asks", "the end"]


MAIN = r"""
static void show(const char *what, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    if (strncasecmp(info.name, "main", 4) == 0) {
        say("%s, a daemon %d, of priority %d", what, info.is_daemon, info.priority);
    }
}

static void JNICALL started(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    show("start", thread);
}

static void JNICALL ended(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    show("end", thread);
}

static void JNICALL vm_start(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    say("VMStart");
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    show("VMInit", thread);
}

static void JNICALL death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    say("VMDeath");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {
        .VMStart = vm_start, .VMInit = init, .VMDeath = death, .ThreadStart = started, .ThreadEnd = ended};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_START);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    enable(JVMTI_EVENT_THREAD_START);
    enable(JVMTI_EVENT_THREAD_END);
    return 0;
}
"""


def test_the_main_thread_starts_after_vm_init_and_ends_before_vm_death(tmp_path: Path) -> None:
    agent = build(MAIN, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    own = "a daemon 0, of priority 5"
    assert found == ["VMStart", f"VMInit, {own}", f"start, {own}", f"end, {own}", "VMDeath"]


NAMES = r"""
struct job {
    const char *name;
    int daemon, version;
    jobject group;
};

static void show(void) {
    jvmtiThreadInfo info = {.name = "?"};
    jvmtiThreadGroupInfo group = {.name = "?"};
    char text[200] = "";
    (*ti)->GetThreadInfo(ti, NULL, &info);
    (*ti)->GetThreadGroupInfo(ti, info.thread_group, &group);
    for (char *c = info.name; *c; c++) {
        sprintf(text + strlen(text), *c > ' ' && *c < 127 ? "%c" : "\\x%02x", (unsigned char)*c);
    }
    say("'%s', a daemon %d, of %s", text, info.is_daemon, group.name);
}

static void *attached(void *given) {
    struct job *job = given;
    JNIEnv *jni = NULL, *again = NULL;
    JavaVMAttachArgs arguments = {job->version, (char *)job->name, job->group}, others = {JNI_VERSION_10, "x", NULL};
    if (job->daemon) {
        (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&jni, &arguments);
    } else {
        (*vm)->AttachCurrentThread(vm, (void **)&jni, &arguments);
    }
    show();
    SAY("again", (*vm)->AttachCurrentThread(vm, (void **)&again, &others), again == jni,
        (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&again, &others), again == jni);
    show(); /* as it was */
    SAY("detach", (*vm)->DetachCurrentThread(vm), (*vm)->DetachCurrentThread(vm));
    return NULL;
}

static void attach(const char *name, int daemon, jobject group, int version) {
    struct job job = {name, daemon, version, group};
    pthread_join(spawn(attached, &job), NULL);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread main) {
    jint count;
    jthreadGroup *groups;
    (void)main;
    (*ti)->GetTopThreadGroups(ti, &count, &groups);
    attach("plain", 0, NULL, JNI_VERSION_10);
    attach("daemon", 1, NULL, JNI_VERSION_1_2);
    attach(NULL, 1, NULL, JNI_VERSION_10);
    attach("", 0, NULL, JNI_VERSION_10);
    attach("grouped", 0, (*jni)->NewGlobalRef(jni, groups[0]), JNI_VERSION_10);
    attach("n\xc0\x80l", 0, NULL, JNI_VERSION_10);
    attach("\xc3\xa9\xe2\x82\xac", 0, NULL, JNI_VERSION_10);
    attach("\xed\xa0\xbd\xed\xb8\x80", 0, NULL, JNI_VERSION_10);
    attach("\xed\xa0\xbd", 0, NULL, JNI_VERSION_10);
    attach("\xff\xfe", 0, NULL, JNI_VERSION_10);
    attach("not looked at", 0, NULL, JNI_VERSION_1_1);
    attach("nor this", 0, NULL, 0x00990000);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_an_attached_thread_has_the_name_and_the_group_that_it_asked_for(tmp_path: Path) -> None:
    agent = build(NAMES, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert [line for line in found if line.startswith("'")][::2] == [
        "'plain', a daemon 0, of main",
        "'daemon', a daemon 1, of main",
        "'Thread-0', a daemon 1, of main",
        "'', a daemon 0, of main",
        "'grouped', a daemon 0, of system",
        r"'n\xc0\x80l', a daemon 0, of main",
        r"'\xc3\xa9\xe2\x82\xac', a daemon 0, of main",
        r"'\xed\xa0\xbd\xed\xb8\x80', a daemon 0, of main",
        r"'\xed\xa0\xbd', a daemon 0, of main",
        r"'\xc3\xbf\xc3\xbe', a daemon 0, of main",
        "'Thread-1', a daemon 0, of main",
        "'Thread-2', a daemon 0, of main",
    ]


ENDS = r"""
static jobject lock, last;
static jrawMonitorID raw;
static int detaches;

static void *ends(void *ignored UNUSED) {
    JNIEnv *jni;
    jthread thread;
    JavaVMAttachArgs arguments = {JNI_VERSION_10, "ends", NULL};
    (*vm)->AttachCurrentThread(vm, (void **)&jni, &arguments);
    (*ti)->GetCurrentThread(ti, &thread);
    last = (*jni)->NewGlobalRef(jni, thread);
    for (int i = 0; i < 100; i++) { /* frames that are left open */
        (*jni)->PushLocalFrame(jni, 10);
        (*jni)->NewStringUTF(jni, "kept");
    }
    SAY("enter", (*jni)->MonitorEnter(jni, lock), (*jni)->MonitorEnter(jni, lock), (*ti)->RawMonitorEnter(ti, raw));
    if (detaches) {
        SAY("detach", (*vm)->DetachCurrentThread(vm));
    }
    return NULL;
}

static void *enters(void *ignored UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    SAY("another", (*jni)->MonitorEnter(jni, lock), (*jni)->MonitorExit(jni, lock));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void show(void) {
    jint state = -1, frames;
    int error = (*ti)->GetThreadState(ti, last, &state);
    SAY("thread", error, state, (*ti)->GetFrameCount(ti, last, &frames));
}

static void JNICALL ended(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread) {
    jvmtiThreadInfo info = {.name = "?"};
    (*ti)->GetThreadInfo(ti, thread, &info);
    say("end of %s", info.name);
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    (*ti)->CreateRawMonitor(ti, "raw", &raw);
    lock = (*jni)->NewGlobalRef(jni, (*jni)->NewStringUTF(jni, "lock"));
    enable(JVMTI_EVENT_THREAD_END);
    pthread_join(spawn(ends, NULL), NULL);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_THREAD_END, NULL);
    show();
    pthread_join(spawn(enters, NULL), NULL);
    SAY("raw", (*ti)->RawMonitorNotify(ti, raw), (*ti)->DestroyRawMonitor(ti, raw));
}

static int begin(char *options) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .ThreadEnd = ended};
    detaches = strcmp(options, "detaches") == 0;
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_a_detached_thread_gives_up_the_monitors_of_jni_and_keeps_raw_ones(tmp_path: Path) -> None:
    agent = build(ENDS, tmp_path)
    found = agent.lines(options="detaches")
    assert found == agent.java_lines("detaches")
    assert found == ["enter: 0 0 0", "end of ends", "detach: 0", "thread: 0 2 15", "another: 0 0", "raw: 51 51"]


def test_a_thread_that_ends_without_detaching_has_ended(tmp_path: Path) -> None:
    """A JVM believes that it lives on, and never ends."""
    assert build(ENDS, tmp_path).lines() == ["enter: 0 0 0", "thread: 0 2 15", "another: 0 0", "raw: 51 51"]


MANY = r"""
static void *ends(void *ignored UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    for (int i = 0; i < 1000; i++) {
        (*jni)->NewByteArray(jni, 1000);
    }
    return NULL;
}

static int begin(char *options UNUSED) {
    for (int i = 0; i < 300; i++) {
        pthread_join(spawn(ends, NULL), NULL);
    }
    return 0;
}
"""


def test_threads_that_end_without_detaching_leave_nothing(tmp_path: Path) -> None:
    """Each of 300 had references to a megabyte."""
    program = """
        import sys
        resident = int(open("/proc/self/statm").read().split()[1])
        print(len(sys._current_frames()), resident * 4096 < 150_000_000)
    """
    assert build(MANY, tmp_path).lines(program) == ["1 True"]


AGAIN = r"""
static void *comes_and_goes(void *ignored UNUSED) {
    JNIEnv *jni;
    for (int i = 0; i < 2000; i++) {
        (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
        (*vm)->DetachCurrentThread(vm);
    }
    return NULL;
}

static int begin(char *options UNUSED) {
    pthread_join(spawn(comes_and_goes, NULL), NULL);
    return 0;
}
"""


def test_a_thread_that_is_attached_again_and_again_leaves_nothing(tmp_path: Path) -> None:
    program = """
        import gc
        from vmscope.tool import Thread
        print(sum(type(each) is Thread for each in gc.get_objects()) < 300)
    """
    assert build(AGAIN, tmp_path).lines(program) == ["True"]
