// An agent for a real JVM and for CPython: calls every function of the interface, and writes down the answers.
//
// Its options are a folder with the file `program`: lines of a phase's letter, a slot and a way to give arguments. Each
// is called on three environments: one that holds nothing, one that holds what it could get in ONLOAD, and one that has
// been disposed of. The calls are made from vmscope's table: calls.inc has a case for each slot and way.
// Phases: O ONLOAD, P PRIMORDIAL, S START, L LIVE, D DEAD; U is LIVE on a thread that the VM does not know, T is LIVE
// when what the local references of L referred to has been let go of.

#include <jvmti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused)) // by some programs

static FILE *answers;
static char program[1 << 20];
static jvmtiEnv *environments[3];
static UNUSED jobject a_class, a_thread, stale;

// What is given where nothing right is: room for results, and what looks like an id, a monitor or a table.
static jlong room[8][512];
static jlong nothing[512];
static UNUSED void *no_method[2];
static UNUSED jobject wrong_objects[1];
static UNUSED jclass wrong_classes[1];
static UNUSED char *no_texts[1] = {"no/such"};
static UNUSED jvmtiClassDefinition no_definitions[1];

static UNUSED jint JNICALL
no_callback()
{
    return 0;
}

// Handles and ids that no VM has given out; a JVM would look there.
static UNUSED const jlong garbage[] = {1, 2,   3, 5, 6, 7, 0x7fff12345678, -1, 0x00010000400000ad, 0x7ffffffffffffff6,
                                       8, 4096};
#define GARBAGE(way) ((void *)(size_t)garbage[(way) - 'A'])

// What is right: from START on, in which there are classes. Before, nobody looks at it.
static jvmtiEnv *control;
static UNUSED jclass good_class;
static UNUSED jthread good_thread;
static UNUSED jthreadGroup good_group;
static UNUSED jobject good_module;
static UNUSED jmethodID good_method;
static UNUSED jfieldID good_field;
static UNUSED jniNativeInterface *good_table;
static jrawMonitorID good_monitor;

static UNUSED jrawMonitorID
fresh_monitor(void)
{
    jrawMonitorID monitor = good_monitor;
    (*control)->CreateRawMonitor(control, "fresh", &monitor); // where the phase allows it
    return monitor;
}

static UNUSED jrawMonitorID
entered_monitor(void)
{
    jrawMonitorID monitor = fresh_monitor();
    (*control)->RawMonitorEnter(control, monitor);
    return monitor;
}

static int
call(jvmtiEnv *env, int slot, char way)
{
    switch (slot << 8 | way) {
#include "calls.inc"
    }
    return -1;
}

static void
run(char phase)
{
    char *line = program, *end;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char when, way;
        int slot;
        if (sscanf(line, "%c %d %c", &when, &slot, &way) == 3 && when == phase) {
            for (int i = 0; i < 3; i++) {
                memset(room, 0, sizeof room);
                memset(nothing, 0, sizeof nothing);
                fprintf(answers, "%c %d %c %d %d\n", phase, slot, way, i, call(environments[i], slot, way));
                fflush(answers);
            }
        }
    }
}

static void *
unattached(void *unused)
{
    run('U');
    return NULL;
}

static void JNICALL
on_early_start(jvmtiEnv *env, JNIEnv *jni)
{
    run('P');
}

// A class that has methods and fields of its own, of the one language or the other.
static void
find_good(JNIEnv *jni)
{
    jint count;
    jmethodID *methods;
    jfieldID *fields;
    jclass class = (*jni)->FindClass(jni, "java/util/Random");
    if (class == NULL) {
        (*jni)->ExceptionClear(jni);
        class = (*jni)->FindClass(jni, "textwrap/TextWrapper");
    }
    jobject gone[8]; // garbage has what they were
    for (int i = 0; i < 8; i++) {
        gone[i] = (*jni)->NewGlobalRef(jni, class);
    }
    for (int i = 0; i < 8; i++) {
        (*jni)->DeleteGlobalRef(jni, gone[i]);
    }
    good_class = (*jni)->NewGlobalRef(jni, class);
    (*control)->GetCurrentThread(control, &good_thread);
    good_thread = (*jni)->NewGlobalRef(jni, good_thread);
    (*control)->GetClassMethods(control, class, &count, &methods);
    (*control)->GetClassFields(control, class, &count, &fields);
    good_method = methods[0];
    good_field = fields[0];
    (*control)->GetJNIFunctionTable(control, &good_table);
}

