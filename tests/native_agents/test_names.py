"""What classes, functions, fields and threads of a program are called to an agent in C, in modified UTF-8."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import programs
from tests.c_agents import build

AGENT = r"""
static void show(const char *what, const char *text) {
    char line[900] = "";
    for (const unsigned char *each = (const unsigned char *)text; each != NULL && *each; each++) {
        int plain = *each > ' ' && *each < 0x7f;
        snprintf(line + strlen(line), sizeof line - strlen(line), plain ? "%c" : "<%02x>", *each);
    }
    say("%s %s", what, text == NULL ? "none" : line);
}

static void show_method(jmethodID method) {
    char *name, *signature, *generic, *of;
    jclass owner;
    SAY("method", (*ti)->GetMethodName(ti, method, &name, &signature, &generic));
    (*ti)->GetMethodDeclaringClass(ti, method, &owner);
    (*ti)->GetClassSignature(ti, owner, &of, NULL);
    show("  name", name);
    show("  signature", signature);
    show("  generic", generic);
    show("  of", of);
    jint count;
    jvmtiLocalVariableEntry *table;
    if ((*ti)->GetLocalVariableTable(ti, method, &count, &table) == 0) {
        for (int i = 0; i < count; i++) {
            show("  variable", table[i].name);
            show("    signature", table[i].signature);
        }
    }
}

static void show_class(JNIEnv *jni, jclass class) {
    char *signature, *generic, *file;
    jint count;
    jmethodID *methods;
    jfieldID *fields;
    (*ti)->GetClassSignature(ti, class, &signature, &generic);
    show("class", signature);
    show("  generic", generic);
    if (strlen(signature) > 2) {
        signature[strlen(signature) - 1] = 0;
        SAY("  found", (*jni)->IsSameObject(jni, (*jni)->FindClass(jni, signature + 1), class));
    }
    if ((*ti)->GetSourceFileName(ti, class, &file) == 0) {
        show("  file", strrchr(file, '/'));
    }
    (*ti)->GetClassMethods(ti, class, &count, &methods);
    for (int i = 0; i < count; i++) {
        show_method(methods[i]);
    }
    (*ti)->GetClassFields(ti, class, &count, &fields);
    for (int i = 0; i < count; i++) {
        char *name;
        if ((*ti)->GetFieldName(ti, class, fields[i], &name, &signature, NULL) == 0 && name[0] != '_') {
            show("  field", name);
            show("    signature", signature);
        }
    }
}

static void JNICALL hook(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jclass class UNUSED, jobject loader UNUSED,
                         const char *name, jobject domain UNUSED, jint size UNUSED, const unsigned char *data UNUSED,
                         jint *new_size UNUSED, unsigned char **new_data UNUSED) {
    show("loads", name);
}

