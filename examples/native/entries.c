// A method-entry counter: how often each method of one class was called.
//
//   -agentpath:libentries.so=class=Lmarket/Basket;,methods=add+total
//
// The methods are looked up when the class is prepared, so that an entry costs a comparison with each of them, and an
// atomic addition, and no name is asked for. Without `methods` all of the class are counted.

#include "agent.h"

#include <stdatomic.h>

enum { METHODS = 256 };

static struct counted {
    jmethodID id;
    atomic_long calls;
    char name[TEXT];
} counted[METHODS];
static atomic_int known; // entries of `counted` that are complete

static char class_wanted[TEXT], methods_wanted[TEXT];

static void
look_up(jvmtiEnv *jvmti, jclass class)
{
    jmethodID *methods = NULL;
    jint count = 0;
    char name[TEXT];

    if (strcmp(class_name(jvmti, class, name), class_wanted) != 0 || known > 0 ||
        !ok(jvmti, (*jvmti)->GetClassMethods(jvmti, class, &count, &methods), "GetClassMethods")) {
        return;
    }
    int found = 0;
    for (jint i = 0; i < count && found < METHODS; i++) {
        method_name(jvmti, methods[i], name);
        if (*methods_wanted == '\0' || is_among(name, methods_wanted)) {
            counted[found].id = methods[i];
            strcpy(counted[found++].name, name);
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
    known = found;
}

static void JNICALL
on_class_prepare(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
    look_up(jvmti, class);
}

static void JNICALL
on_method_entry(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method)
{
    int count = known;

    for (int i = 0; i < count; i++) {
        if (counted[i].id == method) {
            counted[i].calls++;
            return;
        }
    }
}

static int
by_name(const void *left, const void *right)
{
    return strcmp(((const struct counted *)left)->name, ((const struct counted *)right)->name);
}

static void JNICALL
on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    qsort(counted, (size_t)known, sizeof *counted, by_name);
    for (int i = 0; i < known; i++) {
        say("%s.%s %ld", class_wanted, counted[i].name, counted[i].calls);
    }
}

static jvmtiEnv *
begin(JavaVM *vm, const char *options)
{
    const jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    const jvmtiEventCallbacks callbacks = {
        .ClassPrepare = on_class_prepare, .MethodEntry = on_method_entry, .VMDeath = on_death};

    option(options, "class", "", class_wanted);
    option(options, "methods", "", methods_wanted);
    jvmtiEnv *jvmti = environment(vm, &wanted, &callbacks);
    bool begun = jvmti != NULL && enable(jvmti, JVMTI_EVENT_CLASS_PREPARE) && enable(jvmti, JVMTI_EVENT_METHOD_ENTRY) &&
                 enable(jvmti, JVMTI_EVENT_VM_DEATH);
    return begun ? jvmti : NULL;
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    return begin(vm, options) != NULL ? JNI_OK : JNI_ERR;
}

// A VM that runs has prepared classes already. A JVM lets nobody have method entries so late; it says NOT_AVAILABLE.
JNIEXPORT jint JNICALL
Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *jvmti = begin(vm, options);
    jclass *classes = NULL;
    jint count = 0;

    if (jvmti == NULL || !ok(jvmti, (*jvmti)->GetLoadedClasses(jvmti, &count, &classes), "GetLoadedClasses")) {
        return JNI_ERR;
    }
    for (jint i = 0; i < count; i++) {
        look_up(jvmti, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
    return JNI_OK;
}
