// Tags and the heap: which objects of a class there are, which of them can be reached, and which have gone.
//
//   -agentpath:libtags.so=class=Lmarket/Basket;,at=checkpoint
//
// Each time the program enters the method `at` of the class, every new object of the class gets the next tag, and what
// was tagged is counted in three ways. At the end: how many of them have been freed.

#include "agent.h"

#include <stdatomic.h>

static char class_wanted[TEXT], at[TEXT];
static jclass class;   // a global reference
static jmethodID stop; // the method `at`
static jlong last_tag;
static atomic_long freed;
static jrawMonitorID busy;

static jint JNICALL
give_tag(jlong class_tag, jlong size, jlong *tag, jint length, void *user_data)
{
    if (*tag == 0) {
        *tag = ++last_tag;
        ++*(int *)user_data;
    }
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
count_tagged(jlong class_tag, jlong size, jlong *tag, jint length, void *user_data)
{
    ++*(int *)user_data;
    return JVMTI_VISIT_OBJECTS;
}

// Each object is come to by each reference to it, but counted once: its tag is negative from then on.
static jint JNICALL
count_reached(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info, jlong class_tag,
              jlong referrer_class_tag, jlong size, jlong *tag, jlong *referrer_tag, jint length, void *user_data)
{
    if (*tag > 0) {
        *tag = -*tag;
        ++*(int *)user_data;
    }
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
restore_tag(jlong class_tag, jlong size, jlong *tag, jint length, void *user_data)
{
    *tag = *tag < 0 ? -*tag : *tag;
    return JVMTI_VISIT_OBJECTS;
}

static void
look(jvmtiEnv *jvmti, JNIEnv *jni)
{
    const jvmtiHeapCallbacks give = {.heap_iteration_callback = give_tag},
                             count = {.heap_iteration_callback = count_tagged},
                             reach = {.heap_reference_callback = count_reached},
                             restore = {.heap_iteration_callback = restore_tag};
    int given = 0, tagged = 0, reached = 0;
    jint found = 0;
    jobject *objects = NULL;

    ok(jvmti, (*jvmti)->IterateThroughHeap(jvmti, 0, class, &give, &given), "IterateThroughHeap");
    ok(jvmti, (*jvmti)->IterateThroughHeap(jvmti, JVMTI_HEAP_FILTER_UNTAGGED, NULL, &count, &tagged),
       "IterateThroughHeap");
    ok(jvmti, (*jvmti)->FollowReferences(jvmti, 0, NULL, NULL, &reach, &reached), "FollowReferences");
    ok(jvmti, (*jvmti)->IterateThroughHeap(jvmti, JVMTI_HEAP_FILTER_UNTAGGED, NULL, &restore, NULL),
       "IterateThroughHeap");
    jlong *tags = calloc((size_t)last_tag + 1, sizeof *tags);
    for (jlong i = 0; i < last_tag; i++) {
        tags[i] = i + 1;
    }
    if (ok(jvmti, (*jvmti)->GetObjectsWithTags(jvmti, (jint)last_tag, tags, &found, &objects, NULL),
           "GetObjectsWithTags")) {
        for (jint i = 0; i < found; i++) {
            (*jni)->DeleteLocalRef(jni, objects[i]);
        }
        (*jvmti)->Deallocate(jvmti, (unsigned char *)objects);
    }
    free(tags);
    say("%s: %d new, %d tagged, %d reached, %d by their tags", class_wanted, given, tagged, reached, (int)found);
}

static void JNICALL
on_method_entry(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method)
{
    if (method == stop) {
        (*jvmti)->RawMonitorEnter(jvmti, busy); // the tags are those of one look at a time
        look(jvmti, jni);
        (*jvmti)->RawMonitorExit(jvmti, busy);
    }
}

static void JNICALL
on_object_free(jvmtiEnv *jvmti, jlong tag)
{
    freed++; // here no function is allowed that looks at objects
}

static void JNICALL
on_class_prepare(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass prepared)
{
    jmethodID *methods = NULL;
    jint count = 0;
    char name[TEXT];

    if (class != NULL || strcmp(class_name(jvmti, prepared, name), class_wanted) != 0 ||
        !ok(jvmti, (*jvmti)->GetClassMethods(jvmti, prepared, &count, &methods), "GetClassMethods")) {
        return;
    }
    class = (*jni)->NewGlobalRef(jni, prepared);
    for (jint i = 0; i < count; i++) {
        if (strcmp(method_name(jvmti, methods[i], name), at) == 0) {
            stop = methods[i];
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
    enable(jvmti, JVMTI_EVENT_METHOD_ENTRY);
}

static void JNICALL
on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    ok(jvmti, (*jvmti)->ForceGarbageCollection(jvmti), "ForceGarbageCollection");
    // A JVM tells of what it has freed on a thread of its own; disabling the event waits for that.
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_OBJECT_FREE, NULL);
    say("%s: %ld of %ld freed", class_wanted, (long)freed, (long)last_tag);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    const jvmtiCapabilities wanted = {
        .can_tag_objects = 1, .can_generate_object_free_events = 1, .can_generate_method_entry_events = 1};
    const jvmtiEventCallbacks callbacks = {.ClassPrepare = on_class_prepare,
                                           .MethodEntry = on_method_entry,
                                           .ObjectFree = on_object_free,
                                           .VMDeath = on_death};
    option(options, "class", "", class_wanted);
    option(options, "at", "", at);
    jvmtiEnv *jvmti = environment(vm, &wanted, &callbacks);
    return jvmti != NULL && ok(jvmti, (*jvmti)->CreateRawMonitor(jvmti, "tags", &busy), "CreateRawMonitor") &&
                   enable(jvmti, JVMTI_EVENT_CLASS_PREPARE) && enable(jvmti, JVMTI_EVENT_OBJECT_FREE) &&
                   enable(jvmti, JVMTI_EVENT_VM_DEATH)
               ? JNI_OK
               : JNI_ERR;
}