static void JNICALL exhausted(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jint flags UNUSED, const void *reserved UNUSED,
                              const char *description) {
    show("exhausted", description);
}

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni) {
    jint count;
    jclass *classes;
    jthread *threads;
    char *text, *value;
    jvmtiThreadInfo info;
    (*ti)->GetLoadedClasses(ti, &count, &classes);
    for (int i = 0; i < count; i++) {
        (*ti)->GetClassSignature(ti, classes[i], &text, NULL);
        if (strncmp(text, "Lhard", 5) == 0) {
            show_class(jni, classes[i]);
        }
    }
    (*ti)->GetAllThreads(ti, &count, &threads);
    for (int i = 0; i < count; i++) {
        if ((*ti)->GetThreadInfo(ti, threads[i], &info) == 0 && strncmp(info.name, "thread", 6) == 0) {
            show("thread", info.name);
        }
    }
    SAY("set", (*ti)->GetSystemProperty(ti, "caf\xc3\xa9", &value));
    show("property", value);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = on_death, .ClassFileLoadHook = hook, .ResourceExhausted = exhausted};
    jvmtiCapabilities wanted;
    (*ti)->GetPotentialCapabilities(ti, &wanted);
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetSystemProperty(ti, "caf\xc3\xa9", "\xed\xa0\xbd\xed\xb8\x80 \xed\xa0\x80");
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_DEATH);
    if (strcmp(options, "hook") == 0) {
        enable(JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
        enable(JVMTI_EVENT_RESOURCE_EXHAUSTED);
    }
    return 0;
}
"""
DESERET = "<ed><a0><81><ed><b0><80>"  # of U+10400, a letter
MODULE = programs.source("native_names/module")
GROESSE = "gr<c3><b6><c3><9f>e"
OBJECT, TUPLE, DICT = "Lbuiltins/object;", "Lbuiltins/tuple;", "Lbuiltins/dict;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hard").mkdir()
    (tmp_path / "hard" / "__init__.py").write_text("")
    (tmp_path / "hard" / "größe.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


def lines(folder: Path, program: str, options: str = "") -> list[str]:
    run = build(AGENT, folder).python(program, options=options, env={"PYTHONPATH": str(folder)})
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
    return run.stdout.splitlines()


def method(name: str, parameters: str, written: str | None, of: str, *variables: str) -> list[str]:
    """What is said of one; `written` as in the source, with <20> for a space."""
    typed = [(each.strip("*"), {"*rest": TUPLE, "**more": DICT}.get(each, OBJECT)) for each in variables]
    return [
        "method: 0",
        f"  name {name}",
        f"  signature ({parameters}){OBJECT}",
        f"  generic {written or 'none'}",
        f"  of {of}",
        *(line for name, kind in typed for line in (f"  variable {name}", f"    signature {kind}")),
    ]


def field(name: str) -> list[str]:
    return [f"  field {name}", f"    signature {OBJECT}"]


def start(signature: str, file: str) -> list[str]:
    return [f"class {signature}", "  generic none", "  found: 1", f"  file /{file}.py"]


def by_class(found: list[str]) -> dict[str, list[str]]:
    """In whatever order they come."""
    parts = "\n".join(found).split("\nclass ")
    parts[0] = parts[0].removeprefix("class ")
    parts[-1] = parts[-1].partition("\nthread ")[0].partition("\nset: ")[0]
    return {part.splitlines()[0]: f"class {part}".splitlines() for part in parts}


def test_each_thing_has_its_name_and_signature(folder: Path) -> None:
    found = lines(folder, "import hard.größe")
    assert found[-2:] == ["set: 0", "property <ed><a0><bd><ed><b8><80><20><ed><a0><80>"]
    module = f"Lhard/{GROESSE};"
    letter = f"Lhard/{GROESSE}/{DESERET};"
    line = f"Lhard/{GROESSE}/{DESERET}$Line;"
    written = "(a,<20>b,<20>/,<20>c,<20>*rest,<20>d,<20>e,<20>**more)"
    assert by_class(found) == {
        "Lhard;": start("Lhard;", "__init__"),
        module: [
            *start(module, GROESSE),
            *method("plain", OBJECT * 5 + TUPLE + DICT, written, module, *"a b c d e *rest **more x".split()),
            *method("waits", OBJECT, "(a)", module, "a"),
            *method("yields", "", "()", module),
            *field(GROESSE),
        ],
        letter: [
            *start(letter, GROESSE),
            *method("__init__", OBJECT * 2, "(self,<20>artikel)", letter, "self", "artikel"),
            *method("ask", OBJECT, "(self)", letter, "self"),
            *method("made", OBJECT, "(cls)", letter, "cls"),
            *method("helper", OBJECT, f"({DESERET})", letter, DESERET),
            *method("size", OBJECT, "(self)", letter, "self"),
            *field("feld"),
            *field("Line"),
        ],
        line: [
            *start(line, GROESSE),
            *method("__eq__", OBJECT * 2, "(self,<20>other)", line, "self", "other"),
        ],
    }


def test_names_are_the_same_each_time(folder: Path) -> None:
    """In another order of loading, in another process, too."""
    first = by_class(lines(folder, "import hard.größe"))
    assert first == by_class(lines(folder, "import colorsys, sys; import hard.größe; del sys.modules['colorsys']"))


def test_what_no_utf_8_has_goes_over_as_java_has_it(folder: Path) -> None:
    program = """
        import threading, hard
        code = (lambda: 0).__code__.replace(co_name="a\\0b\\ud800\\U0001f600", co_filename=hard.__file__)
        hard.odd = type(lambda: 0)(code, {})
        threading.Thread(target=threading.Event().wait, name="thread\\0\\udfff", daemon=True).start()
    """
    found = lines(folder, program)
    name = "a<c0><80>b<ed><a0><80><ed><a0><bd><ed><b8><80>"
    assert by_class(found)["Lhard;"] == [*start("Lhard;", "__init__"), *method(name, "", "()", "Lhard;")]
    assert found[-3] == "thread thread<c0><80><ed><bf><bf>"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 has no sys.monitoring, which resources need")
def test_what_events_tell_in_text_is_modified_utf_8(folder: Path) -> None:
    program = """
        import hard.größe
        for text in "\\0\\U0001f600\\ud800", "plain", "a\\0b":
            try:
                raise MemoryError(text)
            except MemoryError:
                pass
    """
    found = lines(folder, program, options="hook")
    assert [each for each in found if each.startswith(("loads", "exhausted"))] == [
        "loads hard",
        f"loads hard/{GROESSE}",
        "exhausted <c0><80><ed><a0><bd><ed><b8><80><ed><a0><80>",
        "exhausted plain",
        "exhausted a<c0><80>b",
    ]


WHOSE = r"""
#include <dlfcn.h>

