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


GROWN = r"""
static void JNICALL vm_init(jvmtiEnv *given UNUSED, JNIEnv *env, jthread thread UNUSED) {
    jclass odd = (*env)->FindClass(env, "odd");
    jmethodID resize = (*env)->GetStaticMethodID(env, odd, "resize", "([II)V");
    for (jint was = 0; was < 4; was += 3) {
        for (jint will = 0; will < 4000000; will += 1999999) {
            jintArray numbers = (*env)->NewIntArray(env, was);
            jint *elements = (*env)->GetIntArrayElements(env, numbers, NULL), first = -1;
            if (was) {
                elements[0] = 7;
            }
            (*env)->CallStaticVoidMethod(env, odd, resize, numbers, will);
            (*env)->ReleaseIntArrayElements(env, numbers, elements, 0);
            if (will) {
                (*env)->GetIntArrayRegion(env, numbers, 0, 1, &first);
            }
            SAY("elements", was, will, (*env)->GetArrayLength(env, numbers), first, (*env)->ExceptionCheck(env));
        }
    }
    char bytes[8];
    jobject buffer = (*env)->NewDirectByteBuffer(env, bytes, sizeof bytes);
    SAY("address", (*env)->GetDirectBufferAddress(env, buffer) == bytes);
    jmethodID release = (*env)->GetStaticMethodID(env, odd, "release", "(Ljava/nio/ByteBuffer;)V");
    (*env)->CallStaticVoidMethod(env, odd, release, buffer);
    void *address = (*env)->GetDirectBufferAddress(env, buffer);
    SAY("address", address != NULL, (*env)->ExceptionCheck(env));
    (*env)->ExceptionClear(env);
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
        "sly: odd.Sly has made a int: not an exception",
        "wide: CallStaticObjectMethod: wide has more than 255 parameters",
    ]
    assert not run.stderr


def test_memory_of_what_the_program_has_resized_or_released(tmp_path: Path) -> None:
    """Of an array there comes back what was given out, as far as there is room for it."""
    program = "def resize(numbers, size): numbers[:] = numbers * 0 + type(numbers)('i', bytes(4 * size))\n"
    (tmp_path / "odd.py").write_text(program + "def release(buffer): buffer.release()\n")
    run = build(GROWN, tmp_path).python("", env={"PYTHONPATH": str(tmp_path)})
    assert run.returncode == 0, (run.returncode, run.stdout, run.stderr)
    assert run.stdout.splitlines() == [
        "elements: 0 0 0 -1 0",
        "elements: 0 1999999 1999999 0 0",
        "elements: 0 3999998 3999998 0 0",
        "elements: 3 0 0 -1 0",
        "elements: 3 1999999 1999999 7 0",
        "elements: 3 3999998 3999998 7 0",
        "address: 1",
        "address: 0 1",
    ]
    assert not run.stderr
