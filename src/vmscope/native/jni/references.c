/* The functions of a JNIEnv that agents call most: references and their frames, the pending exception. */
#include "jnienv.h"

#define VERSION 0x000a0000
#define MOST_LOCALS 65536 /* that may be asked for at once */

/* Says that a handle is none: in the log, or by a pending exception. */
static void
wrong(Native *native, int slot, const void *handle)
{
    if (jni_checks) {
        jni_report("%s: %p is %s", jni_names[slot], handle, jni_wrong(native, handle));
        return;
    }
    PyObject *text = PyUnicode_FromFormat("%s: %p is %s", jni_names[slot], handle, jni_wrong(native, handle));
    PyObject *error = text == NULL ? NULL : PyObject_CallOneArg(PyExc_ReferenceError, text);
    PyErr_Clear();
    Py_XDECREF(text);
    jni_set_pending(native, error);
}

/* What a handle refers to, or NULL. */
static PyObject *
object(Native *native, int slot, const void *handle)
{
    int found;
    PyObject *object = jni_object(native, handle, &found);
    if (!found) {
        wrong(native, slot, handle);
    }
    return object;
}

int32_t
jni_get_version(void *Py_UNUSED(native))
{
    return VERSION;
}

int32_t
jni_get_java_vm(void *Py_UNUSED(native), void *vm)
{
    if (vm == NULL) {
        return JNI_ERR;
    }
    *(const void **)vm = &jni_java_vm;
    return JNI_OK;
}

uint8_t
jni_is_virtual_thread(void *Py_UNUSED(native), void *Py_UNUSED(thread))
{
    return 0;
}

/* -- the pending exception ------------------------------------------------------------------------- */

int32_t
jni_throw(void *given, void *handle)
{
    Entry entry;
    if (!jni_begin(&entry, given, 13)) {
        return JNI_ERR;
    }
    int32_t status = JNI_ERR;
    PyObject *error = object(entry.native, 13, handle);
    if (error != NULL && PyExceptionInstance_Check(error)) {
        Py_XSETREF(entry.native->pending, Py_NewRef(error));
        status = JNI_OK;
    } else if (error != NULL || handle == NULL) {
        if (jni_checks) {
            jni_report("Throw: %s is no exception", handle == NULL ? "null" : Py_TYPE(error)->tp_name);
        } else {
            PyErr_Format(PyExc_TypeError, "Throw: %s is no exception", handle == NULL ? "null" : Py_TYPE(error)->tp_name);
            jni_raised(entry.native);
        }
    }
    jni_end(&entry);
    return status;
}

void *
jni_exception_occurred(void *given)
{
    Entry entry;
    if (!jni_begin(&entry, given, 15)) {
        return NULL;
    }
    void *handle = jni_local(entry.native, entry.native->pending);
    jni_end(&entry);
    return handle;
}

void
jni_exception_clear(void *given)
{
    Entry entry;
    if (jni_begin(&entry, given, 17)) {
        Py_CLEAR(entry.native->pending);
        jni_end(&entry);
    }
}

uint8_t
jni_exception_check(void *Py_UNUSED(given))
{
    Native *native = jni_native();
    return native != NULL && native->pending != NULL;
}

/* -- frames ---------------------------------------------------------------------------------------- */

int32_t
jni_push_local_frame(void *given, int32_t capacity)
{
    Entry entry;
    if (capacity < 0 || capacity > MOST_LOCALS || !jni_begin(&entry, given, 19)) {
        return JNI_ERR;
    }
    int32_t status = jni_push_own_frame(entry.native) < 0 ? JNI_ERR : JNI_OK;
    jni_end(&entry);
    return status;
}

void *
jni_pop_local_frame(void *given, void *handle)
{
    Entry entry;
    if (!jni_begin(&entry, given, 20)) {
        return NULL;
    }
    void *kept = NULL;
    PyObject *result = Py_XNewRef(object(entry.native, 20, handle));
    if (jni_pop_own_frame(entry.native)) {
        kept = jni_local(entry.native, result);
    } else if (jni_checks) {
        jni_report("PopLocalFrame: no frame was pushed since the agent was called");
    } else {
        kept = handle; /* as good as it was */
    }
    Py_XDECREF(result);
    jni_end(&entry);
    return kept;
}

