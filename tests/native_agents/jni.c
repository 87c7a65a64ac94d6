/* Each function of a JNIEnv that is not of a family of types, with right arguments; the families are made from the
 * table. What it prints is the same on a JVM and on CPython. */
#define E (*env)
#define CLEAR() (E->ExceptionCheck(env) ? (E->ExceptionClear(env), 1) : 0)

static JNIEnv *env;
static jclass Object, String, Basket, Crate;
static jobject basket, crate;

/* How an object shows itself, in a buffer of its own for each call in a line. */
static const char *
shown(jobject thing)
{
    static char lines[4][200];
    static int next;
    char *line = lines[next++ % 4];
    if (thing == NULL) {
        return "null";
    }
    jmethodID method = E->GetMethodID(env, Object, "toString", "()Ljava/lang/String;");
    jstring text = E->CallObjectMethod(env, thing, method);
    const char *chars = E->GetStringUTFChars(env, text, NULL);
    snprintf(line, sizeof lines[0], "%s", chars);
    E->ReleaseStringUTFChars(env, text, chars);
    E->DeleteLocalRef(env, text);
    return line;
}

static void
classes(void)
{
    jclass line = E->FindClass(env, "shop/Basket$Line");
    SAY("found", Object != NULL, String != NULL, Basket != NULL, line != NULL);
    SAY("not found", E->FindClass(env, "shop/Nothing") == NULL, CLEAR(), E->FindClass(env, "no/such/Thing") == NULL,
        CLEAR(), E->FindClass(env, "shop.Basket") == NULL, CLEAR(), E->FindClass(env, "Lshop/Basket;") == NULL, CLEAR(),
        E->FindClass(env, "[X") == NULL, CLEAR(), E->FindClass(env, "") == NULL, CLEAR());
    SAY("arrays", E->FindClass(env, "[I") != NULL, E->FindClass(env, "[[D") != NULL,
        E->FindClass(env, "[Lshop/Basket;") != NULL);
    SAY("super", E->IsSameObject(env, E->GetSuperclass(env, Crate), Basket), E->GetSuperclass(env, Object) == NULL);
    SAY("assignable", E->IsAssignableFrom(env, Crate, Basket), E->IsAssignableFrom(env, Basket, Crate),
        E->IsAssignableFrom(env, Crate, Object));
    SAY("instance", E->IsInstanceOf(env, crate, Basket), E->IsInstanceOf(env, basket, Crate),
        E->IsInstanceOf(env, basket, Object), E->IsInstanceOf(env, NULL, Crate), E->IsInstanceOf(env, basket, String));
    SAY("class", E->IsSameObject(env, E->GetObjectClass(env, crate), Crate),
        E->IsSameObject(env, E->GetObjectClass(env, Crate), E->FindClass(env, "java/lang/Class")));
    SAY("module", E->GetModule(env, Basket) != NULL);
    SAY("virtual", E->GetVersion(env) >= 0x000a0000);
}

static void
objects(void)
{
    jmethodID plain = E->GetMethodID(env, Basket, "<init>", "()V");
    jmethodID named = E->GetMethodID(env, Basket, "<init>", "(Ljava/lang/String;I)V");
    jvalue values[2] = {{.l = E->NewStringUTF(env, "apples")}, {.i = 3}};
    say("new %s %s %s", shown(E->NewObject(env, Basket, plain)),
        shown(E->NewObject(env, Basket, named, values[0].l, 4)), shown(E->NewObjectA(env, Basket, named, values)));
    SAY("none", E->GetMethodID(env, Basket, "<init>", "(IIIIIII)V") == NULL, CLEAR());
    jobject raw = E->AllocObject(env, Basket);
    E->CallNonvirtualVoidMethod(env, raw, Basket, named, values[0].l, 5);
    say("alloc %s", shown(raw));
    SAY("interface", E->AllocObject(env, E->FindClass(env, "shop/Able")) == NULL, CLEAR());
}

static jobject
made(jmethodID method, ...)
{
    va_list list;
    va_start(list, method);
    jobject found = E->NewObjectV(env, Basket, method, list);
    va_end(list);
    return found;
}

