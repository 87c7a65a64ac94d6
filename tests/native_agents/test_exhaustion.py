"""ResourceExhausted as agents want it that end a process without memory: without capabilities, from JNI too."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import WITH_MONITORING, build

AGENT = r"""
#include <sys/resource.h>

static int told;

static void JNICALL exhausted(jvmtiEnv *jvmti UNUSED, JNIEnv *jni UNUSED, jint flags, const void *reserved UNUSED,
                              const char *description) {
    told++;
    SAY(description, flags);
}

static void JNICALL death(jvmtiEnv *jvmti UNUSED, JNIEnv *jni) {
    struct rlimit limit = {1L << 31, 1L << 31};
    SAY("by the program", told);
    setrlimit(RLIMIT_AS, &limit);
    jbyteArray array = (*jni)->NewByteArray(jni, 0x7fffffff);
    SAY("by JNI", told, array == NULL, (*jni)->ExceptionCheck(jni));
    (*jni)->ExceptionClear(jni);
    (*jni)->ThrowNew(jni, (*jni)->FindClass(jni, "builtins/MemoryError"), "thrown");
    SAY("thrown", told);
    (*jni)->ExceptionClear(jni);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = death, .ResourceExhausted = exhausted};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, NULL);
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
}
"""
PROGRAM = """
try:
    raise MemoryError("all gone")
except MemoryError:
    pass
"""


@WITH_MONITORING
def test_who_has_enabled_it_is_told(tmp_path: Path) -> None:
    run = build(AGENT, tmp_path).python(PROGRAM)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "all gone: 3",
        "by the program: 1",
        "MemoryError: 3",
        "by JNI: 2 1 1",
        "thrown: 2",
    ]