int32_t
jni_ensure_local_capacity(void *Py_UNUSED(native), int32_t capacity)
{
    return capacity < 0 || capacity > MOST_LOCALS ? JNI_ERR : JNI_OK;
}

/* -- references ------------------------------------------------------------------------------------ */

static void *
new_reference(const void *given, int slot, const void *handle, int kind)
{
    Entry entry;
    if (!jni_begin(&entry, given, slot)) {
        return NULL;
    }
    PyObject *referred = object(entry.native, slot, handle);
    void *made = kind == LOCAL    ? jni_local(entry.native, referred)
                 : kind == GLOBAL ? jni_global(referred)
                                  : jni_weak(referred);
    if (made == NULL && referred != NULL) {
        PyErr_NoMemory();
        jni_raised(entry.native);
    }
    jni_end(&entry);
    return made;
}

void *
jni_new_global_ref(void *given, void *handle)
{
    return new_reference(given, 21, handle, GLOBAL);
}

void *
jni_new_weak_global_ref(void *given, void *handle)
{
    return new_reference(given, 226, handle, WEAK);
}

void *
jni_new_local_ref(void *given, void *handle)
{
    return new_reference(given, 25, handle, LOCAL);
}

/* Nothing becomes pending here: agents call these while something is, and after all has been done. */
static void
delete_reference(const void *given, int slot, const void *handle, int kind)
{
    Entry entry;
    if (handle == NULL || !jni_begin(&entry, given, slot)) {
        return;
    }
    int is = jni_kind(entry.native, handle);
    if (is == kind) {
        jni_delete(entry.native, handle);
    } else if (jni_checks) {
        jni_report("%s: %p is %s", jni_names[slot], handle,
                   is ? "a reference of another kind" : jni_wrong(entry.native, handle));
    }
    jni_end(&entry);
}

void
jni_delete_global_ref(void *given, void *handle)
{
    delete_reference(given, 22, handle, GLOBAL);
}

void
jni_delete_weak_global_ref(void *given, void *handle)
{
    delete_reference(given, 227, handle, WEAK);
}

void
jni_delete_local_ref(void *given, void *handle)
{
    delete_reference(given, 23, handle, LOCAL);
}

uint8_t
jni_is_same_object(void *given, void *left, void *right)
{
    Entry entry;
    if (!jni_begin(&entry, given, 24)) {
        return 0;
    }
    int found[2];
    const PyObject *objects[] = {
        jni_object(entry.native, left, &found[0]),
        jni_object(entry.native, right, &found[1]),
    };
    if (!found[0] || !found[1]) {
        wrong(entry.native, 24, found[0] ? right : left);
    }
    jni_end(&entry);
    return found[0] && found[1] && objects[0] == objects[1];
}

int32_t
jni_get_object_ref_type(void *given, void *handle)
{
    Entry entry;
    if (!jni_begin(&entry, given, 232)) {
        return 0;
    }
    int kind = jni_kind(entry.native, handle);
    jni_end(&entry);
    return kind;
}

void *
jni_get_object_class(void *given, void *handle)
{
    Entry entry;
    if (!jni_begin(&entry, given, 31)) {
        return NULL;
    }
    PyObject *of = object(entry.native, 31, handle);
    void *made = of == NULL ? NULL : jni_local(entry.native, (PyObject *)Py_TYPE(of));
    if (of == NULL && entry.native->pending == NULL) {
        if (jni_checks && jni_kind(entry.native, handle) == WEAK) {
            jni_report("GetObjectClass: %p refers to an object that has gone", handle);
        } else if (jni_checks && handle == NULL) {
            jni_report("GetObjectClass: null");
        } else if (!jni_checks) {
            PyErr_SetString(PyExc_TypeError, "GetObjectClass: null");
            jni_raised(entry.native);
        }
    }
    jni_end(&entry);
    return made;
}