static void
methods(void)
{
    jmethodID named = E->GetMethodID(env, Basket, "<init>", "(Ljava/lang/String;I)V");
    jmethodID total = E->GetMethodID(env, Basket, "total", "()I"), again = E->GetMethodID(env, Basket, "total", "()I");
    say("list %s", shown(made(named, E->NewStringUTF(env, "pears"), 6)));
    SAY("ids", total != NULL, total == again, total == E->GetMethodID(env, Crate, "total", "()I"));
    SAY("wrong", E->GetMethodID(env, Basket, "nothing", "()V") == NULL, CLEAR(),
        E->GetMethodID(env, Basket, "total", "(III)I") == NULL, CLEAR(),
        E->GetMethodID(env, Basket, "total", "garbage") == NULL, CLEAR(),
        E->GetStaticMethodID(env, Basket, "total", "()I") == NULL, CLEAR(),
        E->GetMethodID(env, Basket, "price", "(I)I") == NULL, CLEAR());
    jmethodID price = E->GetStaticMethodID(env, Basket, "price", "(I)I");
    SAY("inherited", E->CallStaticIntMethod(env, Crate, price, 7), E->CallIntMethod(env, basket, total));
    jmethodID name = E->GetMethodID(env, Basket, "name", "()Ljava/lang/String;");
    say("virtual %s %s %s", shown(E->CallObjectMethod(env, basket, name)), shown(E->CallObjectMethod(env, crate, name)),
        shown(E->CallNonvirtualObjectMethod(env, crate, Basket, name)));
    jmethodID mixed = E->GetStaticMethodID(env, Basket, "mixed", "(ZBCSIJFDLjava/lang/String;DDDDDDJJJF)D");
    double sum =
        E->CallStaticDoubleMethod(env, Basket, mixed, JNI_TRUE, -2, 'c', -300, 70000, 1LL << 40, 1.5f, 2.25,
                                  E->NewStringUTF(env, "four"), 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7LL, 8LL, 9LL, 0.5f);
    say("mixed %.3f", sum);
    jmethodID fail = E->GetMethodID(env, Basket, "fail", "(Ljava/lang/String;)I");
    int zero = E->CallIntMethod(env, basket, fail, E->NewStringUTF(env, "rotten"));
    jthrowable error = E->ExceptionOccurred(env);
    SAY("fails", zero, E->ExceptionCheck(env), error != NULL);
    E->ExceptionClear(env);
    jmethodID message = E->GetMethodID(env, E->GetObjectClass(env, error), "getMessage", "()Ljava/lang/String;");
    say("message %s", shown(E->CallObjectMethod(env, error, message)));
    jobject reflected = E->ToReflectedMethod(env, Basket, total, JNI_FALSE);
    SAY("reflected", reflected != NULL, E->CallIntMethod(env, basket, E->FromReflectedMethod(env, reflected)));
}

static void
fields(void)
{
    jfieldID count = E->GetFieldID(env, Basket, "count", "I"), all = E->GetStaticFieldID(env, Basket, "all", "I");
    SAY("fields", count != NULL, all != NULL, count == E->GetFieldID(env, Basket, "count", "I"),
        E->GetFieldID(env, Basket, "nothing", "I") == NULL, CLEAR(),
        E->GetStaticFieldID(env, Basket, "nothing", "I") == NULL, CLEAR(),
        E->GetFieldID(env, Basket, "count", "Q") == NULL, CLEAR(),
        E->GetStaticFieldID(env, Basket, "count", "I") == NULL, CLEAR());
    SAY("inherits", E->GetIntField(env, crate, count), E->GetStaticIntField(env, Crate, all));
    jobject reflected = E->ToReflectedField(env, Basket, count, JNI_FALSE);
    SAY("reflected", reflected != NULL, E->FromReflectedField(env, reflected) == count);
}

static void
show_units(const char *name, const jchar *units, int count)
{
    char line[200] = "";
    for (int i = 0; i < count; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), " %04x", units[i]);
    }
    say("%s:%s", name, line);
}

