// A breakpoint that shows the variables: each time a line is reached, what the variables of its method are.
//
//   -agentpath:libbreakpoint.so=class=Lmarket/Basket;,method=add,line=21,variables=article+price
//
// Without `line` it stands where the method begins, without `variables` all are shown that have a value there.

#include "agent.h"

static char class_wanted[TEXT], method_wanted[TEXT], variables_wanted[TEXT];
static int line_wanted;
static bool armed;
static jlong hits;

// Where the breakpoint goes: the first location of the line, or of the method.
static bool
find_location(jvmtiEnv *jvmti, jmethodID method, jlocation *location)
{
    jvmtiLineNumberEntry *table = NULL;
    jint count = 0;
    jlocation last;
    bool found = false;

    if (line_wanted == 0) {
        return ok(jvmti, (*jvmti)->GetMethodLocation(jvmti, method, location, &last), "GetMethodLocation");
    }
    if (!ok(jvmti, (*jvmti)->GetLineNumberTable(jvmti, method, &count, &table), "GetLineNumberTable")) {
        return false;
    }
    for (jint i = 0; i < count && !found; i++) {
        if (table[i].line_number == line_wanted) {
            *location = table[i].start_location;
            found = true;
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
    return found;
}

static void JNICALL
on_class_prepare(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
    jmethodID *methods = NULL;
    jint count = 0;
    jlocation location;
    char name[TEXT], again[TEXT];

    if (armed || strcmp(class_name(jvmti, class, name), class_wanted) != 0 ||
        !ok(jvmti, (*jvmti)->GetClassMethods(jvmti, class, &count, &methods), "GetClassMethods")) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        if (strcmp(method_name(jvmti, methods[i], name), method_wanted) == 0 &&
            find_location(jvmti, methods[i], &location)) {
            armed = ok(jvmti, (*jvmti)->SetBreakpoint(jvmti, methods[i], location), "SetBreakpoint");
            say("breakpoint in %s.%s, line %d, set again: %s", class_wanted, name,
                line_number(jvmti, methods[i], location),
                error_name(jvmti, (*jvmti)->SetBreakpoint(jvmti, methods[i], location), again));
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
}

static void
show(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, const jvmtiLocalVariableEntry *variable)
{
    jint number = 0;
    jobject object = NULL;
    char text[TEXT];

    jvmtiError error = (*jvmti)->GetLocalInt(jvmti, thread, 0, variable->slot, &number);
    if (error == JVMTI_ERROR_NONE) {
        say("  %s = %d", variable->name, (int)number);
        return;
    }
    if (error == JVMTI_ERROR_TYPE_MISMATCH) {
        error = (*jvmti)->GetLocalObject(jvmti, thread, 0, variable->slot, &object);
    }
    if (error == JVMTI_ERROR_INVALID_SLOT) {
        return; // CPython's table gives a variable all of its method; but it has no value yet
    }
    if (error != JVMTI_ERROR_NONE) {
        say("  %s: %s", variable->name, error_name(jvmti, error, text));
    } else if (object == NULL) {
        say("  %s = null", variable->name);
    } else {
        say("  %s is a %s", variable->name, class_of_object(jvmti, jni, object, text));
        (*jni)->DeleteLocalRef(jni, object);
    }
}

static void JNICALL
on_breakpoint(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, jlocation location)
{
    jvmtiLocalVariableEntry *table = NULL;
    jint count = 0;
    jobject instance = NULL;
    char class[TEXT], name[TEXT];

    say("hit %ld in %s.%s, line %d", (long)++hits, class_of_method(jvmti, jni, method, class),
        method_name(jvmti, method, name), line_number(jvmti, method, location));
    if ((*jvmti)->GetLocalInstance(jvmti, thread, 0, &instance) == JVMTI_ERROR_NONE && instance != NULL) {
        say("  of a %s", class_of_object(jvmti, jni, instance, class));
        (*jni)->DeleteLocalRef(jni, instance);
    }
    if (!ok(jvmti, (*jvmti)->GetLocalVariableTable(jvmti, method, &count, &table), "GetLocalVariableTable")) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        bool there = location >= table[i].start_location && location < table[i].start_location + table[i].length;
        if (there && (*variables_wanted == '\0' || is_among(table[i].name, variables_wanted))) {
            show(jvmti, jni, thread, &table[i]);
        }
        (*jvmti)->Deallocate(jvmti, (unsigned char *)table[i].name);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)table[i].signature);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)table[i].generic_signature);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
}

JNIEXPORT jint JNICALL
Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    const jvmtiCapabilities wanted = {
        .can_generate_breakpoint_events = 1, .can_access_local_variables = 1, .can_get_line_numbers = 1};
    const jvmtiEventCallbacks callbacks = {.ClassPrepare = on_class_prepare, .Breakpoint = on_breakpoint};
    char text[TEXT];

    option(options, "class", "", class_wanted);
    option(options, "method", "", method_wanted);
    option(options, "variables", "", variables_wanted);
    line_wanted = atoi(option(options, "line", "0", text));
    jvmtiEnv *jvmti = environment(vm, &wanted, &callbacks);
    return jvmti != NULL && enable(jvmti, JVMTI_EVENT_CLASS_PREPARE) && enable(jvmti, JVMTI_EVENT_BREAKPOINT) ? JNI_OK
                                                                                                              : JNI_ERR;
}
