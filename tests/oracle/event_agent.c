// An agent for a real JVM: switches each event for each kind of thread, and writes down the answers.
//
// Its options are a folder; the file `answers` there gets a line for each call in LIVE:
// environment (0 holds nothing, 1 all it can get), event, mode, thread (0 none, 1 the current one, 2 one that has not
// started, 3 an object that is none), and the error number; and a line `generate` for each GenerateEvents.

#include <jvmti.h>
#include <stdio.h>

static FILE *answers;
static jvmtiEnv *environments[2];

static void JNICALL
on_init(jvmtiEnv *control, JNIEnv *jni, jthread current)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jobject unstarted = (*jni)->NewObject(jni, class, (*jni)->GetMethodID(jni, class, "<init>", "()V"));
    jthread threads[] = {NULL, current, unstarted, class};

    for (int i = 0; i < 2; i++) {
        jvmtiEnv *env = environments[i];
        for (int event = 40; event < 100; event++) {
            for (int mode = 1; mode >= 0; mode--) {
                for (int thread = 0; thread < 4; thread++) {
                    int error = (*env)->SetEventNotificationMode(env, mode, event, threads[thread]);
                    fprintf(answers, "mode %d %d %d %d %d\n", i, event, mode, thread, error);
                }
            }
            fprintf(answers, "generate %d %d 0 0 %d\n", i, event, (*env)->GenerateEvents(env, event));
        }
    }
    fclose(answers);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMInit = on_init};
    jvmtiCapabilities potential;
    jvmtiEnv *control = NULL;

    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (answers == NULL || (*vm)->GetEnv(vm, (void **)&control, JVMTI_VERSION_1_2) != JNI_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if ((*vm)->GetEnv(vm, (void **)&environments[i], JVMTI_VERSION_1_2) != JNI_OK) {
            return 1;
        }
    }
    (*environments[1])->GetPotentialCapabilities(environments[1], &potential);
    if ((*environments[1])->AddCapabilities(environments[1], &potential) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*control)->SetEventCallbacks(control, &callbacks, sizeof callbacks);
    return (*control)->SetEventNotificationMode(control, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL) != JVMTI_ERROR_NONE;
}
