"""What GetEnv gives for which version, in each phase and on a thread that the VM does not know: as HotSpot 25."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

# JNI 10's, whose functions an agent's own table has to have; those since are there all the same.
OWN_VERSION = f"GetVersion: {0xA0000}"
AGENT = r"""
static void ask(const char *when, int attached) {
    static const jint odd[] = {0, 1, -1, 0x10000, 0x10003, 0x10005, 0x10007, 0x10009, 0x10010, 0x20000, 0x7fffffff,
                               0x30000000, 0x30010003, 0x30020000, 0x30080000, 0x300a0000, 0x31010000, 0x10010000};
    void *env;
    char line[1000] = "";
    for (int i = 0; i < 30; i++) { /* the long-lived numbering, then that of each JDK */
        jint jni = i < 9 ? 0x10000 + i : i << 16, tools = i < 3 ? 0x30010000 + (i << 8) : 0x30000000 + (i << 16);
        env = (void *)1;
        int first = (*vm)->GetEnv(vm, &env, jni), given = env != NULL;
        env = (void *)1;
        int second = attached ? (*vm)->GetEnv(vm, &env, tools) : 0; /* HotSpot crashes */
        sprintf(line + strlen(line), " %d:%d,%d,%d,%d", i, first, given, second, second == 0 && env != NULL);
    }
    say("%s:%s", when, line);
    line[0] = 0;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (attached || odd[i] >> 28 != 3) {
            sprintf(line + strlen(line), " %x:%d", odd[i], (*vm)->GetEnv(vm, &env, odd[i]));
        }
    }
    say("%s, odd ones:%s", when, line);
}

static void *unattached(void *when) {
    ask(when, 0);
    return NULL;
}

static void JNICALL on_start(jvmtiEnv *env UNUSED, JNIEnv *jni) {
    ask("VMStart", 1);
    SAY("GetVersion", (*jni)->GetVersion(jni));
}

static void JNICALL on_init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED) {
    ask("VMInit", 1);
    pthread_join(spawn(unattached, "unattached"), NULL);
}

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    ask("VMDeath", 1);
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *given UNUSED) {
    ask("Agent_OnUnload", 1);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init, .VMDeath = on_death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_START);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    ask("Agent_OnLoad", 1);
    return 0;
}
"""


def test_get_env_gives_what_it_gives_in_a_jvm(tmp_path: Path) -> None:
    agent = build(AGENT, tmp_path, version=25)
    theirs, ours = agent.java_lines(), agent.lines()
    assert [line for line in ours if line.startswith("GetVersion")] == [OWN_VERSION]
    assert ours == [OWN_VERSION if line.startswith("GetVersion") else line for line in theirs]
    assert len(theirs) == 13
