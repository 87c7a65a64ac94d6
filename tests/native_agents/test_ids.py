"""Ids of methods and fields: the same for all who ask, whoever asks first, and whatever the class makes of equality."""

from __future__ import annotations

from pathlib import Path

from tests import programs
from tests.c_agents import build

ASKERS, NAMES = 8, 150
MODULE = f"""
import sys

class Kind(type):
    def __eq__(self, other):
        return True  # and so no hash

class Goods(metaclass=Kind):
    {"; ".join(f"field{i} = {i}" for i in range(NAMES))}
    @staticmethod
    def plain(): return 7

class Other(metaclass=Kind):
    field0 = 1000

{"".join(f"def method{i}(self): return {i}" + chr(10) for i in range(NAMES))}
for number in range({NAMES}):
    setattr(Goods, f"method{{number}}", globals()[f"method{{number}}"])
    setattr(Other, f"method{{number}}", globals()[f"method{{number}}"])
sys.setswitchinterval(1e-6)
"""
AGENT = rf"""
enum {{ ASKERS = {ASKERS}, NAMES = {NAMES} }};
static jfieldID fields[ASKERS][NAMES];
static jmethodID methods[ASKERS][NAMES];
static jclass goods;

static void *ask(void *place) {{
    int asker = (int)(intptr_t)place;
    JNIEnv *jni;
    if ((*vm)->AttachCurrentThread(vm, (void **)&jni, NULL) != JNI_OK) {{
        return NULL;
    }}
    for (int i = 0; i < NAMES; i++) {{
        char name[32];
        snprintf(name, sizeof name, "field%d", i);
        fields[asker][i] = (*jni)->GetStaticFieldID(jni, goods, name, "I");
        snprintf(name, sizeof name, "method%d", i);
        methods[asker][i] = (*jni)->GetMethodID(jni, goods, name, "()I");
    }}
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}}

static void JNICALL death(jvmtiEnv *jvmti UNUSED, JNIEnv *jni) {{
    pthread_t threads[ASKERS];
    goods = (*jni)->NewGlobalRef(jni, (*jni)->FindClass(jni, "goods/Goods"));
    jclass other = (*jni)->FindClass(jni, "goods/Other");
    for (int i = 0; i < ASKERS; i++) {{
        threads[i] = spawn(ask, (void *)(intptr_t)i);
    }}
    for (int i = 0; i < ASKERS; i++) {{
        pthread_join(threads[i], NULL);
    }}
    int same = 0, right = 0;
    jobject object = (*jni)->AllocObject(jni, goods);
    for (int i = 0; i < NAMES; i++) {{
        for (int asker = 0; asker < ASKERS; asker++) {{
            same += fields[asker][i] != NULL && fields[asker][i] == fields[0][i];
            same += methods[asker][i] != NULL && methods[asker][i] == methods[0][i];
        }}
        right += (*jni)->GetStaticIntField(jni, goods, fields[0][i]) == i;
        right += (*jni)->CallIntMethod(jni, object, methods[0][i]) == i;
    }}
    jfieldID field = (*jni)->GetStaticFieldID(jni, other, "field0", "I");
    SAY("ids", same, right, field != fields[0][0], (*jni)->GetStaticIntField(jni, other, field));
}}

static int begin(char *options UNUSED) {{
    jvmtiEventCallbacks callbacks = {{.VMDeath = death}};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
}}
"""


def test_eight_threads_are_given_the_same_ids(tmp_path: Path) -> None:
    (tmp_path / "goods.py").write_text(MODULE)
    agent = build(AGENT, tmp_path)
    run = agent.python("import goods", env={"PYTHONPATH": str(tmp_path)}, before=("-Xcheck:jni",))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"ids: {2 * ASKERS * NAMES} {2 * NAMES} 1 1000\n"


SHOP = programs.source("native_ids/shop")
SAME = r"""
static const char *const names[] = {"<init>", "sell", "close"}, *const types[] = {"()V", "(I)I", "(I)I"};
static jmethodID asked[3];
static int entered, framed, listed, inherited;

static void JNICALL entry(jvmtiEnv *jvmti, JNIEnv *jni UNUSED, jthread thread, jmethodID method) {
    for (int i = 0; i < 3; i++) {
        if (method == asked[i]) {
            jvmtiFrameInfo frame;
            jint count;
            entered |= 1 << i;
            (*jvmti)->GetStackTrace(jvmti, thread, 0, 1, &frame, &count);
            framed |= (count == 1 && frame.method == asked[i]) << i;
        }
    }
}

static void JNICALL death(jvmtiEnv *jvmti, JNIEnv *jni) {
    jclass shop = (*jni)->FindClass(jni, "goods/Shop"), stall = (*jni)->FindClass(jni, "goods/Stall");
    for (int i = 0; i < 3; i++) {
        asked[i] = i == 2 ? (*jni)->GetStaticMethodID(jni, shop, names[i], types[i])
                          : (*jni)->GetMethodID(jni, shop, names[i], types[i]);
    }
    inherited = (*jni)->GetMethodID(jni, stall, "sell", "(I)I") == asked[1];
    jint count;
    jmethodID *methods;
    (*jvmti)->GetClassMethods(jvmti, shop, &count, &methods);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < 3; j++) {
            listed |= (methods[i] == asked[j]) << j;
        }
    }
    jclass module = (*jni)->FindClass(jni, "goods");
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*jni)->CallStaticVoidMethod(jni, module, (*jni)->GetStaticMethodID(jni, module, "run", "()V"));
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    SAY("same", entered, framed, listed, inherited);
    /* What one agent calls with other types too has another id for that, and calls with the first one's go on. */
    jmethodID other = (*jni)->GetMethodID(jni, shop, "sell", "(D)D");
    jobject object = (*jni)->NewObject(jni, shop, asked[0]);
    SAY("calls", other != asked[1], (*jni)->CallIntMethod(jni, object, asked[1], 7),
        (*jni)->CallDoubleMethod(jni, object, other, 1.5) == 1.5);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = death, .MethodEntry = entry};
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
}
"""


