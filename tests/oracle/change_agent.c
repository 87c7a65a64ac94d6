// An agent for a real JVM and for CPython: stops and starts threads, gives classes new code, and changes modules, in
// Changed.java or changed.py, and writes down what becomes of it. Its options are a folder.

#include <jvmti.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused))

static FILE *answers;
static jvmtiEnv *env;
static jrawMonitorID monitor;
static int ran, is_ready, has_ended, hooked, replaces;
static unsigned char *bytes;
static jint size;

static void
say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(answers, format, arguments);
    va_end(arguments);
    fputc('\n', answers);
    fflush(answers);
}

#define CALL(name, ...) say(#name " %d", (*env)->name(env, ##__VA_ARGS__))

// -- threads -------------------------------------------------------------------------------------

static void JNICALL
agent_thread(jvmtiEnv *own, JNIEnv *jni, void *argument)
{
    jthread current;
    jvmtiThreadInfo info;
    (*own)->GetCurrentThread(own, &current);
    (*own)->GetThreadInfo(own, current, &info);
    (*env)->RawMonitorEnter(env, monitor);
    say("    runs %s %d %d %d %d", info.name, info.is_daemon, own == env, jni != NULL, argument == &ran);
    ran++;
    (*env)->RawMonitorNotifyAll(env, monitor);
    (*env)->RawMonitorExit(env, monitor);
}

static jthread
new_thread(JNIEnv *jni, const char *name)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID made = (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V");
    return (*jni)->NewObject(jni, class, made, (*jni)->NewStringUTF(jni, name));
}

static void
run_threads(JNIEnv *jni, jthread current)
{
    jthread first = new_thread(jni, "first"), second = new_thread(jni, "second");
    CALL(RunAgentThread, first, NULL, NULL, 5);
    CALL(RunAgentThread, NULL, agent_thread, &ran, 5);
    CALL(RunAgentThread, first, agent_thread, &ran, 0);
    CALL(RunAgentThread, first, agent_thread, &ran, 11);
    CALL(RunAgentThread, (*jni)->FindClass(jni, "java/lang/Object"), agent_thread, &ran, 5);
    (*env)->RawMonitorEnter(env, monitor);
    CALL(RunAgentThread, first, agent_thread, &ran, 1);
    while (ran < 1) {
        (*env)->RawMonitorWait(env, monitor, 0);
    }
    CALL(RunAgentThread, second, agent_thread, &ran, 10);
    while (ran < 2) {
        (*env)->RawMonitorWait(env, monitor, 0);
    }
    (*env)->RawMonitorExit(env, monitor);
}

static void
stop_thread(JNIEnv *jni)
{
    jint count;
    jthread *all, worker = NULL;
    jvmtiThreadInfo info;
    jclass class = (*jni)->FindClass(jni, "java/lang/IllegalStateException");
    jobject error = (*jni)->NewObject(jni, class, (*jni)->GetMethodID(jni, class, "<init>", "()V"));
    (*env)->GetAllThreads(env, &count, &all);
    for (int i = 0; i < count; i++) {
        if ((*env)->GetThreadInfo(env, all[i], &info) == 0 && strcmp(info.name, "worker") == 0) {
            worker = all[i];
        }
    }
    CALL(StopThread, NULL, NULL);
    CALL(StopThread, worker, NULL);
    CALL(StopThread, class, error);
    CALL(StopThread, new_thread(jni, "never started"), error);
    CALL(StopThread, worker, error);
}

// -- classes -------------------------------------------------------------------------------------

static void JNICALL
hook(jvmtiEnv *own, JNIEnv *jni, jclass class, jobject loader, const char *name, jobject domain, jint given,
     const unsigned char *data, jint *new_size, unsigned char **new_data)
{
    size_t length = name == NULL ? 0 : strlen(name);
    if (class == NULL || length < 7 || strcmp(name + length - 7, "Changed") != 0) {
        return;
    }
    hooked++;
    if (bytes == NULL) {
        bytes = malloc(size = given);
        memcpy(bytes, data, given);
    }
    if (replaces && (*own)->Allocate(own, given, new_data) == 0) {
        memcpy(*new_data, data, given);
        *new_size = given;
        if (replaces == 2) {
            memset(*new_data, 0x55, 8);
        }
    }
}

