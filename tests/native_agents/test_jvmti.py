"""What native agents see that no JVM has: modules as classes, extension functions and events; and the table in C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.c_agents import build
from vmscope import native

ROOT = Path(__file__).parents[2]

MODULES = r"""
static jclass find(const char *wanted) {
    jint count;
    jclass *classes;
    char *signature;
    (*ti)->GetLoadedClasses(ti, &count, &classes);
    for (int i = 0; i < count; i++) {
        if ((*ti)->GetClassSignature(ti, classes[i], &signature, NULL) == 0 && strcmp(signature, wanted) == 0) {
            return classes[i];
        }
    }
    say("no %s", wanted);
    return NULL;
}

static jint JNICALL met(jlong a UNUSED, jlong b UNUSED, jlong *tag UNUSED, jint c UNUSED, void *data UNUSED) {
    say("an object of a module");
    return 0;
}

static void look_at(const char *name) {
    jclass module = find(name), declaring;
    jint status, modifiers, count, minor, major;
    jmethodID *methods;
    jfieldID *fields;
    jobject loader;
    jboolean interface, array, modifiable, is_native, synthetic;
    char *text, *signature, *generic;
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = met};
    say("%s", name);
    (*ti)->GetClassStatus(ti, module, &status);
    (*ti)->GetClassModifiers(ti, module, &modifiers);
    (*ti)->IsInterface(ti, module, &interface);
    (*ti)->IsArrayClass(ti, module, &array);
    (*ti)->IsModifiableClass(ti, module, &modifiable);
    SAY("class", status, modifiers, interface, array, modifiable);
    SAY("source", (*ti)->GetSourceFileName(ti, module, &text),
        (*ti)->GetClassVersionNumbers(ti, module, &minor, &major));
    SAY("loader", (*ti)->GetClassLoader(ti, module, &loader), loader != NULL);
    SAY("interfaces", (*ti)->GetImplementedInterfaces(ti, module, &count, (jclass **)&fields), count);
    (*ti)->GetClassMethods(ti, module, &count, &methods);
    for (int i = 0; i < count; i++) {
        char *of;
        (*ti)->GetMethodName(ti, methods[i], &text, &signature, NULL);
        (*ti)->GetMethodDeclaringClass(ti, methods[i], &declaring);
        (*ti)->GetClassSignature(ti, declaring, &of, &generic);
        (*ti)->IsMethodNative(ti, methods[i], &is_native);
        if (strcmp(text, "hls_to_rgb") == 0 || strcmp(text, "sqrt") == 0) {
            say("method %s%s of %s, native %d, generic %d", text, signature, of, is_native, generic != NULL);
        }
    }
    (*ti)->GetClassFields(ti, module, &count, &fields);
    for (int i = 0; i < count; i++) {
        (*ti)->GetFieldName(ti, module, fields[i], &text, &signature, NULL);
        (*ti)->GetFieldModifiers(ti, module, fields[i], &modifiers);
        (*ti)->IsFieldSynthetic(ti, module, fields[i], &synthetic);
        if (strcmp(text, "ONE_SIXTH") == 0 || strcmp(text, "pi") == 0 || strcmp(text, "__name__") == 0) {
            (*ti)->GetFieldDeclaringClass(ti, module, fields[i], &declaring);
            (*ti)->GetClassSignature(ti, declaring, &text, NULL);
            say("field of %s: %s %x %d", text, signature, modifiers, synthetic);
            SAY("watches", (*ti)->SetFieldAccessWatch(ti, module, fields[i]),
                (*ti)->SetFieldModificationWatch(ti, module, fields[i]));
        }
    }
    SAY("retransform", (*ti)->RetransformClasses(ti, 1, &module));
    SAY("redefine", (*ti)->RedefineClasses(ti, 1, &(jvmtiClassDefinition){module, 1, (unsigned char *)"x"}));
    SAY("heap", (*ti)->IterateThroughHeap(ti, 0, module, &callbacks, NULL),
        (*ti)->FollowReferences(ti, 0, module, NULL, &callbacks, NULL),
        (*ti)->SetTag(ti, module, 1), (*ti)->GetTag(ti, module, &(jlong){0}));
    (*ti)->GetConstantPool(ti, module, &count, &minor, (unsigned char **)&text);
    SAY("constants", (*ti)->GetConstantPool(ti, module, &count, &minor, (unsigned char **)&text));
}

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    look_at("Lcolorsys;");
    look_at("Lmath;");
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