static void holds(const char *when) {
    jvmtiEnv *made;
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    SAY(when, (*vm)->GetEnv(vm, (void **)&made, JVMTI_VERSION_11), (*made)->AddCapabilities(made, &wanted));
}

static void *later(void *when) {
    JNIEnv *jni;
    (*vm)->AttachCurrentThread(vm, (void **)&jni, NULL);
    holds(when);
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void JNICALL init(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED) {
    holds("in a callback");
    pthread_join(spawn(later, "on its own thread"), NULL);
    void (*helper)(JavaVM *) = (void (*)(JavaVM *))dlsym(dlopen(getenv("HELPER"), RTLD_NOW), "makes");
    helper(vm);
}

static void JNICALL on_death(jvmtiEnv *env UNUSED, JNIEnv *jni UNUSED) {
    jint count, number;
    jvmtiExtensionFunctionInfo *functions;
    char **names;
    (*ti)->GetExtensionFunctions(ti, &count, &functions);
    for (int i = 0; i < count; i++) {
        if (strcmp(functions[i].id, "vmscope.GetCapabilityHolders") == 0) {
            functions[i].func(ti, 0, &number, &names);
            for (int j = 0; j < number; j++) {
                say("%s", strrchr(names[j], '/') + 1);
            }
        }
    }
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init, .VMDeath = on_death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    enable(JVMTI_EVENT_VM_DEATH);
    holds("while it is loaded");
    return 0;
}
"""
HELPER = r"""
void makes(JavaVM *of) {
    jvmtiEnv *made;
    jvmtiCapabilities wanted = {.can_tag_objects = 1};
    SAY("in a library of its own", (*of)->GetEnv(of, (void **)&made, JVMTI_VERSION_11),
        (*made)->AddCapabilities(made, &wanted));
}

static int begin(char *options UNUSED) {
    return 0;
}
"""


def test_an_environment_is_the_agent_s_whose_code_makes_it(tmp_path: Path) -> None:
    helper = build(HELPER, tmp_path, "helper").library
    agent = build(WHOSE, tmp_path, "whose")
    assert agent.lines("", env={"HELPER": str(helper)}) == [  # type: ignore[arg-type]
        "while it is loaded: 0 0",
        "in a callback: 0 0",
        "on its own thread: 0 0",
        "in a library of its own: 0 0",
        *["libwhose.so"] * 3,
        "libhelper.so",
    ]
