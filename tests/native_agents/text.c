/* Strings that are hard to hand over, in each of the ways that JNI has. What it prints is the same on a JVM and on
 * CPython. */
#define E (*env)

static JNIEnv *env;

static void
units(const char *name, const jchar *found, int count)
{
    char line[1000] = "";
    uint32_t sum = 0;
    for (int i = 0; i < count; i++) {
        sum = sum * 31 + found[i];
        if (i < 40) {
            snprintf(line + strlen(line), sizeof line - strlen(line), " %04x", found[i]);
        }
    }
    say("  %s %d %08x:%s", name, count, sum, line);
}

static void
bytes(const char *name, const char *found)
{
    jchar wide[100000];
    int count = strlen(found);
    for (int i = 0; i < count; i++) {
        wide[i] = (unsigned char)found[i];
    }
    units(name, wide, count);
}

static int
cleared(void)
{
    int pending = E->ExceptionCheck(env);
    E->ExceptionClear(env);
    return pending;
}

/* All that can be asked of a string. */
static void
show(jstring text)
{
    static jchar wide[40000];
    static char narrow[120000];
    jboolean copy = 9;
    int length = E->GetStringLength(env, text);
    SAY("  lengths", length, E->GetStringUTFLength(env, text));
    const jchar *chars = E->GetStringChars(env, text, &copy);
    units("chars", chars, length);
    E->ReleaseStringChars(env, text, chars);
    chars = E->GetStringCritical(env, text, &copy);
    units("critical", chars, length);
    E->ReleaseStringCritical(env, text, chars);
    const char *utf = E->GetStringUTFChars(env, text, &copy);
    bytes("utf", utf);
    jstring back = E->NewStringUTF(env, utf);
    E->ReleaseStringUTFChars(env, text, utf);
    jclass object = E->FindClass(env, "java/lang/Object");
    jmethodID equals = E->GetMethodID(env, object, "equals", "(Ljava/lang/Object;)Z");
    SAY("  back", E->CallBooleanMethod(env, text, equals, back), copy);
    int places[][2] = {{0, length}, {0, 0},          {length, 0},     {0, 1},
                       {1, 1},      {1, 2},          {length - 1, 1}, {-1, 1},
                       {0, -1},     {0, length + 1}, {length + 1, 0}, {2147483647, 2147483647}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        memset(wide, 0x55, sizeof wide);
        memset(narrow, 0x55, sizeof narrow);
        narrow[sizeof narrow - 1] = 0;
        E->GetStringRegion(env, text, places[i][0], places[i][1], wide);
        int first = cleared();
        E->GetStringUTFRegion(env, text, places[i][0], places[i][1], narrow);
        int second = cleared();
        say("  %d from %d: %d %d", places[i][1], places[i][0], first, second);
        if (!first) {
            units("region", wide, places[i][1]);
        }
        if (!second) {
            bytes("utf region", narrow);
        }
    }
}

static void
strings(void)
{
    static const struct {
        const char *name;
        jchar units[8];
        int count;
    } given[] = {
        {"empty", {0}, 0},
        {"one", {'a'}, 1},
        {"NUL", {0}, 1},
        {"NULs within", {'a', 0, 0, 'b', 0}, 5},
        {"limits", {0x7f, 0x80, 0xff, 0x100, 0x7ff, 0x800, 0xfffe, 0xffff}, 8},
        {"a pair", {0xd83d, 0xde00}, 2},
        {"first and last pair", {0xd800, 0xdc00, 0xdbff, 0xdfff}, 4},
        {"high alone", {0xd83d}, 1},
        {"low alone", {0xde00}, 1},
        {"turned round", {0xde00, 0xd83d}, 2},
        {"high, pair", {0xd83d, 0xd83d, 0xde00}, 3},
        {"pair, low", {0xd83d, 0xde00, 0xde00}, 3},
        {"high at the end", {'a', 0xe9, 0x20ac, 0xd83d}, 4},
        {"NUL in a pair", {0xd83d, 0, 0xde00}, 3},
    };
    static jchar many[30000];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        say("string: %s", given[i].name);
        show(E->NewString(env, given[i].units, given[i].count));
    }
    for (int i = 0; i < 30000; i++) {
        many[i] = (jchar)(i * 40503u);
    }
    say("string: long");
    show(E->NewString(env, many, 30000));
}

static void
texts(void)
{
    static const char *const given[] = {
        "",
        "plain",
        "\xc3\xa9 \xe2\x82\xac",
        "\xc0\x80",
        "\xed\xa0\xbd\xed\xb8\x80",
        "\xed\xa0\xbd",
        "\xed\xb8\x80\xed\xa0\xbd",
        "\xf0\x9f\x98\x80", /* as UTF-8 has it */
        "a\xf0\x9f\x98\x80z",
        "\x80",
        "\x80\x61",
        "a\xbf\xbf"
        "b",
        "\xc3",
        "a\xc3",
        "\xc3\x28",
        "\xe2\x82",
        "\xe2\x28\xa1",
        "\xe2\x82\x28",
        "\xc0\xaf", /* longer than it needs to be */
        "\xc1\xbf",
        "\xe0\x80\xaf",
        "\xe0\x9f\xbf",
        "\xff\xfe",
        "\xfe\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "\xe9t\xe9", /* Latin-1 */
        "\xc3\xa9\x80\xc3\xa9",
        "\xef\xbf\xbf\xef\xbf",
    };
    static char many[60001];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        bytes("given", given[i]);
        show(E->NewStringUTF(env, given[i]));
    }
    for (int i = 0; i < 60000; i += 3) {
        memcpy(many + i, i % 2 ? "\xe2\x82\xac" : "\xc3\xa9z", 3);
    }
    say("text: long");
    show(E->NewStringUTF(env, many));
}

/* What the interface hands over and takes. */
static void *
named(void *name)
{
    JavaVMAttachArgs arguments = {JNI_VERSION_10, name, NULL};
    JNIEnv *own;
    jvmtiThreadInfo info;
    (*vm)->AttachCurrentThread(vm, (void **)&own, &arguments);
    bytes("thread", (*ti)->GetThreadInfo(ti, NULL, &info) == 0 ? info.name : "?");
    (*vm)->DetachCurrentThread(vm);
    return NULL;
}

static void
names(void)
{
    static const char hard[] = "a\xc0\x80\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80\xed\xa0\x80z";
    char *value = "?";
    SAY("property", (*ti)->GetSystemProperty(ti, "java.class.path", &value));
    bytes("value", value);
    pthread_join(spawn(named, (void *)hard), NULL);
    jclass errors = E->FindClass(env, "java/lang/IllegalStateException");
    E->ThrowNew(env, errors, hard);
    jthrowable error = E->ExceptionOccurred(env);
    E->ExceptionClear(env);
    show(E->CallObjectMethod(env, error, E->GetMethodID(env, errors, "getMessage", "()Ljava/lang/String;")));
    say("none: %d", E->FindClass(env, hard) == NULL);
    SAY("exception", cleared());
}

static void JNICALL
init(jvmtiEnv *given UNUSED, JNIEnv *own, jthread thread UNUSED)
{
    env = own;
    strings();
    texts();
    names();
}

static int
begin(char *options UNUSED)
{
    jvmtiEventCallbacks callbacks = {.VMInit = init};
    SAY("set",
        (*ti)->SetSystemProperty(ti, "java.class.path", "a\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80\xed\xa0\x80z"));
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    enable(JVMTI_EVENT_VM_INIT);
    return 0;
}
