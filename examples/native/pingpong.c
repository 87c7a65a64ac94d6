// Raw-monitor ping-pong: two threads of the agent's own take turns.
//
//   -agentpath:libpingpong.so=rounds=1000
//
// One is started by RunAgentThread, the other by the system and attached to the VM. Each waits for its turn in a raw
// monitor and hands it on. What the monitor says to who does not own it, and a wait with a limit, come first.

#include "agent.h"

#include <pthread.h>

static JavaVM *vm;
static jvmtiEnv *jvmti;
static jrawMonitorID table;
static int rounds;
static int turn = -1; // 0: ping's, 1: pong's; under `table`, as all below
static bool seated;   // pong is there
static int playing = 2;
static int strokes[2];

static void
play(int player)
{
    (*jvmti)->RawMonitorEnter(jvmti, table);
    for (int round = 0; round < rounds; round++) {
        while (turn != player) {
            (*jvmti)->RawMonitorWait(jvmti, table, 0);
        }
        strokes[player]++;
        turn = 1 - player;
        (*jvmti)->RawMonitorNotifyAll(jvmti, table); // one alone might be who waits for the end
    }
    playing--;
    (*jvmti)->RawMonitorNotifyAll(jvmti, table);
    (*jvmti)->RawMonitorExit(jvmti, table);
}

static void
introduce(JNIEnv *jni)
{
    jvmtiThreadInfo info;

    if (ok(jvmti, (*jvmti)->GetThreadInfo(jvmti, NULL, &info), "GetThreadInfo")) {
        say("%s plays, %s", info.name, info.is_daemon ? "as a daemon" : "and is waited for");
        (*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
    }
}

static void JNICALL
ping(jvmtiEnv *own, JNIEnv *jni, void *argument)
{
    introduce(jni);
    (*jvmti)->RawMonitorEnter(jvmti, table);
    turn = 0; // the game begins
    (*jvmti)->RawMonitorExit(jvmti, table);
    play(0);
}

static void *
pong(void *argument)
{
    JavaVMAttachArgs arguments = {.version = JNI_VERSION_1_2, .name = "pong"};
    JNIEnv *jni = NULL;
    void *none = NULL;

    say("before it is attached: GetEnv %d", (int)(*vm)->GetEnv(vm, &none, JNI_VERSION_1_2));
    if ((*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&jni, &arguments) != JNI_OK) {
        say("AttachCurrentThreadAsDaemon failed");
        return NULL;
    }
    introduce(jni);
    (*jvmti)->RawMonitorEnter(jvmti, table);
    seated = true;
    (*jvmti)->RawMonitorNotifyAll(jvmti, table);
    (*jvmti)->RawMonitorExit(jvmti, table);
    play(1);
    if ((*vm)->DetachCurrentThread(vm) != JNI_OK) {
        say("DetachCurrentThread failed");
    }
    return NULL;
}

// A java.lang.Thread that RunAgentThread can start.
static jthread
new_thread(JNIEnv *jni, const char *name)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID init = class == NULL ? NULL : (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V");
    jstring text = init == NULL ? NULL : (*jni)->NewStringUTF(jni, name);

    return text == NULL ? NULL : (*jni)->NewObject(jni, class, init, text);
}

static void JNICALL
on_init(jvmtiEnv *own, JNIEnv *jni, jthread thread)
{
    char first[TEXT], second[TEXT];
    pthread_t attached;

    say("not its owner: exit %s, notify %s", error_name(jvmti, (*jvmti)->RawMonitorExit(jvmti, table), first),
        error_name(jvmti, (*jvmti)->RawMonitorNotify(jvmti, table), second));
    (*jvmti)->RawMonitorEnter(jvmti, table);
    (*jvmti)->RawMonitorEnter(jvmti, table);
    say("its owner, twice: wait %s, exit %s", error_name(jvmti, (*jvmti)->RawMonitorWait(jvmti, table, 10), first),
        error_name(jvmti, (*jvmti)->RawMonitorExit(jvmti, table), second));
    (*jvmti)->RawMonitorExit(jvmti, table);

    if (pthread_create(&attached, NULL, pong, NULL) != 0) {
        say("pthread_create failed");
        return;
    }
    pthread_detach(attached);
    (*jvmti)->RawMonitorEnter(jvmti, table);
    while (!seated) {
        (*jvmti)->RawMonitorWait(jvmti, table, 0);
    }
    (*jvmti)->RawMonitorExit(jvmti, table);
    ok(jvmti, (*jvmti)->RunAgentThread(jvmti, new_thread(jni, "ping"), ping, NULL, JVMTI_THREAD_NORM_PRIORITY),
       "RunAgentThread");
    (*jvmti)->RawMonitorEnter(jvmti, table);
    while (playing > 0) {
        (*jvmti)->RawMonitorWait(jvmti, table, 0);
    }
    (*jvmti)->RawMonitorExit(jvmti, table);
    say("ping %d, pong %d", strokes[0], strokes[1]);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
    const jvmtiCapabilities none = {0};
    const jvmtiEventCallbacks callbacks = {.VMInit = on_init};
    char text[TEXT];

    vm = java_vm;
    rounds = atoi(option(options, "rounds", "1000", text));
    jvmti = environment(vm, &none, &callbacks);
    return jvmti != NULL && ok(jvmti, (*jvmti)->CreateRawMonitor(jvmti, "table", &table), "CreateRawMonitor") &&
                   enable(jvmti, JVMTI_EVENT_VM_INIT)
               ? JNI_OK
               : JNI_ERR;
}
