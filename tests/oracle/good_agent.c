// An agent for a real JVM and for CPython: calls the interface's functions with good arguments, on what Slots.java and
// slots.py have in common, and writes down what becomes of it. Its options are a folder.

#include <jvmti.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *answers;
static jvmtiEnv *env;
static int done;

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

// A function's name, its answer, and, if the call went well, what it gave.
#define CALL(name, ...)                                                                                                \
    do {                                                                                                               \
        error = (*env)->name(env, ##__VA_ARGS__);                                                                      \
        say(#name " %d", error);                                                                                       \
    } while (0)
#define GIVES(format, ...)                                                                                             \
    do {                                                                                                               \
        if (error == JVMTI_ERROR_NONE) {                                                                               \
            say("    " format, ##__VA_ARGS__);                                                                         \
        }                                                                                                              \
    } while (0)

static jvmtiError error;
static jint count, number, major;
static jlong big;
static jboolean truth;
static char *name, *signature, *generic;
static jthread current, worker;
static jclass slots;
static jmethodID stop_method, stopped_method, go_method;
static jfieldID field;
static jobject object, text, self;

static char *
own_name(jmethodID method)
{
    char *found = NULL;
    (*env)->GetMethodName(env, method, &found, NULL, NULL);
    return found == NULL ? "?" : found;
}

static int
is_slots(jclass class)
{
    char *found = NULL;
    (*env)->GetClassSignature(env, class, &found, NULL);
    return found != NULL && strlen(found) >= 6 && strcmp(found + strlen(found) - 6, "Slots;") == 0;
}

static void
threads(void)
{
    jthread *all;
    jvmtiThreadInfo info;
    jthreadGroup *groups;
    jvmtiThreadGroupInfo group;
    jthread *children;
    jobject *monitors;
    jvmtiMonitorStackDepthInfo *depths;
    jvmtiStackInfo *stacks;
    jvmtiFrameInfo frames[10];
    jmethodID method;
    jlocation location;
    void *data;
    jvmtiError results[2];
    jthread pair[2];

    CALL(GetCurrentThread, &current);
    CALL(GetAllThreads, &count, &all);
    GIVES("some %d", count > 1);
    for (int i = 0; i < count; i++) {
        memset(&info, 0, sizeof info);
        (*env)->GetThreadInfo(env, all[i], &info);
        if (info.name != NULL && strcmp(info.name, "worker") == 0) {
            worker = all[i];
        }
    }
    CALL(GetThreadInfo, worker, &info);
    GIVES("%s %d %d, in a group %d", info.name, info.priority, info.is_daemon, info.thread_group != NULL);
    CALL(GetThreadInfo, NULL, &info);
    GIVES("%d %d", info.priority, info.is_daemon);
    for (int i = 0; i < 5000; i++) { // it may be on its way to wait
        (*env)->GetThreadState(env, worker, &number);
        if (number & JVMTI_THREAD_STATE_WAITING) {
            break;
        }
        usleep(1000);
    }
    CALL(GetThreadState, worker, &number);
    GIVES("alive %d, waits %d", (number & JVMTI_THREAD_STATE_ALIVE) != 0, (number & JVMTI_THREAD_STATE_WAITING) != 0);
    CALL(GetThreadState, NULL, &number);
    GIVES("%x", number);
    CALL(GetTopThreadGroups, &count, &groups);
    GIVES("%d", count);
    CALL(GetThreadGroupInfo, groups[0], &group);
    GIVES("%s %d %d, below %d", group.name, group.max_priority, group.is_daemon, group.parent != NULL);
    CALL(GetThreadGroupChildren, groups[0], &count, &children, &number, &groups);
    GIVES("has some %d %d", count >= 0, number > 0);
    CALL(GetFrameCount, NULL, &count);
    GIVES("many %d", count > 2);
    CALL(GetFrameLocation, NULL, 1, &method, &location);
    GIVES("%s %d", own_name(method), location > 0);
    CALL(GetFrameLocation, NULL, 1000, &method, &location);
    CALL(GetStackTrace, NULL, 0, 3, frames, &count);
    for (int i = 0; i < count; i++) {
        GIVES("%s %d", own_name(frames[i].method), frames[i].location >= 0);
    }
    CALL(GetStackTrace, NULL, 1, 1, frames, &count);
    GIVES("%d %s", count, own_name(frames[0].method));
    CALL(GetStackTrace, NULL, -1, 10, frames, &count);
    GIVES("%d", count);
    CALL(GetStackTrace, NULL, 1000, 10, frames, &count);
    CALL(GetStackTrace, NULL, 0, 0, frames, &count);
    GIVES("%d", count);
    CALL(GetAllStackTraces, 4, &stacks, &count);
    GIVES("%d", count > 1);
    for (int i = 0; error == JVMTI_ERROR_NONE && i < count; i++) {
        if (stacks[i].frame_count > 4 || stacks[i].thread == NULL) {
            say("    wrong at %d", i);
        }
    }
    CALL(Deallocate, (unsigned char *)stacks);
    pair[0] = worker;
    pair[1] = current;
    CALL(GetThreadListStackTraces, 2, pair, 1, &stacks);
    GIVES("%d %s", stacks[1].frame_count, own_name(stacks[1].frame_buffer[0].method));
    CALL(Deallocate, (unsigned char *)stacks);
    CALL(GetThreadListStackTraces, 0, pair, 1, &stacks);
    CALL(GetOwnedMonitorInfo, current, &count, &monitors);
    GIVES("%d", count);
    CALL(GetOwnedMonitorStackDepthInfo, current, &count, &depths);
    GIVES("%d", count);
    CALL(GetCurrentContendedMonitor, current, &object);
    GIVES("%d", object != NULL);
    CALL(SetThreadLocalStorage, worker, &count);
    CALL(GetThreadLocalStorage, worker, &data);
    GIVES("%d", data == &count);
    CALL(GetThreadLocalStorage, NULL, &data);
    GIVES("%d", data == NULL);
    CALL(SuspendThread, worker);
    CALL(SuspendThread, worker);
    CALL(GetThreadState, worker, &number);
    GIVES("%d", (number & JVMTI_THREAD_STATE_SUSPENDED) != 0);
    CALL(ResumeThread, worker);
    CALL(ResumeThread, worker);
    pair[1] = worker;
    CALL(SuspendThreadList, 2, pair, results);
    GIVES("%d %d", results[0], results[1]);
    CALL(ResumeThreadList, 2, pair, results);
    GIVES("%d %d", results[0], results[1]);
    CALL(InterruptThread, worker);
    CALL(GetThreadCpuTime, worker, &big);
    GIVES("%d", big >= 0);
    CALL(GetCurrentThreadCpuTime, &big);
    GIVES("%d", big > 0);
    CALL(NotifyFramePop, NULL, 0);
    CALL(SetEventNotificationMode, JVMTI_ENABLE, JVMTI_EVENT_BREAKPOINT, worker);
    CALL(SetEventNotificationMode, JVMTI_DISABLE, JVMTI_EVENT_BREAKPOINT, worker);
    CALL(SetEventNotificationMode, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, worker);
}

static void
classes(void)
{
    jclass *all;
    jmethodID *methods;
    jfieldID *fields;
    jclass class;
    jobject loader;
    jobject *modules;

    CALL(GetLoadedClasses, &count, &all);
    for (int i = 0; i < count; i++) {
        if (is_slots(all[i])) {
            slots = all[i];
        }
    }
    CALL(GetClassSignature, slots, &signature, &generic);
    GIVES("%s", generic == NULL ? "not generic" : generic);
    CALL(GetClassSignature, slots, NULL, NULL);
    CALL(GetClassStatus, slots, &number);
    GIVES("%d", number);
    CALL(GetSourceFileName, slots, &name);
    CALL(GetClassModifiers, slots, &number);
    GIVES("%x", number);
    CALL(GetImplementedInterfaces, slots, &count, &all);
    GIVES("%d", count);
    CALL(IsInterface, slots, &truth);
    GIVES("%d", truth);
    CALL(IsArrayClass, slots, &truth);
    GIVES("%d", truth);
    CALL(IsModifiableClass, slots, &truth);
    GIVES("%d", truth);
    CALL(GetClassLoader, slots, &loader);
    GIVES("%d", loader != NULL);
    CALL(GetClassLoaderClasses, loader, &count, &all);
    truth = 0;
    for (int i = 0; i < count; i++) {
        truth |= is_slots(all[i]);
    }
    GIVES("%d", truth);
    CALL(GetClassVersionNumbers, slots, &number, &major);
    GIVES("%d %d", number, major > 50);
    unsigned char *bytes;
    CALL(GetConstantPool, slots, &count, &number, &bytes);
    GIVES("%d", number > 10);
    CALL(GetClassMethods, slots, &count, &methods);
    for (int i = 0; i < count; i++) {
        const char *own = own_name(methods[i]);
        if (strcmp(own, "stop") == 0) {
            stop_method = methods[i];
        } else if (strcmp(own, "stopped") == 0) {
            stopped_method = methods[i];
        } else if (strcmp(own, "go") == 0) {
            go_method = methods[i];
        }
    }
    CALL(GetClassFields, slots, &count, &fields);
    for (int i = 0; i < count; i++) {
        (*env)->IsFieldSynthetic(env, slots, fields[i], &truth);
        if (!truth) {
            CALL(GetFieldName, slots, fields[i], &name, &signature, &generic);
            CALL(GetFieldModifiers, slots, fields[i], &number);
            GIVES("%s %x", name, number);
        }
        if (strcmp(name, "field") == 0) {
            field = fields[i];
        }
    }
    CALL(GetFieldDeclaringClass, slots, field, &class);
    GIVES("%d", is_slots(class));
    CALL(GetFieldModifiers, slots, field, &number);
    CALL(IsFieldSynthetic, slots, field, &truth);
    GIVES("%d", truth);
    CALL(SetFieldAccessWatch, slots, field);
    CALL(SetFieldAccessWatch, slots, field);
    CALL(ClearFieldAccessWatch, slots, field);
    CALL(ClearFieldAccessWatch, slots, field);
    CALL(SetFieldModificationWatch, slots, field);
    CALL(SetFieldModificationWatch, slots, field);
    CALL(ClearFieldModificationWatch, slots, field);
    CALL(ClearFieldModificationWatch, slots, field);
    CALL(GetAllModules, &count, &modules);
    GIVES("%d", count > 1);
    CALL(IsModifiableModule, modules[0], &truth);
    GIVES("%d", truth);
    CALL(GetNamedModule, NULL, "no/such", &object);
    GIVES("%d", object != NULL);
    CALL(AddModuleReads, modules[0], modules[0]);
    CALL(RetransformClasses, 0, NULL);
    CALL(RetransformClasses, 0, &slots);
}

static void
methods(void)
{
    jvmtiLineNumberEntry *lines;
    jlocation start, end;
    jclass class;
    unsigned char *bytes;

    CALL(GetMethodName, stop_method, &name, &signature, &generic);
    GIVES("%s", name);
    CALL(GetMethodName, stop_method, NULL, NULL, NULL);
    CALL(GetMethodDeclaringClass, stop_method, &class);
    GIVES("%d", is_slots(class));
    CALL(GetMethodModifiers, stop_method, &number);
    GIVES("%x", number);
    CALL(GetMethodModifiers, go_method, &number);
    GIVES("%x", number);
    CALL(GetMaxLocals, stop_method, &number);
    GIVES("%d", number >= 6);
    CALL(GetArgumentsSize, stop_method, &number);
    GIVES("%d", number);
    CALL(GetLineNumberTable, stop_method, &count, &lines);
    GIVES("%d %d", count >= 5, lines[1].line_number - lines[0].line_number >= 0);
    CALL(GetMethodLocation, stop_method, &start, &end);
    GIVES("%d %d", (int)start, end > start);
    CALL(GetBytecodes, stop_method, &count, &bytes);
    GIVES("%d", count > end);
    CALL(IsMethodNative, stop_method, &truth);
    GIVES("%d", truth);
    CALL(IsMethodSynthetic, stop_method, &truth);
    GIVES("%d", truth);
    CALL(IsMethodObsolete, stop_method, &truth);
    GIVES("%d", truth);
    CALL(SetBreakpoint, stop_method, start);
    CALL(SetBreakpoint, stop_method, start);
    CALL(ClearBreakpoint, stop_method, start);
    CALL(ClearBreakpoint, stop_method, start);
    CALL(SetBreakpoint, stop_method, 1 << 20);
}

static jint
slot_of(jvmtiLocalVariableEntry *table, jint length, const char *wanted)
{
    for (int i = 0; i < length; i++) {
        if (strcmp(table[i].name, wanted) == 0) {
            return table[i].slot;
        }
    }
    return -1;
}

static void
locals(void)
{
    jvmtiLocalVariableEntry *table;
    jint length;
    jfloat small;
    jdouble real;
    CALL(GetLocalVariableTable, stop_method, &length, &table);
    GIVES("%d", length);
#define SLOT(name) slot_of(table, length, name)
    CALL(GetLocalObject, NULL, 1, SLOT("text"), &text);
    GIVES("%d", text != NULL);
    CALL(GetLocalInt, NULL, 1, SLOT("number"), &number);
    GIVES("%d", number);
    CALL(GetLocalLong, NULL, 1, SLOT("big"), &big);
    GIVES("%lld", (long long)big);
    CALL(GetLocalFloat, NULL, 1, SLOT("small"), &small);
    GIVES("%g", small);
    CALL(GetLocalDouble, NULL, 1, SLOT("real"), &real);
    GIVES("%g", real);
    CALL(GetLocalInt, NULL, 1, SLOT("text"), &number);
    CALL(GetLocalObject, NULL, 1, 1000, &object);
    CALL(GetLocalObject, NULL, 1, -1, &object);
    CALL(GetLocalObject, NULL, -1, 0, &object);
    CALL(SetLocalInt, NULL, 1, SLOT("number"), 8);
    CALL(SetLocalLong, NULL, 1, SLOT("big"), (jlong)1 << 41);
    CALL(SetLocalFloat, NULL, 1, SLOT("small"), 0.25f);
    CALL(SetLocalDouble, NULL, 1, SLOT("real"), 2.5);
    CALL(SetLocalObject, NULL, 1, SLOT("text"), NULL);
    CALL(GetLocalObject, NULL, 1, SLOT("text"), &object);
    GIVES("%d", object != NULL);
    CALL(SetLocalObject, NULL, 1, SLOT("text"), text);
    CALL(GetLocalInstance, NULL, 2, &self);
    GIVES("%d", self != NULL);
    CALL(GetLocalInstance, NULL, 1, &object);
}

// -- the heap ----------------------------------------------------------------------------------

static int met, primitives, roots, frames, references, arrays, strings;
static jlong field_value;

static jint JNICALL
on_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    jint phase;
    met += class_tag == 100 && size > 0 && length == -1 && data == &met;
    if (*tag == 0) {
        *tag = 1000 + met;
    }
    if (met == 1) {
        say("    GetPhase within %d", (*env)->GetPhase(env, (jvmtiPhase *)&phase));
        say("    GetTime within %d", (*env)->GetTime(env, &big));
    }
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
on_reference(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info, jlong class_tag, jlong referrer_class_tag,
             jlong size, jlong *tag, jlong *referrer_tag, jint length, void *data)
{
    roots += referrer_tag == NULL;
    references += class_tag == 100 && referrer_class_tag == 100 && kind == JVMTI_HEAP_REFERENCE_FIELD && info != NULL;
    frames += kind == JVMTI_HEAP_REFERENCE_STACK_LOCAL && info->stack_local.method == go_method;
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
on_field(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info, jlong class_tag, jlong *tag, jvalue value,
         jvmtiPrimitiveType type, void *data)
{
    if (class_tag == 100 && kind == JVMTI_HEAP_REFERENCE_FIELD && type == JVMTI_PRIMITIVE_TYPE_LONG) {
        primitives++;
        field_value = value.j;
    }
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
on_array(jlong class_tag, jlong size, jlong *tag, jint length, jvmtiPrimitiveType type, const void *elements,
         void *data)
{
    if (type == JVMTI_PRIMITIVE_TYPE_BYTE && length == 3 && memcmp(elements, "\1\2\3", 3) == 0) {
        arrays = 1;
    }
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL
on_string(jlong class_tag, jlong size, jlong *tag, const jchar *value, jint length, void *data)
{
    strings += length == 6 && value[0] == 'a' && value[5] == 't';
    return JVMTI_VISIT_OBJECTS;
}

static jvmtiIterationControl JNICALL
old_object(jlong class_tag, jlong size, jlong *tag, void *data)
{
    met += data == &met && size > 0;
    return JVMTI_ITERATION_CONTINUE;
}

static jvmtiIterationControl JNICALL
old_abort(jlong class_tag, jlong size, jlong *tag, void *data)
{
    met++;
    return JVMTI_ITERATION_ABORT;
}

static jvmtiIterationControl JNICALL
old_root(jvmtiHeapRootKind kind, jlong class_tag, jlong size, jlong *tag, void *data)
{
    roots++;
    return JVMTI_ITERATION_CONTINUE;
}

static jvmtiIterationControl JNICALL
old_stack(jvmtiHeapRootKind kind, jlong class_tag, jlong size, jlong *tag, jlong thread_tag, jint depth,
          jmethodID method, jint slot, void *data)
{
    frames += method == go_method && class_tag == 100;
    return JVMTI_ITERATION_CONTINUE;
}

static jvmtiIterationControl JNICALL
old_reference(jvmtiObjectReferenceKind kind, jlong class_tag, jlong size, jlong *tag, jlong referrer_tag, jint index,
              void *data)
{
    references += class_tag == 100 && referrer_tag > 1000;
    return JVMTI_ITERATION_CONTINUE;
}

static void
heap(void)
{
    jvmtiHeapCallbacks objects = {.heap_iteration_callback = on_object};
    jvmtiHeapCallbacks all = {.heap_reference_callback = on_reference,
                              .primitive_field_callback = on_field,
                              .array_primitive_value_callback = on_array,
                              .string_primitive_value_callback = on_string};
    jobject *found;
    jlong *tags, wanted[] = {1001, 1002, 1003};

    CALL(SetTag, slots, 100);
    CALL(GetTag, slots, &big);
    GIVES("%d", (int)big);
    CALL(IterateThroughHeap, 0, slots, &objects, &met);
    GIVES("%d", met);
    CALL(IterateThroughHeap, JVMTI_HEAP_FILTER_TAGGED, slots, &objects, &met);
    GIVES("%d", met);
    CALL(GetObjectsWithTags, 3, wanted, &count, &found, &tags);
    GIVES("%d %d", count, (int)(tags[0] + tags[1] + tags[2]));
    CALL(GetObjectsWithTags, 3, wanted, &count, NULL, NULL);
    GIVES("%d", count);
    CALL(FollowReferences, 0, NULL, self, &all, NULL);
    GIVES("%d references, %d roots, %d fields of %d, array %d", references, roots, primitives, (int)field_value,
          arrays);
    references = roots = 0;
    CALL(FollowReferences, 0, NULL, NULL, &all, NULL);
    GIVES("%d references, roots %d, text %d, frame %d", references, roots > 0, strings > 0, frames > 0);
    strings = 0;
    CALL(IterateThroughHeap, 0, NULL, &all, NULL);
    GIVES("text %d", strings > 0);
    met = references = roots = frames = 0;
    CALL(IterateOverInstancesOfClass, slots, JVMTI_HEAP_OBJECT_EITHER, old_object, &met);
    GIVES("%d", met);
    CALL(IterateOverInstancesOfClass, slots, JVMTI_HEAP_OBJECT_UNTAGGED, old_object, &met);
    GIVES("%d", met);
    CALL(IterateOverHeap, JVMTI_HEAP_OBJECT_TAGGED, old_object, &met);
    GIVES("%d", met);
    CALL(IterateOverHeap, JVMTI_HEAP_OBJECT_EITHER, old_abort, &met);
    GIVES("%d", met);
    CALL(IterateOverObjectsReachableFromObject, self, old_reference, NULL);
    GIVES("%d", references);
    CALL(IterateOverReachableObjects, old_root, old_stack, old_reference, NULL);
    GIVES("roots %d, frames %d", roots > 0, frames > 0);
    CALL(ForceGarbageCollection);
    CALL(GetObjectSize, self, &big);
    GIVES("%d", big > 8);
    CALL(GetObjectHashCode, self, &number);
    CALL(GetObjectMonitorUsage, self, &(jvmtiMonitorUsage){0});
    CALL(SetHeapSamplingInterval, 1 << 20);
}

// -- the rest ----------------------------------------------------------------------------------

static void
general(void)
{
    jvmtiPhase phase;
    jvmtiTimerInfo timer;
    jvmtiJlocationFormat format;
    jvmtiCapabilities some, none = {0};
    jniNativeInterface *table;
    jvmtiExtensionFunctionInfo *functions;
    jvmtiExtensionEventInfo *events;
    char **properties;
    unsigned char *memory;
    void *data;

    CALL(GetPhase, &phase);
    GIVES("%d", phase);
    CALL(GetVersionNumber, &number);
    GIVES("%x", number & 0x70000000);
    for (int i = -1; i < 200; i++) {
        if ((*env)->GetErrorName(env, i, &name) == JVMTI_ERROR_NONE) {
            say("    %d %s", i, name);
            (*env)->Deallocate(env, (unsigned char *)name);
        }
    }
    CALL(GetErrorName, 13, NULL);
    CALL(GetErrorName, -13, NULL);
    CALL(GetJLocationFormat, &format);
    CALL(GetTimerInfo, &timer);
    GIVES("%d %d", timer.may_skip_forward, timer.may_skip_backward);
    CALL(GetTime, &big);
    CALL(GetCurrentThreadCpuTimerInfo, &timer);
    GIVES("%d", timer.kind);
    CALL(GetThreadCpuTimerInfo, &timer);
    GIVES("%d", timer.kind);
    CALL(GetAvailableProcessors, &number);
    GIVES("%d", number);
    CALL(Allocate, 10, &memory);
    memset(memory, 1, 10);
    CALL(Deallocate, memory);
    CALL(Allocate, 0, &memory);
    GIVES("%d", memory == NULL);
    CALL(Allocate, -1, &memory);
    CALL(Deallocate, NULL);
    CALL(SetEnvironmentLocalStorage, &count);
    CALL(GetEnvironmentLocalStorage, &data);
    GIVES("%d", data == &count);
    memset(&some, 0x55, sizeof some);
    CALL(GetCapabilities, &some);
    GIVES("tags %d, bytes behind %x", some.can_tag_objects, ((unsigned char *)&some)[8]);
    memset(&some, 0x55, sizeof some);
    CALL(GetPotentialCapabilities, &some);
    GIVES("tags %d, bytes behind %x", some.can_tag_objects, ((unsigned char *)&some)[8]);
    CALL(AddCapabilities, &none);
    CALL(RelinquishCapabilities, &none);
    CALL(GetJNIFunctionTable, &table);
    CALL(SetJNIFunctionTable, table);
    CALL(Deallocate, (unsigned char *)table);
    CALL(GetExtensionFunctions, &count, &functions);
    for (int i = 0; i < count; i++) {
        if (functions[i].func == NULL || functions[i].id == NULL || functions[i].short_description == NULL ||
            (functions[i].param_count > 0 && functions[i].params[0].name == NULL)) {
            say("    wrong at %d", i);
        }
    }
    CALL(GetExtensionEvents, &count, &events);
    for (int i = 0; i < count; i++) {
        if (events[i].id == NULL || events[i].short_description == NULL || events[i].params[0].name == NULL) {
            say("    wrong at %d", i);
        }
    }
    CALL(SetExtensionEventCallback, 9999, NULL);
    CALL(GetSystemProperties, &count, &properties);
    GIVES("%d %d", count > 3, properties[0] != NULL);
    CALL(GetSystemProperty, "java.vm.name", &name);
    GIVES("%d", name[0] != '\0');
    CALL(GetSystemProperty, "no.such", &name);
    CALL(GenerateEvents, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    CALL(GenerateEvents, JVMTI_EVENT_VM_INIT);
    CALL(SetVerboseFlag, JVMTI_VERBOSE_GC, JNI_FALSE);
    CALL(SetVerboseFlag, 3, JNI_FALSE);
    CALL(AddToSystemClassLoaderSearch, "no/such");
}

static void
monitors(void)
{
    jrawMonitorID monitor;
    CALL(CreateRawMonitor, "one", &monitor);
    CALL(RawMonitorExit, monitor);
    CALL(RawMonitorNotify, monitor);
    CALL(RawMonitorWait, monitor, 1);
    CALL(RawMonitorEnter, monitor);
    CALL(RawMonitorEnter, monitor);
    CALL(RawMonitorWait, monitor, 1);
    CALL(RawMonitorNotify, monitor);
    CALL(RawMonitorNotifyAll, monitor);
    CALL(RawMonitorExit, monitor);
    CALL(RawMonitorExit, monitor);
    CALL(RawMonitorExit, monitor);
    CALL(RawMonitorEnter, monitor);
    CALL(DestroyRawMonitor, monitor);
}

static void JNICALL
on_entry(jvmtiEnv *own, JNIEnv *jni, jthread thread, jmethodID method)
{
    if (done || strcmp(own_name(method), "stopped") != 0) {
        return;
    }
    done = 1;
    threads();
    classes();
    methods();
    locals();
    heap();
    general();
    monitors();
    CALL(SetEventNotificationMode, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    CALL(SetEventCallbacks, NULL, 0);
    CALL(DisposeEnvironment);
    CALL(DisposeEnvironment);
    CALL(GetTime, &big);
    fclose(answers);
}

static void JNICALL
on_init(jvmtiEnv *own, JNIEnv *jni, jthread thread)
{
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    char path[4096];
    jvmtiEventCallbacks callbacks = {.VMInit = on_init, .MethodEntry = on_entry};
    jvmtiCapabilities potential;

    snprintf(path, sizeof path, "%s/answers", options);
    answers = fopen(path, "w");
    if (answers == NULL || (*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_2) != JNI_OK) {
        return 1;
    }
    (*env)->GetPotentialCapabilities(env, &potential);
    if ((*env)->AddCapabilities(env, &potential) != JVMTI_ERROR_NONE) {
        return 1;
    }
    (*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks);
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return 0;
}