OF_OBJECT = "Lbuiltins/object;"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, which most of it needs")
def test_modules_are_classes(tmp_path: Path) -> None:
    lines = build(MODULES, tmp_path).lines("import colorsys, math")
    field = ["field of {}: Lbuiltins/object; 9 0", "watches: 79 79"]
    dunder = ["field of {}: Lbuiltins/object; 1009 1", "watches: 79 79"]
    end = ["retransform: 79", "redefine: 79", "heap: 0 0 0 0"]
    assert lines == [
        "Lcolorsys;",
        "class: 7 17 0 0 0",
        "source: 0 0",
        "loader: 0 1",
        "interfaces: 0 0",
        f"method hls_to_rgb({OF_OBJECT * 3}){OF_OBJECT} of Lcolorsys;, native 0, generic 0",
        *(line.format("Lcolorsys;") for line in dunder + field),
        *end,
        "constants: 0",
        "Lmath;",
        "class: 7 17 0 0 0",
        "source: 101 101",
        *lines[lines.index("source: 101 101") + 1 :][:1],  # math is a file of its own, or within the interpreter
        "interfaces: 0 0",
        f"method sqrt(Lbuiltins/tuple;Lbuiltins/dict;){OF_OBJECT} of Lmath;, native 1, generic 0",
        *(line.format("Lmath;") for line in dunder + field),
        *end,
        "constants: 101",
    ]


