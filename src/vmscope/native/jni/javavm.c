/* The JavaVM: threads attached and detached, environments given out. */
#include "interface.h"

static int32_t
destroy(void *Py_UNUSED(vm))
{
    return JNI_ERR; /* the process ends when Python does */
}

static int32_t
attach(void *Py_UNUSED(vm), void **environment, void *Py_UNUSED(arguments))
{
    if (environment == NULL) {
        return JNI_EINVAL;
    }
    Native *native = jni_native();
    if (native == NULL) {
        return JNI_ENOMEM;
    }
    if (!Py_IsInitialized() || native->without_python) {
        return JNI_ERR;
    }
    if (PyGILState_GetThisThreadState() == NULL) {
        (void)PyGILState_Ensure();
        if (jni_push_frame(native) == 0) {
            native->attached = 1;
        }
        (void)PyEval_SaveThread();
    }
    *environment = native;
    return JNI_OK;
}

static int32_t
detach(void *Py_UNUSED(vm))
{
    if (PyGILState_GetThisThreadState() == NULL) {
        return JNI_EDETACHED;
    }
    Native *native = jni_native();
    if (native == NULL || !native->attached || native->depth != 1) {
        return JNI_ERR; /* a thread of the program's, or one that has calls to return from */
    }
    (void)PyGILState_Ensure();
    Py_CLEAR(native->pending);
    jni_pop_frame(native);
    native->attached = 0;
    PyGILState_Release(PyGILState_LOCKED);   /* this one, with the GIL kept for */
    PyGILState_Release(PyGILState_UNLOCKED); /* the one of attach(), which made the thread's state */
    return JNI_OK;
}

static int32_t
get_environment(void *Py_UNUSED(vm), void **environment, int32_t version)
{
    if (environment == NULL) {
        return JNI_EINVAL;
    }
    *environment = NULL;
    if (!jni_attached()) {
        return JNI_EDETACHED;
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = PyObject_CallMethod(jni_machine, "get_env", "i", version);
    void *address = answer == NULL ? NULL : PyLong_AsVoidPtr(answer); /* below 0: an error of JNI's */
    Py_XDECREF(answer);
    int32_t status = JNI_OK;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        status = JNI_ERR;
    } else if ((intptr_t)address < 0 && (intptr_t)address > -16) {
        status = (int32_t)(intptr_t)address;
    } else {
        *environment = address == NULL ? (void *)jni_native() : address; /* NULL: a JNIEnv was asked for */
    }
    PyGILState_Release(gil);
    return status;
}

static const void *const functions[8] = {
    NULL, NULL, NULL, destroy, attach, detach, get_environment, attach,
};

const void *const *jni_java_vm = functions;