static void
strings(void)
{
    static const jchar units[] = {'a', 0, 0xe9, 0x20ac, 0xd83d, 0xde00, 0xdc00, 'z'};
    jstring text = E->NewString(env, units, 8), empty = E->NewString(env, units, 0);
    jboolean copy = 7;
    SAY("lengths", E->GetStringLength(env, text), E->GetStringUTFLength(env, text), E->GetStringLength(env, empty),
        E->GetStringUTFLength(env, empty));
    const jchar *wide = E->GetStringChars(env, text, NULL);
    show_units("units", wide, 8);
    E->ReleaseStringChars(env, text, wide);
    wide = E->GetStringCritical(env, text, &copy);
    show_units("critical", wide, 8);
    E->ReleaseStringCritical(env, text, wide);
    const char *narrow = E->GetStringUTFChars(env, text, &copy);
    SAY("copy", copy);
    jchar bytes[32];
    for (int i = 0; i < 20; i++) {
        bytes[i] = (unsigned char)narrow[i];
    }
    show_units("utf", bytes, 20);
    jstring back = E->NewStringUTF(env, narrow);
    E->ReleaseStringUTFChars(env, text, narrow);
    SAY("back", E->GetStringLength(env, back), E->NewStringUTF(env, NULL) == NULL,
        E->CallBooleanMethod(env, back, E->GetMethodID(env, Object, "equals", "(Ljava/lang/Object;)Z"), text));
    jchar part[3];
    char utf[16] = "";
    E->GetStringRegion(env, text, 2, 3, part);
    show_units("region", part, 3);
    E->GetStringUTFRegion(env, text, 2, 2, utf);
    SAY("utf region", strlen(utf), (unsigned char)utf[0], (unsigned char)utf[1], (unsigned char)utf[2]);
    E->GetStringRegion(env, text, 7, 2, part);
    int first = CLEAR();
    E->GetStringRegion(env, text, -1, 1, part);
    int second = CLEAR();
    E->GetStringUTFRegion(env, text, 0, 9, utf);
    SAY("outside", first, second, CLEAR());
}

static void
arrays(void)
{
    jobjectArray things = E->NewObjectArray(env, 3, Object, basket);
    E->SetObjectArrayElement(env, things, 1, NULL);
    E->SetObjectArrayElement(env, things, 2, crate);
    SAY("objects", E->GetArrayLength(env, things),
        E->IsSameObject(env, E->GetObjectArrayElement(env, things, 0), basket),
        E->GetObjectArrayElement(env, things, 1) == NULL,
        E->IsSameObject(env, E->GetObjectArrayElement(env, things, 2), crate));
    SAY("outside", E->GetObjectArrayElement(env, things, 3) == NULL, CLEAR(),
        E->GetObjectArrayElement(env, things, -1) == NULL, CLEAR(),
        (E->SetObjectArrayElement(env, things, 3, NULL), CLEAR()), E->NewObjectArray(env, -1, Object, NULL) == NULL,
        CLEAR(), E->NewIntArray(env, -1) == NULL, CLEAR());
    jintArray numbers = E->NewIntArray(env, 4);
    jint *critical = E->GetPrimitiveArrayCritical(env, numbers, NULL);
    critical[2] = 77;
    E->ReleasePrimitiveArrayCritical(env, numbers, critical, 0);
    jint seen = 0;
    E->GetIntArrayRegion(env, numbers, 2, 1, &seen);
    SAY("critical", seen);
    jbyteArray none = E->NewByteArray(env, 0);
    jbyte *nothing = E->GetByteArrayElements(env, none, NULL);
    SAY("empty", E->GetArrayLength(env, none), nothing != NULL);
    E->ReleaseByteArrayElements(env, none, nothing, 0);
}

static void
references(void)
{
    jobject local = E->NewLocalRef(env, basket), global = E->NewGlobalRef(env, basket);
    jweak weak = E->NewWeakGlobalRef(env, basket);
    SAY("kinds", E->GetObjectRefType(env, local), E->GetObjectRefType(env, global), E->GetObjectRefType(env, weak),
        E->GetObjectRefType(env, NULL));
    SAY("same", E->IsSameObject(env, local, global), E->IsSameObject(env, global, weak),
        E->IsSameObject(env, local, crate), E->IsSameObject(env, NULL, NULL), E->IsSameObject(env, local, NULL));
    SAY("null", E->NewLocalRef(env, NULL) == NULL, E->NewGlobalRef(env, NULL) == NULL,
        E->NewWeakGlobalRef(env, NULL) == NULL);
    E->DeleteLocalRef(env, local);
    E->DeleteGlobalRef(env, global);
    E->DeleteWeakGlobalRef(env, weak);
    E->DeleteLocalRef(env, NULL);
    E->DeleteGlobalRef(env, NULL);
    E->DeleteWeakGlobalRef(env, NULL);
    SAY("capacity", E->EnsureLocalCapacity(env, 1000), E->EnsureLocalCapacity(env, -1) < 0,
        E->PushLocalFrame(env, -1) < 0, CLEAR());
    SAY("push", E->PushLocalFrame(env, 10), E->PushLocalFrame(env, 10));
    jobject inner = E->NewLocalRef(env, basket);
    jobject kept = E->PopLocalFrame(env, inner);
    SAY("pop", E->GetObjectRefType(env, kept), E->IsSameObject(env, kept, basket), E->PopLocalFrame(env, NULL) == NULL);
    for (int i = 0; i < 1000; i++) {
        (void)E->NewLocalRef(env, basket);
    }
    E->PushLocalFrame(env, 10); /* left open */
}