static void
change_classes(JNIEnv *jni, jclass class, jmethodID method)
{
    jclass object = (*jni)->FindClass(jni, "java/lang/Object"), two[] = {class, object};
    jboolean obsolete = 9;
    CALL(RetransformClasses, 1, &class);
    for (replaces = 1; replaces < 3; replaces++) {
        CALL(RetransformClasses, 1, &class);
    }
    replaces = 0;
    say("    hooked %d, %d bytes", hooked, size > 100);
    CALL(RetransformClasses, 1, NULL);
    CALL(RetransformClasses, -1, &class);
    CALL(RetransformClasses, 1, &(jclass){NULL});
    CALL(RetransformClasses, 1, &(jclass){new_thread(jni, "no class")});
    CALL(RetransformClasses, 1, &(jclass){(*jni)->FindClass(jni, "[I")});
    jvmtiClassDefinition same = {class, size, bytes}, wrong = {class, 8, (unsigned char *)"no class"};
    jvmtiClassDefinition empty = {class, 0, bytes}, none = {class, size, NULL}, no_class = {NULL, size, bytes};
    jvmtiClassDefinition part = {class, size / 2, bytes}, both[] = {same, wrong};
    CALL(RedefineClasses, 0, &same);
    CALL(RedefineClasses, -1, &same);
    CALL(RedefineClasses, 1, NULL);
    CALL(RedefineClasses, 1, &no_class);
    CALL(RedefineClasses, 1, &none);
    CALL(RedefineClasses, 1, &empty);
    CALL(RedefineClasses, 1, &wrong);
    CALL(RedefineClasses, 1, &part);
    CALL(RedefineClasses, 2, both);
    CALL(RedefineClasses, 1, &same);
    CALL(IsMethodObsolete, method, &obsolete);
    say("    %d", obsolete);
    CALL(IsModifiableClass, two[0], &obsolete);
    say("    %d", obsolete);
}

// -- modules -------------------------------------------------------------------------------------

static void
change_modules(JNIEnv *jni, jclass class)
{
    jobject own = (*jni)->GetModule(jni, class);
    jobject other = (*jni)->GetModule(jni, (*jni)->FindClass(jni, "java/lang/Object"));
    jclass object = (*jni)->FindClass(jni, "java/lang/Object");
    CALL(AddModuleReads, NULL, other);
    CALL(AddModuleReads, own, NULL);
    CALL(AddModuleReads, object, other);
    CALL(AddModuleExports, NULL, "java/util", own);
    CALL(AddModuleExports, other, NULL, own);
    CALL(AddModuleExports, other, "java.util", NULL);
    CALL(AddModuleExports, other, "java.util", object);
    CALL(AddModuleOpens, NULL, "java/util", own);
    CALL(AddModuleOpens, other, NULL, own);
    CALL(AddModuleOpens, other, "java.util", NULL);
    CALL(AddModuleUses, NULL, object);
    CALL(AddModuleUses, own, NULL);
    CALL(AddModuleUses, own, own);
    CALL(AddModuleProvides, NULL, object, class);
    CALL(AddModuleProvides, own, NULL, class);
    CALL(AddModuleProvides, own, object, NULL);
    say("right ones");
    CALL(AddModuleReads, other, own);
    CALL(AddModuleExports, other, "java.util", own);
    CALL(AddModuleOpens, other, "java.util", own);
    CALL(AddModuleUses, other, object);
    CALL(AddModuleProvides, other, object, class);
}

static void JNICALL
on_entry(jvmtiEnv *own, JNIEnv *jni, jthread thread, jmethodID method)
{
    char *name = "";
    jclass class;
    (*env)->GetMethodName(env, method, &name, NULL, NULL);
    if (!is_ready && strcmp(name, "ready") == 0) {
        is_ready = 1;
        (*env)->GetMethodDeclaringClass(env, method, &class);
        run_threads(jni, thread);
        change_modules(jni, class);
        change_classes(jni, class, method);
        stop_thread(jni);
    } else if (strcmp(name, "ended") == 0) {
        say("the worker caught it, and the class is as it was");
        has_ended = 1;
    }
}

static void JNICALL
on_init(jvmtiEnv *own, JNIEnv *jni, jthread thread)
{
    (*env)->CreateRawMonitor(env, "change", &monitor);
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, NULL);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMInit = on_init, .MethodEntry = on_entry, .ClassFileLoadHook = hook};
    jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1,
                                .can_signal_thread = 1,
                                .can_redefine_classes = 1,
                                .can_retransform_classes = 1};
    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (answers == NULL || (*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_11) != JNI_OK ||
        (*env)->AddCapabilities(env, &wanted) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks);
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return 0;
}
