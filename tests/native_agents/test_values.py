"""What JNI makes of Python's values where Java has smaller ones, of what CPython has nothing for, and of FatalError."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.c_agents import build

# `show` says what is pending, and clears it.
BEGINNING = r"""
#define E (*env)
static UNUSED void show(JNIEnv *env, const char *what, double value) {
    jthrowable error = E->ExceptionOccurred(env);
    E->ExceptionClear(env);
    if (error == NULL) {
        say("%s: %.17g", what, value);
        return;
    }
    jmethodID text = E->GetMethodID(env, E->FindClass(env, "java/lang/Object"), "toString", "()Ljava/lang/String;");
    const char *chars = E->GetStringUTFChars(env, E->CallObjectMethod(env, error, text), NULL);
    say("%s: %.17g, %s", what, value, chars);
}

static void look(JNIEnv *env);

static void JNICALL on_death(jvmtiEnv *own UNUSED, JNIEnv *env) {
    look(env);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = on_death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_DEATH);
    return 0;
}
"""

VALUES = r"""
#define GET(letter, type, name)                                                                                        \
    show(env, #type " " name, E->Get##type##Field(env, box, E->GetFieldID(env, Box, name, letter)))
#define CALL(letter, type, name)                                                                                       \
    show(env, #type " of " name, E->Call##type##Method(env, box, E->GetMethodID(env, Box, "give",                      \
         "(Ljava/lang/String;)" letter), E->NewStringUTF(env, name)))

static void look(JNIEnv *env) {
    jclass Box = E->FindClass(env, "boxes/Box");
    jobject box = E->NewObject(env, Box, E->GetMethodID(env, Box, "<init>", "()V"));
    GET("Z", Boolean, "large");
    GET("B", Byte, "byte");
    GET("B", Byte, "large");
    GET("S", Short, "short");
    GET("S", Short, "negative");
    GET("I", Int, "int");
    GET("I", Int, "large");
    GET("J", Long, "large");
    GET("J", Long, "huge");
    GET("J", Long, "negative");
    GET("C", Char, "letter");
    GET("C", Char, "emoji");
    GET("C", Char, "byte");
    GET("C", Char, "large");
    GET("F", Float, "half");
    GET("F", Float, "vast");
    GET("F", Float, "int");
    GET("D", Double, "vast");
    GET("D", Double, "beyond");
    GET("I", Int, "half");
    GET("I", Int, "letter");
    GET("I", Int, "true");
    CALL("I", Int, "int");
    CALL("I", Int, "large");
    CALL("J", Long, "huge");
    CALL("B", Byte, "letter");

    E->SetIntField(env, box, E->GetFieldID(env, Box, "large", "I"), -5);
    GET("I", Int, "large");
    E->SetLongField(env, box, E->GetFieldID(env, Box, "large", "J"), INT64_MIN);
    GET("J", Long, "large");
    E->SetCharField(env, box, E->GetFieldID(env, Box, "letter", "C"), 0xd83d);
    GET("C", Char, "letter");
    E->SetFloatField(env, box, E->GetFieldID(env, Box, "half", "F"), 0.1f);
    GET("D", Double, "half");
}
"""
BOXES = """
class Box:
    large, huge, negative, byte, short, int = 1 << 40, 1 << 64, -(1 << 20), 255, -(1 << 15), (1 << 31) - 1
    letter, emoji, half, vast, beyond, true = "z", "\\U0001f600", 0.5, 1e300, 10 ** 400, True
    def give(self, name): return getattr(self, name)