static void
errors(void)
{
    jclass illegal = E->FindClass(env, "java/lang/IllegalArgumentException");
    SAY("none", E->ExceptionCheck(env), E->ExceptionOccurred(env) == NULL);
    SAY("new", E->ThrowNew(env, illegal, "so \xc3\xa9"), E->ExceptionCheck(env));
    jthrowable error = E->ExceptionOccurred(env);
    E->ExceptionClear(env);
    SAY("thrown", E->IsInstanceOf(env, error, illegal), E->ExceptionCheck(env), E->Throw(env, error),
        E->IsSameObject(env, E->ExceptionOccurred(env), error));
    E->ExceptionClear(env);
    jmethodID message = E->GetMethodID(env, illegal, "getMessage", "()Ljava/lang/String;");
    jstring text = E->CallObjectMethod(env, error, message);
    SAY("message", E->GetStringLength(env, text));
    SAY("without", E->ThrowNew(env, illegal, NULL));
    error = E->ExceptionOccurred(env);
    E->ExceptionClear(env);
    SAY("no message", E->CallObjectMethod(env, error, message) == NULL);
    E->ExceptionDescribe(env); /* nothing */
}

static void *
enters(void *word)
{
    JNIEnv *own;
    (*vm)->AttachCurrentThread(vm, (void **)&own, NULL);
    jobject lock = word;
    int status = (*own)->MonitorEnter(own, lock);
    say("entered %d", status);
    SAY("left", (*own)->MonitorExit(own, lock));
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void
monitors(void)
{
    jobject lock = E->NewGlobalRef(env, E->AllocObject(env, Object));
    SAY("enter", E->MonitorEnter(env, lock), E->MonitorEnter(env, lock), E->MonitorExit(env, lock));
    pthread_t other = spawn(enters, lock);
    nap(50);
    say("leaves");
    int status = E->MonitorExit(env, lock);
    pthread_join(other, NULL);
    say("exit %d", status);
    SAY("not entered", E->MonitorExit(env, lock) < 0, CLEAR());
    E->DeleteGlobalRef(env, lock);
}

static void
buffers(void)
{
    static char memory[16] = "direct";
    jobject buffer = E->NewDirectByteBuffer(env, memory, 16);
    SAY("buffer", E->GetDirectBufferAddress(env, buffer) == memory, E->GetDirectBufferCapacity(env, buffer));
    SAY("none", E->GetDirectBufferAddress(env, basket) == NULL, E->GetDirectBufferCapacity(env, basket));
    JavaVM *own = NULL;
    SAY("vm", E->GetJavaVM(env, &own), own == vm);
    JNINativeMethod native = {"total", "()I", (void *)buffers};
    SAY("natives", E->RegisterNatives(env, Basket, &native, 1) < 0, CLEAR(), E->UnregisterNatives(env, Basket));
    SAY("define", E->DefineClass(env, "shop/New", NULL, (const jbyte *)memory, 6) == NULL, CLEAR());
}

/* What agents look for. */
static void
java(void)
{
    jclass thread = E->FindClass(env, "java/lang/Thread"), integer = E->FindClass(env, "java/lang/Integer");
    jclass group = E->FindClass(env, "java/lang/ThreadGroup"), system = E->FindClass(env, "java/lang/System");
    jmethodID init = E->GetMethodID(env, thread, "<init>", "(Ljava/lang/ThreadGroup;Ljava/lang/String;)V");
    jmethodID name = E->GetMethodID(env, thread, "getName", "()Ljava/lang/String;");
    jobject made = E->NewObject(env, thread, init, NULL, E->NewStringUTF(env, "agent"));
    say("thread %s", shown(E->CallObjectMethod(env, made, name)));
    E->CallVoidMethod(env, made, E->GetMethodID(env, thread, "setDaemon", "(Z)V"), JNI_TRUE);
    SAY("daemon", E->CallBooleanMethod(env, made, E->GetMethodID(env, thread, "isDaemon", "()Z")),
        E->CallBooleanMethod(env, made, E->GetMethodID(env, thread, "isAlive", "()Z")));
    jmethodID current = E->GetStaticMethodID(env, thread, "currentThread", "()Ljava/lang/Thread;");
    jobject own = E->CallStaticObjectMethod(env, thread, current);
    SAY("own", E->IsInstanceOf(env, own, thread),
        E->CallBooleanMethod(env, own, E->GetMethodID(env, thread, "isAlive", "()Z")));
    jmethodID of = E->GetStaticMethodID(env, integer, "valueOf", "(I)Ljava/lang/Integer;");
    jobject box = E->CallStaticObjectMethod(env, integer, of, -12345);
    say("box %s", shown(box));
    SAY("unboxed", E->CallIntMethod(env, box, E->GetMethodID(env, integer, "intValue", "()I")),
        E->CallIntMethod(env, box, E->GetMethodID(env, Object, "hashCode", "()I")) != 0);
    jclass real = E->FindClass(env, "java/lang/Double"), truth = E->FindClass(env, "java/lang/Boolean");
    jobject half =
        E->CallStaticObjectMethod(env, real, E->GetStaticMethodID(env, real, "valueOf", "(D)Ljava/lang/Double;"), 2.75);
    jobject yes = E->CallStaticObjectMethod(
        env, truth, E->GetStaticMethodID(env, truth, "valueOf", "(Z)Ljava/lang/Boolean;"), JNI_TRUE);
    SAY("boxes", E->CallIntMethod(env, half, E->GetMethodID(env, real, "intValue", "()I")),
        E->CallBooleanMethod(env, yes, E->GetMethodID(env, truth, "booleanValue", "()Z")));
    jmethodID get = E->GetStaticMethodID(env, system, "getProperty", "(Ljava/lang/String;)Ljava/lang/String;");
    say("property %s %s", shown(E->CallStaticObjectMethod(env, system, get, E->NewStringUTF(env, "shop.name"))),
        shown(E->CallStaticObjectMethod(env, system, get, E->NewStringUTF(env, "no.such"))));
    jmethodID class_name = E->GetMethodID(env, E->FindClass(env, "java/lang/Class"), "getName", "()Ljava/lang/String;");
    say("names %s %s", shown(E->CallObjectMethod(env, Basket, class_name)),
        shown(E->CallObjectMethod(env, E->FindClass(env, "shop/Basket$Line"), class_name)));
    static const char *const known[] = {
        "java/lang/ClassLoader",
        "java/lang/Throwable",
        "java/lang/Exception",
        "java/lang/RuntimeException",
        "java/lang/Error",
        "java/lang/OutOfMemoryError",
        "java/lang/NullPointerException",
        "java/lang/InternalError",
        "java/lang/Runtime",
        "java/util/Properties",
        "java/lang/Character",
        "java/lang/Long",
        "java/lang/Float",
        "java/lang/Byte",
        "java/lang/Short",
        "jdk/internal/vm/VMSupport",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (E->FindClass(env, known[i]) == NULL) {
            say("%s is missing", known[i]);
            E->ExceptionClear(env);
        }
    }
    SAY("group", E->GetMethodID(env, group, "getName", "()Ljava/lang/String;") != NULL,
        E->GetMethodID(env, thread, "resume", "()V") != NULL);
    jclass properties = E->FindClass(env, "java/util/Properties");
    jobject table = E->NewObject(env, properties, E->GetMethodID(env, properties, "<init>", "()V"));
    jmethodID set =
        E->GetMethodID(env, properties, "setProperty", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/Object;");
    jmethodID look = E->GetMethodID(env, properties, "getProperty", "(Ljava/lang/String;)Ljava/lang/String;");
    jstring key = E->NewStringUTF(env, "key");
    SAY("properties", E->CallObjectMethod(env, table, set, key, E->NewStringUTF(env, "value")) == NULL);
    say("value %s", shown(E->CallObjectMethod(env, table, look, key)));
}

static void families(void);

static void JNICALL
init(jvmtiEnv *given UNUSED, JNIEnv *own, jthread thread UNUSED)
{
    env = own;
    Object = E->FindClass(env, "java/lang/Object");
    String = E->FindClass(env, "java/lang/String");
    Basket = E->FindClass(env, "shop/Basket");
    Crate = E->FindClass(env, "shop/Crate");
    basket = E->NewObject(env, Basket, E->GetMethodID(env, Basket, "<init>", "()V"));
    crate = E->NewObject(env, Crate, E->GetMethodID(env, Crate, "<init>", "()V"));
    classes();
    objects();
    methods();
    fields();
    strings();
    arrays();
    errors();
    monitors();
    buffers();
    java();
    families();
    references();
    SAY("end", E->ExceptionCheck(env));
}

static int
begin(char *options UNUSED)
{
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
