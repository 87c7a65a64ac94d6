// A watchdog of the garbage collector: says so when collections take too large a share of the time.
//
//   -agentpath:libgcshare.so=limit=10,window=5
//
// After each `window` collections the time that they took is compared with the time that passed, and more than `limit`
// percent is reported. The events of a collection come while no thread may use the VM; so they do nothing but add up
// and wake a thread of the agent's own, which writes.

#include "agent.h"

static jvmtiEnv *jvmti;
static jrawMonitorID monitor;
static int limit, window;
static bool ended; // under `monitor`, as all below
static bool watching;
static int collections, unseen;
static jlong begun, spent, window_begun; // nanoseconds
static int warnings;

static void JNICALL
on_collection_start(jvmtiEnv *own)
{
    jlong now = 0;

    (*jvmti)->GetTime(jvmti, &now);
    (*jvmti)->RawMonitorEnter(jvmti, monitor);
    begun = now;
    (*jvmti)->RawMonitorExit(jvmti, monitor);
}

static void JNICALL
on_collection_finish(jvmtiEnv *own)
{
    jlong now = 0;

    (*jvmti)->GetTime(jvmti, &now);
    (*jvmti)->RawMonitorEnter(jvmti, monitor);
    spent += now - begun;
    collections++;
    unseen++;
    (*jvmti)->RawMonitorNotifyAll(jvmti, monitor);
    (*jvmti)->RawMonitorExit(jvmti, monitor);
}

static void JNICALL
watch(jvmtiEnv *own, JNIEnv *jni, void *argument)
{
    (*jvmti)->RawMonitorEnter(jvmti, monitor);
    watching = true;
    while (!ended) {
        if (unseen < window) {
            (*jvmti)->RawMonitorWait(jvmti, monitor, 0);
            continue;
        }
        jlong now = 0;
        (*jvmti)->GetTime(jvmti, &now);
        double share = 100.0 * (double)spent / (double)(now - window_begun);
        int count = unseen;
        unseen = 0;
        spent = 0;
        window_begun = now;
        if (share > limit) {
            warnings++;
            (*jvmti)->RawMonitorExit(jvmti, monitor); // a collection does not wait for the terminal
            say("%d collections took %.1f%% of the time, more than %d%%", count, share, limit);
            (*jvmti)->RawMonitorEnter(jvmti, monitor);
        }
    }
    watching = false;
    (*jvmti)->RawMonitorNotifyAll(jvmti, monitor);
    (*jvmti)->RawMonitorExit(jvmti, monitor);
}

static void JNICALL
on_init(jvmtiEnv *own, JNIEnv *jni, jthread thread)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID init = class == NULL ? NULL : (*jni)->GetMethodID(jni, class, "<init>", "()V");
    jthread made = init == NULL ? NULL : (*jni)->NewObject(jni, class, init);

    (*jvmti)->GetTime(jvmti, &window_begun);
    if (made != NULL &&
        ok(jvmti, (*jvmti)->RunAgentThread(jvmti, made, watch, NULL, JVMTI_THREAD_MAX_PRIORITY), "RunAgentThread")) {
        enable(jvmti, JVMTI_EVENT_GARBAGE_COLLECTION_START);
        enable(jvmti, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
    }
}

static void JNICALL
on_death(jvmtiEnv *own, JNIEnv *jni)
{
    (*jvmti)->RawMonitorEnter(jvmti, monitor);
    ended = true;
    (*jvmti)->RawMonitorNotifyAll(jvmti, monitor);
    for (int tries = 0; watching && tries < 100; tries++) { // a VM that ends does not wait for daemons for ever
        (*jvmti)->RawMonitorWait(jvmti, monitor, 10);
    }
    say("%d collections, %s", collections, warnings > 0 ? "too much of the time" : "all is well");
    (*jvmti)->RawMonitorExit(jvmti, monitor);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    const jvmtiCapabilities wanted = {.can_generate_garbage_collection_events = 1};
    const jvmtiEventCallbacks callbacks = {.VMInit = on_init,
                                           .VMDeath = on_death,
                                           .GarbageCollectionStart = on_collection_start,
                                           .GarbageCollectionFinish = on_collection_finish};
    char text[TEXT];

    limit = atoi(option(options, "limit", "10", text));
    window = atoi(option(options, "window", "5", text));
    jvmti = environment(vm, &wanted, &callbacks);
    return jvmti != NULL && ok(jvmti, (*jvmti)->CreateRawMonitor(jvmti, "watch", &monitor), "CreateRawMonitor") &&
                   enable(jvmti, JVMTI_EVENT_VM_INIT) && enable(jvmti, JVMTI_EVENT_VM_DEATH)
               ? JNI_OK
               : JNI_ERR;
}
