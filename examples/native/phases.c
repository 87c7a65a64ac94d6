// Capabilities and phases: what this VM offers, who may have it, and which functions answer in which phase.
//
//   -agentpath:libphases.so=ask=tag_objects+generate_breakpoint_events
//
// For each capability that is asked for, without `ask` for each that there is: whether it can be had, what taking it
// says, and whether a second environment could have it too. Then a few functions in each phase, with their answers.

#include "agent.h"

static const char *const names[] = {
    "tag_objects",
    "generate_field_modification_events",
    "generate_field_access_events",
    "get_bytecodes",
    "get_synthetic_attribute",
    "get_owned_monitor_info",
    "get_current_contended_monitor",
    "get_monitor_info",
    "pop_frame",
    "redefine_classes",
    "signal_thread",
    "get_source_file_name",
    "get_line_numbers",
    "get_source_debug_extension",
    "access_local_variables",
    "maintain_original_method_order",
    "generate_single_step_events",
    "generate_exception_events",
    "generate_frame_pop_events",
    "generate_breakpoint_events",
    "suspend",
    "redefine_any_class",
    "get_current_thread_cpu_time",
    "get_thread_cpu_time",
    "generate_method_entry_events",
    "generate_method_exit_events",
    "generate_all_class_hook_events",
    "generate_compiled_method_load_events",
    "generate_monitor_events",
    "generate_vm_object_alloc_events",
    "generate_native_method_bind_events",
    "generate_garbage_collection_events",
    "generate_object_free_events",
    "force_early_return",
    "get_owned_monitor_stack_depth_info",
    "get_constant_pool",
    "set_native_method_prefix",
    "retransform_classes",
    "retransform_any_class",
    "generate_resource_exhaustion_heap_events",
    "generate_resource_exhaustion_threads_events",
    "generate_early_vmstart",
    "generate_early_class_hook_events",
    "generate_sampled_object_alloc_events",
};

enum { NAMES = sizeof names / sizeof *names };

static JavaVM *vm;
static jvmtiEnv *first, *second;
static char asked[TEXT];

// The structure's fields are single bits, in the order of `names`, the lowest of a byte first.
static bool
has(const jvmtiCapabilities *capabilities, int bit)
{
    return ((const unsigned char *)capabilities)[bit / 8] >> bit % 8 & 1;
}

static bool
can_be_had(jvmtiEnv *jvmti, int bit)
{
    jvmtiCapabilities potential = {0};

    return ok(jvmti, (*jvmti)->GetPotentialCapabilities(jvmti, &potential), "GetPotentialCapabilities") &&
           has(&potential, bit);
}

static void
report_capabilities(void)
{
    char error[TEXT];

    for (int bit = 0; bit < NAMES; bit++) {
        if (*asked == '\0' ? !can_be_had(first, bit) : !is_among(names[bit], asked)) {
            continue;
        }
        bool before = can_be_had(first, bit);
        jvmtiCapabilities one = {0}, held = {0};
        ((unsigned char *)&one)[bit / 8] = (unsigned char)(1 << bit % 8);
        jvmtiError answer = (*first)->AddCapabilities(first, &one);
        (*first)->GetCapabilities(first, &held);
        say("can_%s: offered %d, add %s, held %d, offered to another %d", names[bit], before,
            error_name(first, answer, error), has(&held, bit), can_be_had(second, bit));
    }
}

static void
report_phase(const char *where)
{
    jvmtiPhase phase;
    jvmtiCapabilities none = {0};
    jrawMonitorID monitor = NULL;
    jthread thread = NULL, *threads = NULL;
    jint count = 0;
    void *made = NULL;
    char answers[4][TEXT];

    jvmtiError known = (*first)->GetPhase(first, &phase);
    say("%s: phase %d, GetEnv %d", where, known == JVMTI_ERROR_NONE ? (int)phase : -1,
        (int)(*vm)->GetEnv(vm, &made, JVMTI_VERSION_1_2));
    jvmtiError created = (*first)->CreateRawMonitor(first, "phases", &monitor);
    jvmtiError listed = (*first)->GetAllThreads(first, &count, &threads);
    say("  AddCapabilities %s, CreateRawMonitor %s, GetCurrentThread %s, GetAllThreads %s",
        error_name(first, (*first)->AddCapabilities(first, &none), answers[0]), error_name(first, created, answers[1]),
        error_name(first, (*first)->GetCurrentThread(first, &thread), answers[2]),
        error_name(first, listed, answers[3]));
    if (created == JVMTI_ERROR_NONE) {
        ok(first, (*first)->DestroyRawMonitor(first, monitor), "DestroyRawMonitor");
    }
    if (listed == JVMTI_ERROR_NONE) {
        ok(first, (*first)->Deallocate(first, (unsigned char *)threads), "Deallocate");
    }
}

static void JNICALL
on_start(jvmtiEnv *jvmti, JNIEnv *jni)
{
    report_phase("VMStart");
}

static void JNICALL
on_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    jvmtiCapabilities held = {0};

    report_phase("VMInit");
    // What was taken and is given back can be had again, though some of it could only be had before the VM began.
    (*first)->GetCapabilities(first, &held);
    ok(first, (*first)->RelinquishCapabilities(first, &held), "RelinquishCapabilities");
    for (int bit = 0; bit < NAMES; bit++) {
        if (has(&held, bit) && (*asked == '\0' || is_among(names[bit], asked))) {
            say("can_%s: given back, offered to another %d", names[bit], can_be_had(second, bit));
        }
    }
}

static void JNICALL
on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    report_phase("VMDeath");
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
    const jvmtiCapabilities none = {0};
    const jvmtiEventCallbacks callbacks = {.VMStart = on_start, .VMInit = on_init, .VMDeath = on_death};

    vm = java_vm;
    option(options, "ask", "", asked);
    first = environment(vm, &none, &callbacks);
    second = environment(vm, &none, &callbacks);
    if (first == NULL || second == NULL) {
        return JNI_ERR;
    }
    report_phase("OnLoad");
    report_capabilities();
    return enable(first, JVMTI_EVENT_VM_START) && enable(first, JVMTI_EVENT_VM_INIT) &&
                   enable(first, JVMTI_EVENT_VM_DEATH)
               ? JNI_OK
               : JNI_ERR;
}

JNIEXPORT void JNICALL
Agent_OnUnload(JavaVM *java_vm)
{
    report_phase("OnUnload");
}
