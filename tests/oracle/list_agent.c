// An agent for a real JVM that says on standard output what becomes of it: each line is what happens, its options, and
// the phase. With the options `three` it refuses.

#include <jvmti.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
say(jvmtiEnv *env, const char *what)
{
    char line[256];
    char *options = NULL;
    jvmtiPhase phase;
    (*env)->GetEnvironmentLocalStorage(env, (void **)&options);
    (*env)->GetPhase(env, &phase);
    int length = snprintf(line, sizeof line, "%s %s %d\n", what, options, (int)phase);
    if (write(1, line, (size_t)length) != length) {
        _exit(9);
    }
}

static void JNICALL
on_start(jvmtiEnv *env, JNIEnv *jni)
{
    say(env, "start");
}
static void JNICALL
on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    say(env, "init");
}
static void JNICALL
on_death(jvmtiEnv *env, JNIEnv *jni)
{
    say(env, "death");
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *env;
    jvmtiEventCallbacks callbacks;
    static const jvmtiEvent events[] = {JVMTI_EVENT_VM_START, JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH};
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_2) != JNI_OK) {
        return 1;
    }
    (*env)->SetEnvironmentLocalStorage(env, strdup(options == NULL || !*options ? "-" : options));
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.VMStart = on_start;
    callbacks.VMInit = on_init;
    callbacks.VMDeath = on_death;
    (*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks);
    for (int i = 0; i < 3; i++) {
        (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, events[i], NULL);
    }
    say(env, "load");
    return options != NULL && strcmp(options, "three") == 0 ? 3 : 0;
}

JNIEXPORT void JNICALL
Agent_OnUnload(JavaVM *vm)
{
    if (write(1, "unload\n", 7) != 7) {
        _exit(9);
    }
}
