// What the agents of this folder share: options, errors and names. Every function is small enough to be read.
//
// Options are `key=value,key=value`; what is written goes to standard output, line by line.

#ifndef AGENT_H
#define AGENT_H

#include <jvmti.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };  // bytes: an option, a class's signature, a method's name

// One call writes a line, so that those of several threads do not mix.
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
    char line[4 * TEXT];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    puts(line);
    fflush(stdout);
}

// "NONE", "WRONG_PHASE", ...
static inline const char *error_name(jvmtiEnv *jvmti, jvmtiError error, char name[TEXT]) {
    char *full = NULL;

    if ((*jvmti)->GetErrorName(jvmti, error, &full) != JVMTI_ERROR_NONE) {
        snprintf(name, TEXT, "%d", (int)error);
        return name;
    }
    const char *prefix = "JVMTI_ERROR_";
    size_t skipped = strncmp(full, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    snprintf(name, TEXT, "%s", full + skipped);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)full);
    return name;
}

// Whether the function `what` has done its work; says so when it has not.
static inline bool ok(jvmtiEnv *jvmti, jvmtiError error, const char *what) {
    char name[TEXT];

    if (error != JVMTI_ERROR_NONE) {
        say("%s: %s", what, error_name(jvmti, error, name));
    }
    return error == JVMTI_ERROR_NONE;
}

// The value of `key` among `options`, else `otherwise`, in `value`.
static inline const char *option(const char *options, const char *key, const char *otherwise, char value[TEXT]) {
    size_t length = strlen(key);

    snprintf(value, TEXT, "%s", otherwise);
    for (const char *at = options; at != NULL && *at != '\0';) {
        size_t end = strcspn(at, ",");
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            snprintf(value, TEXT, "%.*s", (int)(end - length - 1), at + length + 1);
        }
        at += end + (at[end] == ',');
    }
    return value;
}

// Whether `name` is one of `names`, which stand between plus signs.
static inline bool is_among(const char *name, const char *names) {
    size_t length = strlen(name);

    for (const char *at = names; *at != '\0';) {
        size_t end = strcspn(at, "+");
        if (end == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += end + (at[end] == '+');
    }
    return false;
}

// `Lshop/Basket;`, or "?" for what is no class.
static inline const char *class_name(jvmtiEnv *jvmti, jclass class, char name[TEXT]) {
    char *signature = NULL;

    snprintf(name, TEXT, "?");
    if (class != NULL && (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == JVMTI_ERROR_NONE) {
        snprintf(name, TEXT, "%s", signature);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    return name;
}

static inline const char *class_of_object(jvmtiEnv *jvmti, JNIEnv *jni, jobject object, char name[TEXT]) {
    jclass class = (*jni)->GetObjectClass(jni, object);

    class_name(jvmti, class, name);
    (*jni)->DeleteLocalRef(jni, class);
    return name;
}

static inline const char *class_of_method(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID method, char name[TEXT]) {
    jclass class = NULL;

    snprintf(name, TEXT, "?");
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) == JVMTI_ERROR_NONE && class != NULL) {
        class_name(jvmti, class, name);
        (*jni)->DeleteLocalRef(jni, class);
    }
    return name;
}

static inline const char *method_name(jvmtiEnv *jvmti, jmethodID method, char name[TEXT]) {
    char *text = NULL;

    snprintf(name, TEXT, "?");
    if ((*jvmti)->GetMethodName(jvmti, method, &text, NULL, NULL) == JVMTI_ERROR_NONE) {
        snprintf(name, TEXT, "%s", text);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)text);
    }
    return name;
}

// The line that `location` belongs to, 0 where none is known: the entry of the table that begins last before it.
static inline int line_number(jvmtiEnv *jvmti, jmethodID method, jlocation location) {
    jvmtiLineNumberEntry *table = NULL;
    jint count = 0;
    int line = 0;
    jlocation begins = -1;

    if ((*jvmti)->GetLineNumberTable(jvmti, method, &count, &table) != JVMTI_ERROR_NONE) {
        return 0;
    }
    for (jint i = 0; i < count; i++) {
        if (table[i].start_location <= location && table[i].start_location > begins) {
            begins = table[i].start_location;
            line = table[i].line_number;
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
    return line;
}

// Enables one event for all threads.
static inline bool enable(jvmtiEnv *jvmti, jvmtiEvent event) {
    return ok(jvmti, (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, event, NULL), "SetEventNotificationMode");
}

// How most agents begin: an environment with these capabilities and callbacks, or NULL, and somebody is told why.
static inline jvmtiEnv *environment(JavaVM *vm, const jvmtiCapabilities *wanted, const jvmtiEventCallbacks *callbacks) {
    jvmtiEnv *jvmti = NULL;

    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        say("this VM has no JVM TI 1.2");
        return NULL;
    }
    if (!ok(jvmti, (*jvmti)->AddCapabilities(jvmti, wanted), "AddCapabilities") ||
        !ok(jvmti, (*jvmti)->SetEventCallbacks(jvmti, callbacks, sizeof *callbacks), "SetEventCallbacks")) {
        return NULL;
    }
    return jvmti;
}

#endif
