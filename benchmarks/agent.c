/* An agent whose cost is measured. Options: `calls` times the functions that agents call most, at VMInit; `walks` times
 * walks of the heap, at VMDeath; `entry` counts method entries; none takes nothing. `walk` and `entries` are for the
 * benchmark to call. */
#define _GNU_SOURCE
#include <jvmti.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static jvmtiEnv *ti;
static jlong entries, objects, references, sizes;

#define ROUNDS 10000000

static double
clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void JNICALL
time_calls(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    double begin = clock_now(), phases, memory, storage;
    int failed = 0;
    (void)jni, (void)thread;
    for (int i = 0; i < ROUNDS; i++) {
        jvmtiPhase phase;
        failed |= (*env)->GetPhase(env, &phase) != JVMTI_ERROR_NONE;
    }
    phases = clock_now() - begin;
    begin = clock_now();
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char *block;
        failed |= (*env)->Allocate(env, 64, &block) != JVMTI_ERROR_NONE;
        failed |= (*env)->Deallocate(env, block) != JVMTI_ERROR_NONE;
    }
    memory = clock_now() - begin;
    begin = clock_now();
    for (int i = 0; i < ROUNDS; i++) {
        failed |= (*env)->SetEnvironmentLocalStorage(env, &failed) != JVMTI_ERROR_NONE;
    }
    storage = clock_now() - begin;
    printf("%d %.9f %.9f %.9f\n", failed, phases, memory, storage);
    fflush(stdout);
}

static void JNICALL
count_entry(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method)
{
    (void)env, (void)jni, (void)thread, (void)method;
    entries++;
}

static jint JNICALL
count_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    (void)class_tag, (void)tag, (void)length, (void)data;
    objects++;
    sizes += size;
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
count_reference(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info, jlong class_tag,
                jlong referrer_class_tag, jlong size, jlong *tag, jlong *referrer_tag, jint length, void *data)
{
    (void)kind, (void)info, (void)class_tag, (void)referrer_class_tag, (void)tag, (void)referrer_tag, (void)length;
    (void)data;
    references++;
    sizes += size;
    return JVMTI_VISIT_OBJECTS;
}

JNIEXPORT jlong
count_entries(void)
{
    return entries;
}

/* The number of objects that a walk met; below 0, an error. */
JNIEXPORT jlong
walk(void)
{
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = count_object};
    objects = 0;
    jvmtiError error = (*ti)->IterateThroughHeap(ti, 0, NULL, &callbacks, NULL);
    return error == JVMTI_ERROR_NONE ? objects : -(jlong)error;
}

#define WALKS 15

/* The seconds that an object takes, of the best of a few walks: over all objects, and along references. */
static void JNICALL
time_walks(jvmtiEnv *env, JNIEnv *jni)
{
    jvmtiHeapCallbacks callbacks = {.heap_reference_callback = count_reference};
    double iterated = 1e9, followed = 1e9;
    int failed = 0;
    (void)jni;
    for (int i = 0; i < WALKS; i++) {
        double begin = clock_now();
        failed |= walk() <= 0;
        double between = clock_now();
        failed |= (*env)->FollowReferences(env, 0, NULL, NULL, &callbacks, NULL) != JVMTI_ERROR_NONE;
        double end = clock_now();
        iterated = between - begin < iterated ? between - begin : iterated;
        followed = end - between < followed ? end - between : followed;
    }
    printf("%d %.12f %.12f\n", failed || references < objects, iterated / (double)objects, followed / (double)objects);
    fflush(stdout);
}

static jint
begin(JavaVM *vm, const char *options)
{
    jvmtiEventCallbacks callbacks = {.VMInit = time_calls, .VMDeath = time_walks, .MethodEntry = count_entry};
    jvmtiEvent event = JVMTI_EVENT_METHOD_ENTRY;
    jvmtiCapabilities wanted = {0};
    if (options == NULL || *options == '\0') {
        return 0;
    }
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_11) != JNI_OK) {
        return 1;
    }
    if (strcmp(options, "heap") == 0) {
        wanted.can_tag_objects = 1;
        return (jint)(*ti)->AddCapabilities(ti, &wanted);
    }
    if (strcmp(options, "calls") == 0) {
        event = JVMTI_EVENT_VM_INIT;
    } else if (strcmp(options, "walks") == 0) {
        event = JVMTI_EVENT_VM_DEATH;
        wanted.can_tag_objects = 1;
    } else {
        wanted.can_generate_method_entry_events = 1;
    }
    jvmtiError error = (*ti)->AddCapabilities(ti, &wanted);
    if (error == JVMTI_ERROR_NONE) {
        error = (*ti)->SetEventCallbacks(ti, &callbacks, sizeof callbacks);
    }
    if (error == JVMTI_ERROR_NONE) {
        error = (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, event, NULL);
    }
    return (jint)error;
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    return begin(vm, options);
}

JNIEXPORT jint JNICALL
Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    return begin(vm, options);
}
