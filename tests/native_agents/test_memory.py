"""Memory that is refused in the middle of a function: it says so, and keeps nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.c_agents import build

# The agent stands before the C library, so that it can refuse memory to the extension: the nth block of a call.
AGENT = r"""
#include <dlfcn.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

static __thread __attribute__((tls_model("initial-exec"))) int watching;
static int left, refused, count;
static void *blocks[1000];

static int of_extension(const void *caller) {
    Dl_info found;
    return dladdr(caller, &found) && found.dli_fname != NULL && strstr(found.dli_fname, "/_native.") != NULL;
}

void *malloc(size_t size) {
    if (!watching || !of_extension(__builtin_return_address(0))) {
        return __libc_malloc(size);
    }
    if (left-- == 0) {
        refused++;
        return NULL;
    }
    return count == 1000 ? NULL : (blocks[count++] = __libc_malloc(size));
}

void free(void *memory) {
    for (int i = 0; watching && i < count; i++) {
        if (blocks[i] == memory) {
            blocks[i] = blocks[--count];
            break;
        }
    }
    __libc_free(memory);
}

/* The place that the next local reference gets: how many there are. */
static long place(JNIEnv *jni, jobject object) {
    jobject next = (*jni)->NewLocalRef(jni, object);
    (*jni)->DeleteLocalRef(jni, next);
    return ((uintptr_t)next & 0xffffffff) >> 2;
}

#define TRY(name, ...)                                                                                                 \
    if ((*ti)->name(ti, __VA_ARGS__) != 0) { /* the tables are large enough, and the ids there */                      \
        say(#name " fails");                                                                                           \
    }                                                                                                                  \
    for (int n = 0;; n++) {                                                                                            \
        memset(room, 0x55, sizeof room);                                                                               \
        long before = place(jni, class);                                                                               \
        left = n;                                                                                                      \
        count = refused = 0;                                                                                           \
        watching = 1;                                                                                                  \
        int error = (*ti)->name(ti, __VA_ARGS__);                                                                      \
        watching = 0;                                                                                                  \
        if (error == 0 && refused == 0 && n > 0) {                                                                     \
            say(#name " %s", n > 1 ? "more than once" : "once");                                                       \
            break;                                                                                                     \
        }                                                                                                              \
        int written = 0;                                                                                               \
        for (size_t i = 0; i < sizeof room / sizeof *room; i++) {                                                      \
            written += room[i] != 0x5555555555555555;                                                                  \
        }                                                                                                              \
        if (error != 110 || refused != 1 || count != 0 || written != 0 || place(jni, class) != before) {               \
            say(#name ": at %d: %d, %d blocks stay, %d written, %ld references", n, error, count, written,             \
                place(jni, class) - before);                                                                           \
            break;                                                                                                     \
        }                                                                                                              \
    }

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni) {
    static jlong room[16];
    jlong tag = 7;
    jint many;
    jmethodID *methods;
    jthread current;
    jthreadGroup *groups;
    void *a = &room[0], *b = &room[2], *c = &room[4], *d = &room[6];
    jclass class = (*jni)->FindClass(jni, "boxes/Box");
    (*ti)->GetClassMethods(ti, class, &many, &methods);
    (*ti)->GetCurrentThread(ti, &current);
    (*ti)->GetTopThreadGroups(ti, &many, &groups);
    (*ti)->SetTag(ti, class, tag);
    TRY(GetThreadInfo, current, a);
    TRY(GetLocalVariableTable, methods[0], a, b);
    TRY(GetLineNumberTable, methods[0], a, b);
    TRY(GetBytecodes, methods[0], a, b);
    TRY(GetMethodName, methods[0], a, b, c);
    TRY(GetClassSignature, class, a, b);
    TRY(GetClassMethods, class, a, b);
    TRY(GetClassFields, class, a, b);
    TRY(GetConstantPool, class, a, b, c);
    TRY(GetSourceFileName, class, a);
    TRY(GetLoadedClasses, a, b);
    TRY(GetAllThreads, a, b);
    TRY(GetThreadGroupInfo, groups[0], a);
    TRY(GetThreadGroupChildren, groups[0], a, b, c, d);
    TRY(GetAllStackTraces, 10, a, b);
    TRY(GetThreadListStackTraces, 1, &current, 10, a);
    TRY(GetObjectsWithTags, 1, &tag, a, b, c);
    TRY(GetSystemProperties, a, b);
    TRY(GetSystemProperty, "java.vm.name", a);
    TRY(GetExtensionFunctions, a, b);
    TRY(GetExtensionEvents, a, b);
    TRY(GetJNIFunctionTable, a);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = on_death};
    jvmtiCapabilities wanted;
    (*ti)->GetPotentialCapabilities(ti, &wanted);
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""
ONE, MORE = "once", "more than once"
BLOCKS = {
    "GetThreadInfo": ONE,
    "GetLocalVariableTable": MORE,
    "GetLineNumberTable": ONE,
    "GetBytecodes": ONE,
    "GetMethodName": MORE,
    "GetClassSignature": ONE,
    "GetClassMethods": ONE,
    "GetClassFields": ONE,
    "GetConstantPool": ONE,
    "GetSourceFileName": ONE,
    "GetLoadedClasses": ONE,
    "GetAllThreads": ONE,
    "GetThreadGroupInfo": ONE,
    "GetThreadGroupChildren": ONE,
    "GetAllStackTraces": ONE,
    "GetThreadListStackTraces": ONE,
    "GetObjectsWithTags": MORE,
    "GetSystemProperties": MORE,
    "GetSystemProperty": ONE,
    "GetExtensionFunctions": MORE,
    "GetExtensionEvents": MORE,
    "GetJNIFunctionTable": ONE,
}


@pytest.mark.skipif("VMSCOPE_AGENT_CFLAGS" in os.environ, reason="a sanitizer has a malloc of its own")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, and so no extension events")
def test_a_function_that_gets_no_memory_keeps_none(tmp_path: Path) -> None:
    """Error 110, whichever of its blocks it does not get; nothing is written, and no reference is left."""
    (tmp_path / "boxes.py").write_text(
        "class Box:\n    size = 1\n    def give(self, name):\n        found = name\n        return found\n"
    )
    agent = build(AGENT, tmp_path)
    run = agent.python("", env={"PYTHONPATH": str(tmp_path), "LD_PRELOAD": str(agent.library)})
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [f"{name} {how}" for name, how in BLOCKS.items()]
