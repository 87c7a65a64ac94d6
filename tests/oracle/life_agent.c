// An agent for a real JVM: follows the VM's life in two environments, one of them with early VMStart.
//
// Its options are a folder; the file `answers` there gets a line for each thing that happens: what, to which
// environment (0 early, 1 not), and the phase that each of the two sees then. Lines `version N ERROR` say what GetEnv
// answers in ONLOAD; lines `getenv WHERE ERROR` what it answers elsewhere.

#include <jvmti.h>
#include <stdio.h>

static JavaVM *vm;
static FILE *answers;
static jvmtiEnv *environments[2];

static void
told(const char *what, int environment)
{
    jvmtiPhase phases[2];
    for (int i = 0; i < 2; i++) {
        (*environments[i])->GetPhase(environments[i], &phases[i]);
    }
    fprintf(answers, "%s %d %d %d\n", what, environment, phases[0], phases[1]);
}

static void
asked(const char *where)
{
    void *env = NULL;
    jint error = (*vm)->GetEnv(vm, &env, JVMTI_VERSION_1_2);
    fprintf(answers, "getenv %s %d\n", where, (int)error);
}

static int
which(jvmtiEnv *env)
{
    return env == environments[1];
}

static void JNICALL
on_start(jvmtiEnv *env, JNIEnv *jni)
{
    told("start", which(env));
    asked("start");
}

static void JNICALL
on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    told("init", which(env));
    asked("init");
}

static void JNICALL
on_death(jvmtiEnv *env, JNIEnv *jni)
{
    told("death", which(env));
    asked("death");
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init, .VMDeath = on_death};
    jvmtiCapabilities early = {.can_generate_early_vmstart = 1};

    vm = java_vm;
    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (answers == NULL) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if ((*vm)->GetEnv(vm, (void **)&environments[i], JVMTI_VERSION_1_2) != JNI_OK) {
            return 1;
        }
    }
    if ((*environments[0])->AddCapabilities(environments[0], &early) != JVMTI_ERROR_NONE) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        (*environments[i])->SetEventCallbacks(environments[i], &callbacks, sizeof callbacks);
        for (int event = JVMTI_EVENT_VM_INIT; event <= JVMTI_EVENT_VM_START; event++) {
            if (event == JVMTI_EVENT_VM_INIT || event == JVMTI_EVENT_VM_DEATH || event == JVMTI_EVENT_VM_START) {
                (*environments[i])->SetEventNotificationMode(environments[i], JVMTI_ENABLE, event, NULL);
            }
        }
    }
    told("load", 0);
    for (jint major = 0; major < 40; major++) {
        for (jint minor = 0; minor < 5; minor++) {
            for (jint micro = 0; micro < 2; micro++) {
                jint version = JVMTI_VERSION_INTERFACE_JVMTI + (major << 16) + (minor << 8) + micro * 7;
                void *env = NULL;
                fprintf(answers, "version %d %d\n", (int)version, (int)(*vm)->GetEnv(vm, &env, version));
            }
        }
    }
    return 0;
}

JNIEXPORT void JNICALL
Agent_OnUnload(JavaVM *java_vm)
{
    told("unload", 0);
    asked("unload");
    fclose(answers);
}