"""


def test_what_does_not_fit_is_an_overflow_error(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(BOXES)
    agent = build(BEGINNING + VALUES, tmp_path)
    large, huge = 1 << 40, 1 << 64
    assert agent.lines("", env={"PYTHONPATH": str(tmp_path)}) == [  # type: ignore[arg-type]
        "Boolean large: 1",
        "Byte byte: 0, 255 does not fit into a Java byte",
        f"Byte large: 0, {large} does not fit into a Java byte",
        f"Short short: {-(1 << 15)}",
        f"Short negative: 0, {-(1 << 20)} does not fit into a Java short",
        f"Int int: {(1 << 31) - 1}",
        f"Int large: 0, {large} does not fit into a Java int",
        f"Long large: {large}",
        f"Long huge: 0, {huge} does not fit into a Java long",
        f"Long negative: {-(1 << 20)}",
        "Char letter: 122",
        "Char emoji: 0, 128512 does not fit into a Java char",
        "Char byte: 255",
        f"Char large: 0, {large} does not fit into a Java char",
        "Float half: 0.5",
        "Float vast: inf",
        "Float int: 2147483648",
        "Double vast: 1.0000000000000001e+300",
        "Double beyond: 0, int too large to convert to float",
        "Int half: 0, 0.5 is not a Java int",
        "Int letter: 0, 'z' is not a Java int",
        "Int true: 1",
        f"Int of int: {(1 << 31) - 1}",
        f"Int of large: 0, {large} does not fit into a Java int",
        f"Long of huge: 0, {huge} does not fit into a Java long",
        "Byte of letter: 0, 'z' is not a Java byte",
        "Int large: -5",
        "Long large: -9.2233720368547758e+18",
        "Char letter: 55357",
        "Double half: 0.10000000149011612",
    ]


MISSING = r"""
static void look(JNIEnv *env) {
    static const jbyte bytes[] = {1, 2, 3};
    JNINativeMethod methods[] = {{"give", "(I)V", (void *)look}, {"other", "()V", (void *)look}};
    jclass Box = E->FindClass(env, "boxes/Box");
    show(env, "defined", E->DefineClass(env, "boxes/New", NULL, bytes, 3) != NULL);
    show(env, "defined without a name", E->DefineClass(env, NULL, NULL, bytes, 3) != NULL);
    show(env, "defined without bytes", E->DefineClass(env, "boxes/New", NULL, bytes, 0) != NULL);
    show(env, "registered", E->RegisterNatives(env, Box, methods, 2));
    show(env, "of a module", E->RegisterNatives(env, E->FindClass(env, "boxes"), methods, 1));
    show(env, "none", E->RegisterNatives(env, Box, methods, 0));
    show(env, "unregistered", E->UnregisterNatives(env, Box));
    jthrowable thrown = (E->DefineClass(env, "boxes/New", NULL, bytes, 3), E->ExceptionOccurred(env));
    E->ExceptionClear(env);
    show(env, "ClassFormatError", E->IsInstanceOf(env, thrown, E->FindClass(env, "java/lang/ClassFormatError")));
    thrown = (E->RegisterNatives(env, Box, methods, 2), E->ExceptionOccurred(env));
    E->ExceptionClear(env);
    show(env, "NoSuchMethodError", E->IsInstanceOf(env, thrown, E->FindClass(env, "java/lang/NoSuchMethodError")));
}
"""


@pytest.mark.parametrize("options", [(), ("-Xcheck:jni",)], ids=["", "checked"])
def test_there_are_no_class_files_and_no_native_methods(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "boxes.py").write_text(BOXES)
    agent = build(BEGINNING + MISSING, tmp_path)
    run = agent.python("", env={"PYTHONPATH": str(tmp_path)}, before=options)
    assert run.stderr == ""
    none = "cannot be made from a class file: CPython runs no bytecode of a JVM"
    assert run.stdout.splitlines() == [
        f"defined: 0, DefineClass: boxes/New {none}",
        f"defined without a name: 0, DefineClass: a class {none}",
        f"defined without bytes: 0, DefineClass: boxes/New {none}",
        "registered: -1, RegisterNatives: boxes.Box.give(I)V: no method of CPython is declared native",
        "of a module: -1, RegisterNatives: boxes.give(I)V: no method of CPython is declared native",
        "none: 0",
        "unregistered: 0",
        "ClassFormatError: 1",
        "NoSuchMethodError: 1",
    ]


NEWER = r"""
static void JNICALL init(jvmtiEnv *own UNUSED, JNIEnv *env, jthread thread) {
    static const jchar units[] = {'a', 0, 0xe9, 0x20ac, 0xd83d, 0xde00};
    SAY("virtual", (*env)->IsVirtualThread(env, thread), (*env)->IsVirtualThread(env, NULL));
    SAY("length", (*env)->GetStringUTFLengthAsLong(env, (*env)->NewString(env, units, 6)),
        (*env)->GetStringUTFLengthAsLong(env, (*env)->NewString(env, units, 0)));
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""


def test_what_came_after_jdk_17_answers_as_in_jdk_25(tmp_path: Path) -> None:
    agent = build(NEWER, tmp_path, version=25)
    assert agent.lines() == agent.java_lines() == ["virtual: 0 0", "length: 14 0"]


FATAL = r"""
static void look(JNIEnv *env) {
    say("before");
    E->FatalError(env, "no way \xc3\xa9 on");
    say("after");
}
"""


def test_fatal_error_ends_the_process_with_its_words(tmp_path: Path) -> None:
    agent = build(BEGINNING + FATAL, tmp_path)
    run = agent.python("print('program', flush=True)")
    assert run.returncode == -signal.SIGABRT
    assert run.stdout.splitlines() == ["program", "before"]
    assert run.stderr.splitlines()[0] == "FATAL ERROR in native method: no way é on"
    java = agent.jdk.run("java", "-Xint", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/null", agent.option, "-version")
    assert java.returncode == run.returncode
    assert [line for line in java.stdout.splitlines() if line in ("before", "after") or line.startswith("FATAL")] == [
        "before",
        run.stderr.splitlines()[0],
    ]
