"""Each function of a JNIEnv with one argument that is wrong, in C, and what has to come of it."""

from __future__ import annotations

from collections.abc import Iterator

from vmscope.tool.jni.interface import POINTERS, REFERENCES
from vmscope.tool.jni.table import FUNCTIONS, PRIMITIVES, JniFunction

# What is right for each type; where a function needs another, by its name
RIGHT = {
    "object": "basket", "class": "Basket", "string": "text", "throwable": "error", "weak": "weak", "array": "ints",
    "object[]": "things", "method": "total", "field": "count", "chars": '"word"', "chars*": "room",
    "units": "(void *)room", "units*": "(void *)room", "bytes": "(void *)room", "natives": "&native", "flag*": "NULL",
    "memory": "room",
    "values": "values", "vm*": "&other", "...": "", "list": "",
    **{f"{each}[]": f"{each}s" for each in PRIMITIVES},
    **{form: "(void *)room" for each in PRIMITIVES for form in (f"{each}*", f"const_{each}*")},
}  # fmt: skip
STATIC = {"method": "price", "field": "all"}
OWN = {
    "ThrowNew": {"class": "Illegal"},
    "NewObject": {"method": "init"}, "NewObjectV": {"method": "init"}, "NewObjectA": {"method": "init"},
    "FromReflectedMethod": {"object": "reflected"}, "FromReflectedField": {"object": "reflected_field"},
    "FindClass": {"chars": '"shop/Basket"'},
    "GetMethodID": {"chars": '"total", "()I"'}, "GetStaticMethodID": {"chars": '"price", "(I)I"'},
    "GetFieldID": {"chars": '"count", "I"'}, "GetStaticFieldID": {"chars": '"all", "I"'},
}  # fmt: skip
WRONG = {
    "null": "NULL",
    "foreign": "(void *)room",
    "odd": "(void *)0x100000005",
    "deleted": "deleted",
    "deleted global": "deleted_global",
    "another thread's": "foreign_local",
    "of another class": "basket",
}
IGNORED = {"FatalError", "IsVirtualThread", "GetStringUTFLengthAsLong"}
TELLS = {"GetObjectRefType"}  # is asked about what may be no reference
SILENT_NULL = {"NewDirectByteBuffer"}
DELETES = {"DeleteLocalRef", "DeleteGlobalRef", "DeleteWeakGlobalRef"}


class Case:
    """A call with one wrong argument: whether it is told, and whether an exception is pending without -Xcheck:jni."""

    def __init__(self, row: JniFunction, place: int, what: str) -> None:
        self.row = row
        self.place = place
        self.what = what
        self.kind = row.parameters[place]

    @property
    def label(self) -> str:
        return f"{self.row.name} {self.place} {self.what}"

    @property
    def told(self) -> bool:
        kind = self.kind.removesuffix("?")
        if self.row.name in TELLS:
            return False
        if self.what == "null" and (self.kind.endswith("?") or self.row.name in SILENT_NULL):
            return False
        if kind == "values":
            return "Static" in self.row.name  # the other methods here take none
        return kind in REFERENCES or kind in ("method", "field", "natives") or kind in POINTERS or kind == "memory"

    @property
    def pending(self) -> bool:
        return self.told and self.row.name not in DELETES


def cases() -> Iterator[Case]:
    for row in FUNCTIONS.values():
        if row.name in IGNORED:
            continue
        for place, kind in enumerate(row.parameters):
            plain = kind.removesuffix("?")
            for what in WRONG:
                if plain in REFERENCES or plain == "weak":
                    of_any = plain in ("object", "weak")
                    if what != "of another class" or not of_any:
                        yield Case(row, place, what)
                elif plain in ("method", "field"):
                    if what in ("null", "foreign", "odd"):
                        yield Case(row, place, what)
                elif what == "null" and (plain in POINTERS or plain in ("memory", "flag*", "values")):
                    yield Case(row, place, what)


def right(row: JniFunction, place: int) -> str:
    kind = row.parameters[place].removesuffix("?")
    given = OWN.get(row.name, {}).get(kind)
    if given is not None and kind == "chars" and "," in given:
        return given.split(", ")[place - 1]
    if given is None and ("Static" in row.name) and kind in STATIC:
        return STATIC[kind]
    return given or RIGHT.get(kind, "0")


def call(row: JniFunction, wrong_place: int = -1, wrong: str = "") -> str:
    """In C."""
    given = [wrong if place == wrong_place else right(row, place) for place in range(len(row.parameters))]
    if row.parameters[-1:] == ("list",):
        return f"listed_{row.slot}({', '.join(given[:-1])}, 7)"
    if row.parameters[-1:] == ("...",):
        given[-1] = "7"
    before = "E->PushLocalFrame(env, 4); " if row.name == "PopLocalFrame" else ""
    return f"{before}E->{row.name}({', '.join(['env', *given])})"


