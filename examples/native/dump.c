// Threads and stacks: who is there, what they do, and where, when the VM is asked for a dump (jcmd PID JVMTI.data_dump)
// and at its end.
//
//   -agentpath:libdump.so=threads=clerk+porter,within=Lmarket/
//
// Without `threads` all threads are shown; `within` leaves out the frames of other classes. Methods that the compiler
// has made up have no line of their own to show.

#include "agent.h"

static char threads_wanted[TEXT], within[TEXT];

static const struct {
    jint bit;
    const char *word;
} states[] = {
    {JVMTI_THREAD_STATE_ALIVE, "alive"},
    {JVMTI_THREAD_STATE_TERMINATED, "terminated"},
    {JVMTI_THREAD_STATE_RUNNABLE, "runnable"},
    {JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER, "blocked"},
    {JVMTI_THREAD_STATE_WAITING, "waiting"},
    {JVMTI_THREAD_STATE_WAITING_INDEFINITELY, "indefinitely"},
    {JVMTI_THREAD_STATE_WAITING_WITH_TIMEOUT, "with a limit"},
    {JVMTI_THREAD_STATE_SLEEPING, "sleeping"},
    {JVMTI_THREAD_STATE_IN_OBJECT_WAIT, "for an object"},
    {JVMTI_THREAD_STATE_PARKED, "parked"},
    {JVMTI_THREAD_STATE_SUSPENDED, "suspended"},
    {JVMTI_THREAD_STATE_INTERRUPTED, "interrupted"},
};

static void
show_frames(jvmtiEnv *jvmti, JNIEnv *jni, const jvmtiStackInfo *stack)
{
    char class[TEXT], name[TEXT];
    jboolean made_up = JNI_FALSE;

    for (jint i = 0; i < stack->frame_count; i++) {
        const jvmtiFrameInfo *frame = &stack->frame_buffer[i];
        class_of_method(jvmti, jni, frame->method, class);
        if (strncmp(class, within, strlen(within)) == 0 &&
            (*jvmti)->IsMethodSynthetic(jvmti, frame->method, &made_up) == JVMTI_ERROR_NONE && !made_up) {
            say("    %s.%s, line %d", class, method_name(jvmti, frame->method, name),
                line_number(jvmti, frame->method, frame->location));
        }
    }
}

static void
show_thread(jvmtiEnv *jvmti, JNIEnv *jni, const jvmtiStackInfo *stack)
{
    jvmtiThreadInfo info;
    jvmtiThreadGroupInfo group = {0};
    char words[TEXT] = "";

    if (!ok(jvmti, (*jvmti)->GetThreadInfo(jvmti, stack->thread, &info), "GetThreadInfo")) {
        return;
    }
    if (*threads_wanted == '\0' || is_among(info.name, threads_wanted)) {
        for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
            if (stack->state & states[i].bit) {
                snprintf(words + strlen(words), TEXT - strlen(words), "%s%s", *words == '\0' ? "" : " ",
                         states[i].word);
            }
        }
        if (info.thread_group != NULL) {
            ok(jvmti, (*jvmti)->GetThreadGroupInfo(jvmti, info.thread_group, &group), "GetThreadGroupInfo");
        }
        say("  %s of group %s%s: %s", info.name, group.name == NULL ? "none" : group.name,
            info.is_daemon ? ", a daemon" : "", words);
        show_frames(jvmti, jni, stack);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)group.name);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
}

static void
dump(jvmtiEnv *jvmti, JNIEnv *jni, const char *when)
{
    enum { FRAMES = 64 };
    jvmtiStackInfo *stacks = NULL;
    jint count = 0;

    if ((*jni)->PushLocalFrame(jni, 16) != JNI_OK) { // what was made here is released together
        return;
    }
    say("%s:", when);
    if (ok(jvmti, (*jvmti)->GetAllStackTraces(jvmti, FRAMES, &stacks, &count), "GetAllStackTraces")) {
        for (jint i = 0; i < count; i++) {
            show_thread(jvmti, jni, &stacks[i]);
        }
        (*jvmti)->Deallocate(jvmti, (unsigned char *)stacks); // the stacks and all their frames
    }
    (*jni)->PopLocalFrame(jni, NULL);
}

static void JNICALL
on_request(jvmtiEnv *jvmti)
{
    JavaVM *vm = NULL;
    JNIEnv *jni = NULL;

    // This event comes without a JNI environment; the thread has one all the same.
    if ((*jvmti)->GetEnvironmentLocalStorage(jvmti, (void **)&vm) == JVMTI_ERROR_NONE &&
        (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_1_2) == JNI_OK) {
        dump(jvmti, jni, "asked for");
    }
}

static void JNICALL
on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    dump(jvmti, jni, "at the end");
}

static jint
begin(JavaVM *vm, const char *options)
{
    const jvmtiCapabilities wanted = {.can_get_line_numbers = 1, .can_get_synthetic_attribute = 1};
    const jvmtiEventCallbacks callbacks = {.DataDumpRequest = on_request, .VMDeath = on_death};

    option(options, "threads", "", threads_wanted);
    option(options, "within", "", within);
    jvmtiEnv *jvmti = environment(vm, &wanted, &callbacks);
    return jvmti != NULL && ok(jvmti, (*jvmti)->SetEnvironmentLocalStorage(jvmti, vm), "SetEnvironmentLocalStorage") &&
                   enable(jvmti, JVMTI_EVENT_DATA_DUMP_REQUEST) && enable(jvmti, JVMTI_EVENT_VM_DEATH)
               ? JNI_OK
               : JNI_ERR;
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    return begin(vm, options);
}

JNIEXPORT jint JNICALL
Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    return begin(vm, options);
}
