// An agent for a real JVM: calls functions with wrong arguments, and writes down the answers.
//
// Its options are a folder with the file `program`: lines of an environment, a slot, and whether threads are given,
// which are none, and numbers, which are negative, or nothing but null pointers and zeroes. `S` and `L` wait for
// VMStart and VMInit. The environments: 0 holds nothing, 1 what it could get in ONLOAD, 2 has been disposed of.
// The calls are made from vmscope's table: calls.inc has a case for each slot.

#include <jvmti.h>
#include <stdio.h>
#include <string.h>

static FILE *program, *answers;
static jvmtiEnv *environments[3];
static jobject not_a_thread;

static int
call(jvmtiEnv *env, int slot, jobject thread, jint number)
{
    switch (slot) {
#include "calls.inc"
    }
    return -1;
}

static void
run(void)
{
    char line[64];
    while (fgets(line, sizeof line, program) != NULL && line[0] != 'S' && line[0] != 'L') {
        int environment, slot, wrong;
        if (sscanf(line, "%d %d %d", &environment, &slot, &wrong) != 3) {
            return;
        }
        fprintf(answers, "%d\n", call(environments[environment], slot, wrong ? not_a_thread : NULL, -wrong));
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
    jint count;
    jclass *classes;
    (*env)->GetLoadedClasses(env, &count, &classes);
    not_a_thread = classes[0];
    run();
    fclose(answers);
    fclose(program);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init};
    jvmtiCapabilities potential;
    jvmtiEnv *control = NULL;

    snprintf(path, sizeof path, "%s/program", options);
    program = fopen(path, "r");
    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (program == NULL || answers == NULL || (*vm)->GetEnv(vm, (void **)&control, JVMTI_VERSION_1_2) != JNI_OK) {
        return 1;
    }
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
    (*control)->SetEventCallbacks(control, &callbacks, sizeof callbacks);
    (*control)->SetEventNotificationMode(control, JVMTI_ENABLE, JVMTI_EVENT_VM_START, NULL);
    (*control)->SetEventNotificationMode(control, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    run();
    return 0;
}
