// Says what is called, with which options; its functions answer with the number that these begin with.
//
// SUFFIX: of an agent that is linked into a program. NO_LOAD, NO_ATTACH: it lacks the function.

#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef SUFFIX
#define SUFFIX
#endif
#define JOIN(name, suffix) name##suffix
#define NAMED(name, suffix) JOIN(name, suffix)
#define WORD(name) #name
#define SAID(name) WORD(name)

static jint
say(const char *name, const char *options)
{
    printf("%s %s\n", name, options == NULL ? "(no options)" : options);
    fflush(stdout);
    return options == NULL ? JNI_OK : atoi(options);
}

#ifndef NO_LOAD
JNIEXPORT jint JNICALL
NAMED(Agent_OnLoad, SUFFIX)(JavaVM *vm, char *options, void *reserved)
{
    return say(SAID(NAMED(Agent_OnLoad, SUFFIX)), options);
}
#endif

#ifndef NO_ATTACH
JNIEXPORT jint JNICALL
NAMED(Agent_OnAttach, SUFFIX)(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *jvmti = NULL;

    // It is called on a thread that is attached, in LIVE: an environment can be made, and its thread asked for.
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        return -100;
    }
    jthread thread = NULL;
    if ((*jvmti)->GetCurrentThread(jvmti, &thread) != JVMTI_ERROR_NONE || thread == NULL) {
        return -101;
    }
    return say(SAID(NAMED(Agent_OnAttach, SUFFIX)), options);
}
#endif

JNIEXPORT void JNICALL
NAMED(Agent_OnUnload, SUFFIX)(JavaVM *vm)
{
    say(SAID(NAMED(Agent_OnUnload, SUFFIX)), NULL);
}