def listed(row: JniFunction) -> str:
    """A function with arguments of its own for one that takes a list."""
    names = [f"a{place}" for place in range(len(row.parameters) - 1)]
    body = f"E->{row.name}({', '.join(['env', *names, 'list'])})"
    if row.result == "void":
        body += "; int64_t found = 0"
    else:
        body = f"int64_t found = (int64_t){body}"
    declared = ", ".join(f"void *{name}" for name in names)
    return (
        f"static int64_t listed_{row.slot}({declared}, ...) {{ va_list list; va_start(list, {names[-1]}); {body};"
        " va_end(list); return found; }"
    )


def c_source() -> str:
    """Prints, for each case: its label, what came back, and whether an exception was pending."""
    lists = "\n".join(listed(row) for row in FUNCTIONS.values() if row.parameters[-1:] == ("list",))
    calls = "\n".join(_case(case) for case in cases())
    pending = "\n".join(
        f'    pend(); {_value(row, call(row))}; E->ExceptionClear(env); show("pending {row.name}", found);'
        for row in FUNCTIONS.values()
        if row.name not in IGNORED and not row.name.startswith(("Throw", "ExceptionDescribe"))
    )
    return PREPARED.replace("LISTS", lists).replace("CASES", calls).replace("PENDING", pending)


def _value(row: JniFunction, given: str) -> str:
    before, _, last = given.rpartition("; ")
    return f"{before}; found = 0; {last}" if row.result == "void" else f"{before}; found = (int64_t){last}"


def _case(case: Case) -> str:
    given = _value(case.row, call(case.row, case.place, WRONG[case.what]))
    return f'    {given}; said("{case.label}", found);'


PREPARED = r"""
#define E (*env)
static JNIEnv *env;
static jclass Basket, Illegal;
static jobject basket, error, reflected, reflected_field, deleted, deleted_global, foreign_local;
static jweak weak;
static jstring text;
static jobjectArray things;
static jintArray ints;
static jbooleanArray booleans;
static jbyteArray bytes;
static jcharArray chars;
static jshortArray shorts;
static jlongArray longs;
static jfloatArray floats;
static jdoubleArray doubles;
static jmethodID total, price, init;
static jfieldID count, all;
static char room[256];
static jvalue values[1];
static JNINativeMethod native;
static JavaVM *other;

static void said(const char *label, int64_t found) {
    int pending = E->ExceptionCheck(env);
    E->ExceptionClear(env);
    say("case %s: %lld %d", label, (long long)found, pending);
}

static void show(const char *label, int64_t found) {
    say("%s %lld", label, (long long)found);
}

static void pend(void) {
    E->Throw(env, error);
}

#pragma GCC diagnostic ignored "-Wnonnull"
LISTS

static void *elsewhere(void *lock) {
    JNIEnv *own;
    (*vm)->AttachCurrentThread(vm, (void **)&own, NULL);
    foreign_local = (*own)->NewLocalRef(own, basket);
    pthread_mutex_unlock(lock);
    pause();
    return NULL;
}

static void JNICALL ready(jvmtiEnv *given UNUSED, JNIEnv *own, jthread thread UNUSED) {
    env = own;
    Basket = E->NewGlobalRef(env, E->FindClass(env, "shop/Basket"));
    Illegal = E->FindClass(env, "java/lang/IllegalArgumentException");
    init = E->GetMethodID(env, Basket, "<init>", "()V");
    total = E->GetMethodID(env, Basket, "total", "()I");
    price = E->GetStaticMethodID(env, Basket, "price", "(I)I");
    count = E->GetFieldID(env, Basket, "count", "I");
    all = E->GetStaticFieldID(env, Basket, "all", "I");
    basket = E->NewGlobalRef(env, E->NewObject(env, Basket, init));
    weak = E->NewWeakGlobalRef(env, basket);
    E->ThrowNew(env, Illegal, "wrong");
    error = E->ExceptionOccurred(env);
    E->ExceptionClear(env);
    reflected = E->ToReflectedMethod(env, Basket, total, JNI_FALSE);
    reflected_field = E->ToReflectedField(env, Basket, count, JNI_FALSE);
    text = E->NewStringUTF(env, "word");
    things = E->NewObjectArray(env, 2, Basket, NULL);
    ints = E->NewIntArray(env, 4);
    booleans = E->NewBooleanArray(env, 4);
    bytes = E->NewByteArray(env, 4);
    chars = E->NewCharArray(env, 4);
    shorts = E->NewShortArray(env, 4);
    longs = E->NewLongArray(env, 4);
    floats = E->NewFloatArray(env, 4);
    doubles = E->NewDoubleArray(env, 4);
    values[0].j = 7;
    native.name = "total";
    native.signature = "()I";
    deleted = E->NewLocalRef(env, basket);
    E->DeleteLocalRef(env, deleted);
    deleted_global = E->NewGlobalRef(env, basket);
    E->DeleteGlobalRef(env, deleted_global);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    pthread_detach(spawn(elsewhere, &lock));
    pthread_mutex_lock(&lock);
    int64_t found;
    say("begin %d", E->ExceptionCheck(env));
CASES
    say("now pending");
PENDING
    say("end");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMInit = ready};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
"""
