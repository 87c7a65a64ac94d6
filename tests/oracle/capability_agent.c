// An agent for a real JVM: does what a program says, step by step, and writes down what HotSpot answers.
//
// Its options are a folder with the file `program`; the answers go to the file `answers` there, one line a step:
// the error number and, for what gives a set, its 16 bytes as two hexadecimal words, the low one first.
//
//   E            makes an environment; they are numbered from 0
//   A I LO HI    AddCapabilities on environment I          R I LO HI    RelinquishCapabilities
//   P I          GetPotentialCapabilities                  G I          GetCapabilities (into 16 bytes of ones)
//   a I, r I, p I, g I                                     the same four with a null pointer
//   H I MODE     SetEventNotificationMode of ClassFileLoadHook
//   D I          DisposeEnvironment
//   S, L         goes on when VMStart, VMInit is sent

#include <jvmti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENTS 4096

typedef union {
    jvmtiCapabilities bits;
    uint64_t words[2];
} Set;

_Static_assert(sizeof(jvmtiCapabilities) == 16, "a capability set is 128 bits");

static JavaVM *vm;
static FILE *program, *answers;
static jvmtiEnv *environments[ENVIRONMENTS];
static int made;

static void
run(void)
{
    char step;
    while (fscanf(program, " %c", &step) == 1) {
        Set set = {.words = {~0ULL, ~0ULL}};
        unsigned index = 0, mode = 0;
        if (step == 'S' || step == 'L') {
            return;
        }
        if (step == 'E') {
            void *env = NULL;
            jint error = (*vm)->GetEnv(vm, &env, JVMTI_VERSION_1_2);
            if (error == JNI_OK && made < ENVIRONMENTS) {
                environments[made++] = env;
            }
            fprintf(answers, "%d\n", (int)error);
            continue;
        }
        if (fscanf(program, "%u", &index) != 1 || (int)index >= made) {
            fprintf(answers, "bad step\n");
            return;
        }
        jvmtiEnv *env = environments[index];
        if (step == 'A' || step == 'R') {
            if (fscanf(program, "%lx %lx", &set.words[0], &set.words[1]) != 2) {
                return;
            }
        }
        if (step == 'H' && fscanf(program, "%u", &mode) != 1) {
            return;
        }
        jvmtiError error = JVMTI_ERROR_INTERNAL;
        switch (step) {
        case 'A':
            error = (*env)->AddCapabilities(env, &set.bits);
            break;
        case 'R':
            error = (*env)->RelinquishCapabilities(env, &set.bits);
            break;
        case 'P':
            error = (*env)->GetPotentialCapabilities(env, &set.bits);
            break;
        case 'G':
            error = (*env)->GetCapabilities(env, &set.bits);
            break;
        case 'a':
            error = (*env)->AddCapabilities(env, NULL);
            break;
        case 'r':
            error = (*env)->RelinquishCapabilities(env, NULL);
            break;
        case 'p':
            error = (*env)->GetPotentialCapabilities(env, NULL);
            break;
        case 'g':
            error = (*env)->GetCapabilities(env, NULL);
            break;
        case 'H':
            error = (*env)->SetEventNotificationMode(env, mode, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, NULL);
            break;
        case 'D':
            error = (*env)->DisposeEnvironment(env);
            break;
        }
        if (error == JVMTI_ERROR_NONE && (step == 'P' || step == 'G')) {
            fprintf(answers, "%d %lx %lx\n", error, set.words[0], set.words[1]);
        } else {
            fprintf(answers, "%d\n", error);
        }
    }
}

static void JNICALL
on_start(jvmtiEnv *env, JNIEnv *jni)
{
    run();
}

static void JNICALL
on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    run();
    fclose(answers);
    fclose(program);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init};
    jvmtiEnv *control = NULL;

    vm = java_vm;
    snprintf(path, sizeof path, "%s/program", options);
    program = fopen(path, "r");
    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (program == NULL || answers == NULL || (*vm)->GetEnv(vm, (void **)&control, JVMTI_VERSION_1_2) != JNI_OK) {
        return 1;
    }
    (*control)->SetEventCallbacks(control, &callbacks, sizeof callbacks);
    (*control)->SetEventNotificationMode(control, JVMTI_ENABLE, JVMTI_EVENT_VM_START, NULL);
    (*control)->SetEventNotificationMode(control, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    run();
    return 0;
}
