"""Raw monitors of native agents: each rule as HotSpot has it, on threads that Python knows and others, and in forks."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

RULES = r"""
static jrawMonitorID m, other, none;

static void *foreign(void *argument UNUSED) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    SAY("another's", (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorWait(ti, m, 1), (*ti)->RawMonitorNotify(ti, m),
        (*ti)->RawMonitorNotifyAll(ti, m), (*ti)->DestroyRawMonitor(ti, m));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void enter_and_leave(void) {
    SAY("create", (*ti)->CreateRawMonitor(ti, NULL, &m), (*ti)->CreateRawMonitor(ti, "m", NULL),
        (*ti)->CreateRawMonitor(ti, "m", &m));
    SAY("null", (*ti)->RawMonitorEnter(ti, NULL), (*ti)->RawMonitorExit(ti, NULL), (*ti)->RawMonitorWait(ti, NULL, 1),
        (*ti)->RawMonitorNotify(ti, NULL), (*ti)->RawMonitorNotifyAll(ti, NULL), (*ti)->DestroyRawMonitor(ti, NULL));
    SAY("enter", (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorEnter(ti, m));
    SAY("exit", (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorExit(ti, m));
}

static void rules(void) {
    enter_and_leave();
    SAY("nobody's", (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorWait(ti, m, 1), (*ti)->RawMonitorNotify(ti, m),
        (*ti)->RawMonitorNotifyAll(ti, m));
    SAY("enter", (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorEnter(ti, m), (*ti)->RawMonitorEnter(ti, m));
    pthread_join(spawn(foreign, NULL), NULL);
    SAY("own", (*ti)->RawMonitorWait(ti, m, 1), (*ti)->RawMonitorWait(ti, m, 20), (*ti)->RawMonitorNotify(ti, m),
        (*ti)->RawMonitorNotifyAll(ti, m));
    SAY("exit", (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorExit(ti, m), (*ti)->RawMonitorExit(ti, m),
        (*ti)->RawMonitorExit(ti, m));
    SAY("destroy", (*ti)->CreateRawMonitor(ti, "n", &other), (*ti)->RawMonitorEnter(ti, other),
        (*ti)->RawMonitorEnter(ti, other), (*ti)->DestroyRawMonitor(ti, other), (*ti)->DestroyRawMonitor(ti, m));
}

static jrawMonitorID turn, late;
static int next;

static void *play(void *name) {
    JNIEnv *jni;
    int own = *(char *)name == 'a';
    (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&jni, NULL);
    (*ti)->RawMonitorEnter(ti, turn);
    for (int round = 0; round < 3; round++) {
        while (next != own) {
            (*ti)->RawMonitorWait(ti, turn, 0);
        }
        say("%s %d", (char *)name, round);
        next = !own;
        (*ti)->RawMonitorNotifyAll(ti, turn);
    }
    (*ti)->RawMonitorExit(ti, turn);
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED) {
    rules();
    (*ti)->CreateRawMonitor(ti, "turn", &turn);
    (*ti)->CreateRawMonitor(ti, "late", &late);
    pthread_t a = spawn(play, "a"), b = spawn(play, "b");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm UNUSED) {
    SAY("dead", (*ti)->CreateRawMonitor(ti, "d", &none), (*ti)->DestroyRawMonitor(ti, late),
        (*ti)->RawMonitorEnter(ti, late), (*ti)->RawMonitorNotify(ti, late), (*ti)->RawMonitorWait(ti, late, 1),
        (*ti)->RawMonitorExit(ti, late));
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    enter_and_leave();
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_each_rule_is_as_in_a_jvm(tmp_path: Path) -> None:
    agent = build(RULES, tmp_path)
    found = agent.lines()
    assert found == agent.java_lines()
    assert found[:2] == ["create: 100 100 0", "null: 50 50 50 50 50 50"]
    assert "another's: 51 51 51 51 51" in found
    assert found[-1] == "dead: 112 112 0 0 0 0"


OWN = r"""
static jrawMonitorID m, gone;
static jrawMonitorID many[1000];
static int entered, told;

static void *waits(void *argument UNUSED) {
    (*ti)->RawMonitorEnter(ti, gone);
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    int status = (*ti)->RawMonitorWait(ti, gone, 0);
    say("woken %d", status);
    say("exit %d", (*ti)->RawMonitorExit(ti, gone));
    return NULL;
}

static void *blocks(void *argument UNUSED) {
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    int status = (*ti)->RawMonitorEnter(ti, gone);
    __atomic_add_fetch(&told, status == JVMTI_ERROR_INVALID_MONITOR, __ATOMIC_SEQ_CST);
    return NULL;
}

static void settle(int wanted) {
    while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) != wanted) {
        nap(1);
    }
}

static int begin(char *options UNUSED) {
    int error = 0, same = 0;
    for (uintptr_t bits = 1; bits; bits <<= 1) { /* not one of them is looked into */
        for (int more = 0; more < 16; more++) {
            error += (*ti)->RawMonitorEnter(ti, (jrawMonitorID)(bits | more)) != JVMTI_ERROR_INVALID_MONITOR;
        }
    }
    say("foreign ones that were taken: %d", error);
    for (int i = 0; i < 1000; i++) {
        error += (*ti)->CreateRawMonitor(ti, "many", &many[i]);
        error += (*ti)->RawMonitorEnter(ti, many[i]);
    }
    for (int i = 0; i < 1000; i++) {
        error += (*ti)->DestroyRawMonitor(ti, many[i]);
    }
    for (int i = 0; i < 1000; i++) {
        (*ti)->CreateRawMonitor(ti, "again", &m);
        same += (*ti)->RawMonitorEnter(ti, many[i]) != JVMTI_ERROR_INVALID_MONITOR || m == many[i];
    }
    say("errors %d, destroyed ones that are taken %d", error, same);

    (*ti)->CreateRawMonitor(ti, "gone", &gone);
    pthread_t waiter = spawn(waits, NULL);
    settle(1);
    while ((*ti)->RawMonitorEnter(ti, gone) != 0) {
    }
    int destroyed = (*ti)->DestroyRawMonitor(ti, gone);
    pthread_join(waiter, NULL);
    say("destroy %d", destroyed);

    (*ti)->CreateRawMonitor(ti, "gone", &gone);
    (*ti)->RawMonitorEnter(ti, gone);
    pthread_t blocked[4];
    entered = 0;
    for (int i = 0; i < 4; i++) {
        blocked[i] = spawn(blocks, NULL);
    }
    settle(4);
    nap(20);
    say("destroy %d", (*ti)->DestroyRawMonitor(ti, gone));
    for (int i = 0; i < 4; i++) {
        pthread_join(blocked[i], NULL);
    }
    say("told %d", told);
    return 0;
}
"""


def test_what_hotspot_does_not_stand(tmp_path: Path) -> None:
    """Foreign and destroyed ones, threads that the VM does not know, and monitors destroyed under those that wait."""
    assert build(OWN, tmp_path).lines() == [
        "foreign ones that were taken: 0",
        "errors 0, destroyed ones that are taken 0",
        "woken 50",
        "exit 50",
        "destroy 0",
        "destroy 0",
        "told 4",
    ]


FORK = r"""
static jrawMonitorID held, own, waited;
static int ready;

static void *holds(void *argument UNUSED) {
    (*ti)->RawMonitorEnter(ti, held);
    (*ti)->RawMonitorEnter(ti, held);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    nap(600000);
    return NULL;
}

static void *waits(void *argument UNUSED) {
    (*ti)->RawMonitorEnter(ti, waited);
    __atomic_store_n(&ready, 2, __ATOMIC_SEQ_CST);
    (*ti)->RawMonitorWait(ti, waited, 0);
    return NULL;
}

static void settle(int wanted) {
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) != wanted) {
        nap(1);
    }
}

static void *late(void *argument UNUSED) {
    say("wait for %d", (*ti)->RawMonitorEnter(ti, own));
    return NULL;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm UNUSED) {
    SAY(getenv("SIDE"), (*ti)->RawMonitorEnter(ti, held), (*ti)->RawMonitorExit(ti, held),
        (*ti)->RawMonitorExit(ti, own), (*ti)->RawMonitorEnter(ti, waited), (*ti)->RawMonitorNotifyAll(ti, waited));
}

static int begin(char *options UNUSED) {
    (*ti)->CreateRawMonitor(ti, "held", &held);
    (*ti)->CreateRawMonitor(ti, "own", &own);
    (*ti)->CreateRawMonitor(ti, "waited", &waited);
    (*ti)->RawMonitorEnter(ti, own);
    spawn(holds, NULL);
    settle(1);
    spawn(waits, NULL);
    settle(2);
    spawn(late, NULL);
    return 0;
}
"""


def test_in_a_forked_child_what_other_threads_had_is_free(tmp_path: Path) -> None:
    """The child's one thread keeps what it had."""
    program = """
        import os, warnings
        warnings.simplefilter("ignore")
        child = os.fork()
        os.environ["SIDE"] = "child"
        if child:
            _, status = os.waitpid(child, 0)
            print("status", status, flush=True)
            os._exit(0)
    """
    found = build(FORK, tmp_path).lines(program)
    assert found == ["child: 0 0 0 0 0", "status 0"]
