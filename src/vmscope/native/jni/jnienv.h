/* A JNIEnv's functions: those in C, and the way into Python for all others. */
#ifndef VMSCOPE_JNI_JNIENV_H
#define VMSCOPE_JNI_JNIENV_H

#include "jni/gil.h"
#include "jni/interface.h"

extern const char *const jni_names[JNI_SLOTS];
extern const uint8_t jni_despite_exception[JNI_SLOTS]; /* may be called while one is pending */

/* Where a function of JNI's that finds or calls a method was called from, while it runs; else NULL. */
extern VMSCOPE_THREAD_LOCAL const void *jni_caller;

static inline const void *
jni_set_caller(const void *caller)
{
    const void *outer = jni_caller; /* of a call that led here, through the program's code */
    jni_caller = caller;
    return outer;
}

/* -Xcheck:jni: what agents do wrong is logged. Without it, by a pending exception. */
extern int jni_checks;

/* What stands between these two is done with the GIL, for the calling thread's own Native, whoever's was given. It is
 * passed over where the thread is not attached, or nothing of Python may be touched, or (-Xcheck:jni) an exception is
 * pending that the function is not for. Nothing there returns. */
typedef struct {
    Native *native;
    PyObject *type, *value, *trace; /* the program's, where this came in the middle of its raising */
} Entry;

#define JNI_BEGIN(given, slot)                                                                                         \
    if (jni_attached() && jni_native() != NULL) {                                                                      \
        JNI_WITH_GIL                                                                                                   \
        Entry entry;                                                                                                   \
        if (jni_begin(&entry, given, slot)) {

#define JNI_END                                                                                                        \
    }                                                                                                                  \
    jni_end(&entry);                                                                                                   \
    JNI_WITHOUT_GIL                                                                                                    \
    }

int jni_begin(Entry *entry, const void *given, int slot);
void jni_end(Entry *entry);

/* Makes an exception pending, with the GIL; the reference is taken over. The first one stays. */
void jni_set_pending(Native *native, PyObject *error);
void jni_raised(Native *native); /* what Python has raised */

/* Calls a function in Python: machine.jni_call(slot, arguments). Arguments and result stand where their kinds say, by
 * the members of Value, v for void. 0 or NULL where it raises, which then is pending. */
Value jni_call(const void *given, int slot, char result, int count, const Value *arguments, const char *kinds);
/* With the arguments of a method, whose id is the last of those given, from a list; handed on as an array of Values. */
Value jni_call_list(const void *given, int slot, char result, int count, const Value *arguments, va_list list);

int32_t jni_get_version(void *native);
int32_t jni_throw(void *native, void *error);
void *jni_exception_occurred(void *native);
void jni_exception_clear(void *native);
uint8_t jni_exception_check(void *native);
int32_t jni_push_local_frame(void *native, int32_t capacity);
void *jni_pop_local_frame(void *native, void *result);
int32_t jni_ensure_local_capacity(void *native, int32_t capacity);
void *jni_new_global_ref(void *native, void *handle);
void *jni_new_weak_global_ref(void *native, void *handle);
void *jni_new_local_ref(void *native, void *handle);
void jni_delete_global_ref(void *native, void *handle);
void jni_delete_weak_global_ref(void *native, void *handle);
void jni_delete_local_ref(void *native, void *handle);
uint8_t jni_is_same_object(void *native, void *left, void *right);
int32_t jni_get_object_ref_type(void *native, void *handle);
void *jni_get_object_class(void *native, void *handle);
int32_t jni_get_java_vm(void *native, void *vm);
uint8_t jni_is_virtual_thread(void *native, void *thread);

#endif