def test_a_method_has_one_id(tmp_path: Path) -> None:
    """Asked for by name, with an event, in a frame, in a list."""
    (tmp_path / "goods.py").write_text(SHOP)
    agent = build(SAME, tmp_path)
    run = agent.python("import goods", env={"PYTHONPATH": str(tmp_path)}, before=("-Xcheck:jni",))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "same: 7 7 7 1\ncalls: 1 7 1\n"


REPORTED = r"""
static int right;

static void check(jvmtiEnv *jvmti, JNIEnv *jni, jclass class, const char *asked, const char *type, int is_static) {
    jmethodID first = is_static ? (*jni)->GetStaticMethodID(jni, class, asked, type)
                                : (*jni)->GetMethodID(jni, class, asked, type);
    char *name, *signature;
    (*jvmti)->GetMethodName(jvmti, first, &name, &signature, NULL);
    jmethodID again = is_static ? (*jni)->GetStaticMethodID(jni, class, name, signature)
                                : (*jni)->GetMethodID(jni, class, name, signature);
    right += first != NULL && again == first;
}

static void JNICALL death(jvmtiEnv *jvmti, JNIEnv *jni) {
    jclass shop = (*jni)->FindClass(jni, "goods/Shop"), module = (*jni)->FindClass(jni, "goods");
    check(jvmti, jni, shop, "<init>", "()V", 0);
    check(jvmti, jni, shop, "sell", "(Ljava/lang/Object;)Ljava/lang/Object;", 0);
    check(jvmti, jni, shop, "close", "(Ljava/lang/Object;)I", 1);
    check(jvmti, jni, module, "run", "()V", 1);
    jmethodID init = (*jni)->GetMethodID(jni, shop, "__init__", "()V"),
              made = (*jni)->GetMethodID(jni, shop, "<init>", "(Lbuiltins/object;)Lbuiltins/object;");
    right += init != NULL && init == made && init == (*jni)->GetMethodID(jni, shop, "<init>", "()V");
    jobject object = (*jni)->NewObject(jni, shop, init);
    (*jni)->CallVoidMethod(jni, object, init);
    (*jni)->CallNonvirtualVoidMethod(jni, object, shop, init);
    right += object != NULL && !(*jni)->ExceptionCheck(jni);
    SAY("right", right);
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = death};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
}
"""


def test_the_reported_signature_gives_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "goods.py").write_text(SHOP)
    agent = build(REPORTED, tmp_path)
    run = agent.python("import goods", env={"PYTHONPATH": str(tmp_path)}, before=("-Xcheck:jni",))
    assert (run.returncode, run.stdout, run.stderr) == (0, "right: 6\n", "")


ONE_OF_SEVERAL = r"""
static jmethodID asked;
static int entered;

static void JNICALL entry(jvmtiEnv *jvmti UNUSED, JNIEnv *jni UNUSED, jthread thread UNUSED, jmethodID method) {
    entered += method == asked;
}

static void JNICALL death(jvmtiEnv *jvmti, JNIEnv *jni) {
    jclass shop = (*jni)->FindClass(jni, "goods/Shop"), module = (*jni)->FindClass(jni, "goods");
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*jni)->CallStaticVoidMethod(jni, module, (*jni)->GetStaticMethodID(jni, module, "run", "()V"));
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    jobject object = (*jni)->NewObject(jni, shop, (*jni)->GetMethodID(jni, shop, "<init>", "()V"));
    jvalue values[] = {{.MEMBER = VALUE}};
    SAY("called", entered, (*jni)->FUNCTION(jni, object, asked, values[0].MEMBER) == VALUE,
        (*jni)->FUNCTIONA(jni, object, asked, values) == VALUE);
}

/* Of each agent before the first of them calls anything. */
static void JNICALL init(jvmtiEnv *jvmti UNUSED, JNIEnv *jni, jthread thread UNUSED) {
    asked = (*jni)->GetMethodID(jni, (*jni)->FindClass(jni, "goods/Shop"), "sell", "(TYPE)TYPE");
}

static int begin(char *options UNUSED) {
    jvmtiEventCallbacks callbacks = {.VMDeath = death, .VMInit = init, .MethodEntry = entry};
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    (*ti)->AddCapabilities(ti, &wanted);
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
}
"""
SEVERAL = {
    "I": ("i", "CallIntMethod", "-7"),
    "J": ("j", "CallLongMethod", "(1LL << 40)"),
    "D": ("d", "CallDoubleMethod", "1.5"),
}


def test_agents_that_ask_with_other_types_have_the_same_id(tmp_path: Path) -> None:
    """Each has the one that events have, and calls with its own arguments."""
    (tmp_path / "goods.py").write_text(SHOP)
    agents = []
    for letter, (member, call, value) in SEVERAL.items():
        source = ONE_OF_SEVERAL.replace("FUNCTION", call).replace("MEMBER", member)
        source = source.replace("VALUE", value).replace("TYPE", letter)
        agents.append(build(source, tmp_path, f"asks{letter}"))
    options = [agent.option for agent in agents[1:]]
    run = agents[0].python("import goods", env={"PYTHONPATH": str(tmp_path)}, before=("-Xcheck:jni", *options))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "called: 1 1 1\n" * 3