static void
wrong(jobject class, jobject thread)
{
    wrong_objects[0] = a_class = class;
    wrong_classes[0] = a_thread = thread;
    no_definitions[0] = (jvmtiClassDefinition){thread, 1, (unsigned char *)""};
}

static void JNICALL
on_start(jvmtiEnv *env, JNIEnv *jni)
{
    find_good(jni);
    wrong(good_class, good_thread);
    run('S');
}

static void JNICALL
on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    jint count;
    jclass *classes;
    pthread_t other;
    jthreadGroup *groups;
    jobject *modules;
    (*env)->GetLoadedClasses(env, &count, &classes);
    wrong(classes[0], thread);
    (*env)->GetTopThreadGroups(env, &count, &groups);
    good_group = groups[0];
    (*env)->GetAllModules(env, &count, &modules);
    good_module = modules[0];
    run('L');
    pthread_create(&other, NULL, unattached, NULL);
    pthread_join(other, NULL);
    stale = thread;
    wrong((jobject)nothing, (jobject)nothing);
}

static void JNICALL
on_death(jvmtiEnv *env, JNIEnv *jni)
{
    run('T');
}

static void
enable(jvmtiEnv *env, jvmtiEvent event)
{
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, event, NULL);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks early_callbacks = {.VMStart = on_early_start};
    jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init, .VMDeath = on_death};
    jvmtiCapabilities potential, early_start = {.can_generate_early_vmstart = 1};
    jvmtiEnv *early;

    snprintf(path, sizeof path, "%s/program", options);
    FILE *file = fopen(path, "r");
    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (file == NULL || answers == NULL || fread(program, 1, sizeof program - 1, file) == 0) {
        return 1;
    }
    fclose(file);
    for (int i = 0; i < 3; i++) {
        if ((*vm)->GetEnv(vm, (void **)&environments[i], JVMTI_VERSION_1_2) != JNI_OK) {
            return 1;
        }
    }
    (*environments[1])->GetPotentialCapabilities(environments[1], &potential);
    potential.can_generate_early_vmstart = 0;
    if ((*environments[1])->AddCapabilities(environments[1], &potential) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*environments[2])->DisposeEnvironment(environments[2]);
    if ((*vm)->GetEnv(vm, (void **)&early, JVMTI_VERSION_1_2) != JNI_OK ||
        (*vm)->GetEnv(vm, (void **)&control, JVMTI_VERSION_1_2) != JNI_OK ||
        (*early)->AddCapabilities(early, &early_start) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*early)->SetEventCallbacks(early, &early_callbacks, sizeof early_callbacks);
    (*control)->SetEventCallbacks(control, &callbacks, sizeof callbacks);
    jrawMonitorID gone; // its id is one of the garbage
    (*control)->CreateRawMonitor(control, "gone", &gone);
    (*control)->CreateRawMonitor(control, "good", &good_monitor);
    (*control)->DestroyRawMonitor(control, gone);
    wrong((jobject)nothing, (jobject)nothing); // nobody looks there
    enable(early, JVMTI_EVENT_VM_START);
    enable(control, JVMTI_EVENT_VM_START);
    enable(control, JVMTI_EVENT_VM_INIT);
    enable(control, JVMTI_EVENT_VM_DEATH);
    run('O');
    return 0;
}

JNIEXPORT void JNICALL
Agent_OnUnload(JavaVM *vm)
{
    run('D');
    fclose(answers);
}