EXTENSIONS = r"""
static int calls, resumed, yielded, wrong;

static void JNICALL on_place(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method, jlocation location, ...) {
    char *name;
    wrong += env != ti || jni == NULL || thread == NULL || location < 0;
    wrong += (*ti)->GetMethodName(ti, method, &name, NULL, NULL) != 0;
    resumed += strcmp(name, "numbers") == 0;
}

static void JNICALL on_value(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method, jlocation location,
                             jobject value) {
    char *name;
    jlong size;
    wrong += env != ti || jni == NULL || thread == NULL || location < 0;
    wrong += (*ti)->GetMethodName(ti, method, &name, NULL, NULL) != 0;
    wrong += (*ti)->GetObjectSize(ti, value, &size) != 0;
    yielded += strcmp(name, "numbers") == 0;
}

static void JNICALL on_call(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method,
                            jlocation location UNUSED, jobject callee) {
    char *name;
    (*ti)->GetMethodName(ti, method, &name, NULL, NULL);
    calls += strcmp(name, "numbers") == 0 && callee != NULL;
}

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    SAY("events", resumed, yielded, calls, wrong);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = on_death};
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    jint count;
    jvmtiExtensionFunctionInfo *functions;
    jvmtiExtensionEventInfo *events;
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_DEATH);
    (*ti)->GetExtensionFunctions(ti, &count, &functions);
    for (int i = 0; i < count; i++) {
        say("function %s: %s", functions[i].id, functions[i].short_description);
        for (int j = 0; j < functions[i].param_count; j++) {
            jvmtiParamInfo *each = &functions[i].params[j];
            say("    %s %d %d %d", each->name, each->kind, each->base_type, each->null_ok);
        }
        for (int j = 0; j < functions[i].error_count; j++) {
            say("    error %d", functions[i].errors[j]);
        }
        jint number;
        char **names;
        jboolean *values;
        if (functions[i].param_count == 3 && functions[i].params[0].kind == JVMTI_KIND_IN) {
            SAY("holders", functions[i].func(ti, 0, &number, &names), number);
            say("    %s", names[0] + strlen(names[0]) - 8);
            SAY("none", functions[i].func(ti, 1, &number, &names), number);
            SAY("wrong", functions[i].func(ti, 99, &number, &names), functions[i].func(ti, 0, NULL, NULL));
        } else {
            SAY("flags", functions[i].func(ti, &number, &names, &values));
            for (int j = 0; j < number; j++) {
                if (strcmp(names[j], "walk_any_space") == 0) {
                    say("    %s %d", names[j], values[j]);
                }
            }
        }
    }
    (*ti)->GetExtensionEvents(ti, &count, &events);
    for (int i = 0; i < count; i++) {
        char line[200] = "";
        for (int j = 0; j < events[i].param_count; j++) {
            sprintf(line + strlen(line), " %s %d %d;", events[i].params[j].name, events[i].params[j].kind,
                    events[i].params[j].base_type);
        }
        say("event %s:%s", events[i].id, line);
        jint index = events[i].extension_event_index;
        int is_yield = strcmp(events[i].id, "vmscope.Yield") == 0;
        void *callback = events[i].param_count == 4 ? (void *)on_place : is_yield ? (void *)on_value : (void *)on_call;
        SAY("set", (*ti)->SetExtensionEventCallback(ti, index, (jvmtiExtensionEvent)callback));
        if (strcmp(events[i].id, "vmscope.RaiseC") == 0 || strcmp(events[i].id, "vmscope.ReturnC") == 0) {
            SAY("unset", (*ti)->SetExtensionEventCallback(ti, index, NULL));
        }
    }
    SAY("wrong", (*ti)->SetExtensionEventCallback(ti, 50, (jvmtiExtensionEvent)(void *)on_call),
        (*ti)->SetExtensionEventCallback(ti, 105, (jvmtiExtensionEvent)(void *)on_call));
    return 0;
}
"""
PLACE = "jni_env 92 117; thread 91 110; method 91 114; location 91 105;"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, and so no extension events")
def test_extensions_are_called_and_sent_in_c(tmp_path: Path) -> None:
    program = """
        def numbers():
            for each in range(3):
                yield len("abc")
        list(numbers())
    """
    lines = build(EXTENSIONS, tmp_path).lines(program)
    assert lines == [
        "function vmscope.GetCapabilityHolders: the agents that hold a capability",
        "    capability 91 104 0",
        "    count 96 104 0",
        "    agents 95 115 0",
        *(f"    error {error}" for error in (100, 103, 112, 116)),
        "holders: 0 1",
        "    agent.so",
        "none: 0 0",
        "wrong: 103 100",
        "function vmscope.GetDerivedFlags: what has been made possible so far, by name",
        "    count 96 104 0",
        "    names 95 115 0",
        "    values 94 108 0",
        *(f"    error {error}" for error in (100, 112, 116)),
        "flags: 0",
        "    walk_any_space 1",
        f"event vmscope.Resume: {PLACE}",
        "set: 0",
        f"event vmscope.Yield: {PLACE} value 91 109;",
        "set: 0",
        f"event vmscope.CallC: {PLACE} callee 91 109;",
        "set: 0",
        f"event vmscope.ReturnC: {PLACE} callee 91 109;",
        "set: 0",
        "unset: 0",
        f"event vmscope.RaiseC: {PLACE} callee 91 109;",
        "set: 0",
        "unset: 0",
        "wrong: 103 103",
        lines[-1],
    ]
    name, resumed, yielded, called, wrong = lines[-1].split()
    assert name == "events:"
    assert int(resumed) >= 3
    assert (int(yielded), int(called), int(wrong)) == (3, 4, 0)  # range is a C function too


@pytest.mark.skipif(not hasattr(native, "load_jni"), reason="no C part, or no GIL")
def test_the_table_in_c_is_that_of_the_code() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "jvmti_slots.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
