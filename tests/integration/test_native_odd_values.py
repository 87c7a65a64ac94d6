"""What an agent makes up, and classes of the program that are not what an agent expects of one."""

from __future__ import annotations

from pathlib import Path

from tests.c_agents import build

ODD = f"""\
class Sly(Exception):
    def __new__(cls, *given): return 5

def wide({", ".join(f"a{place}" for place in range(300))}): return 1
"""

FREED = r"""
static void JNICALL vm_init(jvmtiEnv *given, JNIEnv *env, jthread thread) {
    (void)given;
    jobject made[10];
    for (int i = 0; i < 10; i++) {
        made[i] = (*env)->NewGlobalRef(env, thread);
    }
    for (int i = 0; i < 10; i++) {
        (*env)->DeleteGlobalRef(env, made[i]);
    }
    int null = 0, refused = 0;
    for (int i = 0; i < 10; i++) {
        for (uintptr_t serial = 0; serial < 10; serial++) {
            jobject handle = (jobject)(serial << 32 | (((uintptr_t)made[i] & 0xffffffff) & ~(uintptr_t)3));
            null += handle != NULL && (*env)->IsSameObject(env, handle, NULL);
            refused += (*env)->ExceptionCheck(env);
            (*env)->ExceptionClear(env);
        }
    }
    say("%d are null, %d are none", null, refused);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = vm_init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""

CALLS = r"""
static void told(JNIEnv *env, const char *what) {
    jthrowable error = (*env)->ExceptionOccurred(env);
    (*env)->ExceptionClear(env);
    if (error == NULL) {
        say("%s: nothing pending", what);
        return;
    }
    jclass of = (*env)->GetObjectClass(env, error);
    jmethodID message = (*env)->GetMethodID(env, of, "getMessage", "()Ljava/lang/String;");
    jstring text = (*env)->CallObjectMethod(env, error, message);
    const char *shown = (*env)->GetStringUTFChars(env, text, NULL);
    say("%s: %s", what, shown);
    (*env)->ReleaseStringUTFChars(env, text, shown);
}

static void JNICALL vm_init(jvmtiEnv *given, JNIEnv *env, jthread thread UNUSED) {
    jclass module = (*env)->FindClass(env, "odd"), sly = (*env)->FindClass(env, "odd/Sly");
    say("ThrowNew %d", (*env)->ThrowNew(env, sly, "x"));
    told(env, "sly");
    jint count;
    jmethodID *methods;
    (*given)->GetClassMethods(given, module, &count, &methods);
    (*env)->CallStaticObjectMethod(env, module, methods[0], NULL, NULL);
    told(env, "wide");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = vm_init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_the_place_of_a_freed_reference_is_none(tmp_path: Path) -> None:
    """Whatever the bits above it are: only a null handle is null."""
    assert build(FREED, tmp_path).lines() == ["0 are null, 99 are none"]


def test_odd_classes_and_methods_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    run = build(CALLS, tmp_path).python("", env={"PYTHONPATH": str(tmp_path)})
    assert run.returncode == 0, (run.stdout, run.stderr)
    assert run.stdout.splitlines() == [
        "ThrowNew -1",
        "sly: odd.Sly has made a int, which is no exception",
        "wide: CallStaticObjectMethod: wide has more than 255 parameters",
    ]
    assert not run.stderr
