// An exception logger: what is thrown, where, and where it will be caught.
//
//   -agentpath:libexceptions.so=kind=Lmarket/
//
// Exceptions whose class begins with `kind`, with methods and lines.

#include "agent.h"

static char kind_wanted[TEXT];

// Whether it is one of those that are wanted; its class is in `kind` then.
static bool
is_wanted(jvmtiEnv *jvmti, JNIEnv *jni, jobject exception, char kind[TEXT])
{
    return strncmp(class_of_object(jvmti, jni, exception, kind), kind_wanted, strlen(kind_wanted)) == 0;
}

static void JNICALL
on_exception(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, jlocation location, jobject exception,
             jmethodID catcher, jlocation catch_location)
{
    char kind[TEXT], class[TEXT], name[TEXT];

    if (!is_wanted(jvmti, jni, exception, kind)) {
        return;
    }
    say("%s thrown in %s.%s, line %d", kind, class_of_method(jvmti, jni, method, class),
        method_name(jvmti, method, name), line_number(jvmti, method, location));
    if (catcher == NULL) {
        say("  nobody will catch it");
        return;
    }
    say("  %s.%s will catch it, line %d", class_of_method(jvmti, jni, catcher, class),
        method_name(jvmti, catcher, name), line_number(jvmti, catcher, catch_location));
}

static void JNICALL
on_catch(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method, jlocation location, jobject exception)
{
    char kind[TEXT], class[TEXT], name[TEXT];

    if (is_wanted(jvmti, jni, exception, kind)) {
        say("%s caught in %s.%s, line %d", kind, class_of_method(jvmti, jni, method, class),
            method_name(jvmti, method, name), line_number(jvmti, method, location));
    }
}

static jint
begin(JavaVM *vm, const char *options)
{
    const jvmtiCapabilities wanted = {.can_generate_exception_events = 1, .can_get_line_numbers = 1};
    const jvmtiEventCallbacks callbacks = {.Exception = on_exception, .ExceptionCatch = on_catch};

    option(options, "kind", "", kind_wanted);
    jvmtiEnv *jvmti = environment(vm, &wanted, &callbacks);
    return jvmti != NULL && enable(jvmti, JVMTI_EVENT_EXCEPTION) && enable(jvmti, JVMTI_EVENT_EXCEPTION_CATCH)
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
