/* The functions of a JNIEnv that agents call most: references and their frames, the pending exception. */
#include "jni/jnienv.h"

#define VERSION 0x000a0000
#define MOST_LOCALS 65536 /* that may be asked for at once */

/* What no correct agent does: logged, or by a pending exception. */
static void
misuse(Native *native, const char *format, const char *what)
{
    if (jni_checks) {
        jni_report(format, what);
        return;
    }
    PyErr_Format(PyExc_TypeError, format, what);
    jni_raised(native);
}

/* A handle is none. */
static void
wrong(Native *native, int slot, const void *handle)
{
    if (jni_checks) {
        jni_report("%s: %p is %s", jni_names[slot], handle, jni_wrong(native, handle));
        return;
    }
    PyErr_Format(PyExc_ReferenceError, "%s: %p is %s", jni_names[slot], handle, jni_wrong(native, handle));
    jni_raised(native);
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
    int32_t status = JNI_ERR;
    JNI_BEGIN(given, 13)
    PyObject *error = object(entry.native, 13, handle);
    if (error != NULL && PyExceptionInstance_Check(error)) {
        Py_XSETREF(entry.native->pending, Py_NewRef(error));
        status = JNI_OK;
    } else if (error != NULL || handle == NULL) {
        misuse(entry.native, "Throw: %s is not an exception", error == NULL ? "null" : Py_TYPE(error)->tp_name);
    }
    JNI_END
    return status;
}

void *
jni_exception_occurred(void *given)
{
    void *handle = NULL;
    JNI_BEGIN(given, 15)
    handle = jni_local(entry.native, entry.native->pending);
    JNI_END
    return handle;
}

void
jni_exception_clear(void *given)
{
    JNI_BEGIN(given, 17)
    Py_CLEAR(entry.native->pending);
    JNI_END
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
    int32_t status = JNI_ERR;
    if (capacity < 0 || capacity > MOST_LOCALS) {
        return status;
    }
    JNI_BEGIN(given, 19)
    status = jni_push_own_frame(entry.native) < 0 ? JNI_ERR : JNI_OK;
    JNI_END
    return status;
}

void *
jni_pop_local_frame(void *given, void *handle)
{
    void *kept = NULL;
    JNI_BEGIN(given, 20)
    PyObject *result = Py_XNewRef(object(entry.native, 20, handle));
    if (jni_pop_own_frame(entry.native)) {
        kept = jni_local(entry.native, result);
    } else if (jni_checks) {
        jni_report("PopLocalFrame: no frame was pushed since the agent was called");
    } else {
        kept = handle; /* as good as it was */
    }
    Py_XDECREF(result);
    JNI_END
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
    void *made = NULL;
    JNI_BEGIN(given, slot)
    PyObject *referred = object(entry.native, slot, handle);
    made = kind == LOCAL    ? jni_local(entry.native, referred)
           : kind == GLOBAL ? jni_global(referred)
                            : jni_weak(referred);
    if (made == NULL && referred != NULL) {
        PyErr_NoMemory();
        jni_raised(entry.native);
    }
    JNI_END
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
    if (handle == NULL) {
        return;
    }
    JNI_BEGIN(given, slot)
    int is = jni_kind(entry.native, handle);
    if (is == kind) {
        jni_delete(entry.native, handle);
    } else if (jni_checks) {
        jni_report("%s: %p is %s", jni_names[slot], handle,
                   is ? "a reference of another kind" : jni_wrong(entry.native, handle));
    }
    JNI_END
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
    uint8_t same = 0;
    JNI_BEGIN(given, 24)
    int found[2];
    const PyObject *one = jni_object(entry.native, left, &found[0]),
                   *other = jni_object(entry.native, right, &found[1]);
    if (found[0] && found[1]) {
        same = one == other;
    } else {
        wrong(entry.native, 24, found[0] ? right : left);
    }
    JNI_END
    return same;
}

int32_t
jni_get_object_ref_type(void *given, void *handle)
{
    int32_t kind = 0;
    JNI_BEGIN(given, 232)
    kind = jni_kind(entry.native, handle);
    JNI_END
    return kind;
}

void *
jni_get_object_class(void *given, void *handle)
{
    void *made = NULL;
    JNI_BEGIN(given, 31)
    int found;
    PyObject *of = jni_object(entry.native, handle, &found);
    if (of != NULL) {
        made = jni_local(entry.native, (PyObject *)Py_TYPE(of));
    } else if (!found) {
        wrong(entry.native, 31, handle);
    } else {
        misuse(entry.native, "GetObjectClass: %s", handle == NULL ? "null" : "the object has gone");
    }
    JNI_END
    return made;
}
