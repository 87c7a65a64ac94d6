/* The JavaVM: threads attached and detached, environments given out. */
#include "attributes.h"
#include "jni/interface.h"
#include "jni/gil.h"

static int32_t
destroy(void *Py_UNUSED(vm))
{
    return JNI_ERR; /* the process ends when Python does */
}

typedef struct {
    int32_t version;
    const char *name;
    void *group;
} AttachArguments;

/* The versions whose arguments are looked at, as in a JVM; in 1.1 they were others. */
static int
has_name(int32_t version)
{
    static const int32_t versions[] = {0x10002, 0x10004,  0x10006,  0x10008,  0x90000,
                                       0xa0000, 0x130000, 0x140000, 0x150000, 0x180000};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (version == versions[i]) {
            return 1;
        }
    }
    return 0;
}

/* With the GIL: tells the tool interface of this thread. Nothing that it raises goes anywhere. */
static void
attached(Native *native, const AttachArguments *arguments, int daemon)
{
    static const AttachArguments none;
    const AttachArguments *given = arguments == NULL || !has_name(arguments->version) ? &none : arguments;
    int found;
    PyObject *group = jni_object(native, given->group, &found);
    PyObject *done = vmscope_call_method(jni_bridge, "attached", "(yOO)", given->name, group == NULL ? Py_None : group,
                                         daemon ? Py_True : Py_False);
    if (done == NULL) {
        PyErr_WriteUnraisable(NULL);
    }
    Py_XDECREF(done);
}

static int32_t
attach_thread(void **environment, const AttachArguments *arguments, int daemon)
{
    if (environment == NULL) {
        return JNI_EINVAL;
    }
    Native *native = jni_native();
    if (native == NULL) {
        return JNI_ENOMEM;
    }
    if (!Py_IsInitialized() || jni_closed() || native->without_python) {
        return JNI_ERR;
    }
    if (PyGILState_GetThisThreadState() == NULL) {
        if (jni_push_frame(native) < 0) {
            return JNI_ENOMEM;
        }
        pthread_cleanup_push(jni_stay, NULL);
        (void)jni_ensure();
        jni_tidy();
        native->state = PyThreadState_Get();
        attached(native, arguments, daemon);
        jni_drop_pending(native, NULL, IN_THREAD);
        (void)PyEval_SaveThread();
        pthread_cleanup_pop(0);
    } else if (!jni_attached()) {
        return JNI_ERR; /* it runs another interpreter */
    }
    *environment = native;
    return JNI_OK;
}

static int32_t
attach(void *Py_UNUSED(vm), void **environment, const AttachArguments *arguments)
{
    return attach_thread(environment, arguments, 0);
}

/* Nothing waits for either at the end of the program. */
static int32_t
attach_as_daemon(void *Py_UNUSED(vm), void **environment, const AttachArguments *arguments)
{
    return attach_thread(environment, arguments, 1);
}

static int32_t
detach(void *Py_UNUSED(vm))
{
    if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == NULL) {
        return JNI_OK; /* as in a JVM: there is nothing to do */
    }
    Native *native = jni_native();
    if (native == NULL || native->state == NULL || jni_calls(native) != 1 || jni_gil_state() != NULL) {
        return JNI_ERR; /* a thread of the program's, or one that has calls to return from */
    }
    pthread_cleanup_push(jni_stay, NULL);
    PyEval_RestoreThread(native->state);
    jni_drop_pending(native, NULL, IN_THREAD);
    PyObject *done = vmscope_call_method(jni_bridge, "detached", NULL);
    if (done == NULL) {
        PyErr_WriteUnraisable(NULL);
    }
    Py_XDECREF(done);
    Py_CLEAR(native->pending);
    Py_CLEAR(native->aside);
    jni_pop_frame(native);
    native->state = NULL;
    PyGILState_Release(PyGILState_UNLOCKED); /* what attach() began: the thread's state goes */
    pthread_cleanup_pop(0);
    return JNI_OK;
}

/* What it gives out bears the name of the agent whose code calls it. */
static int32_t
get_environment(void *Py_UNUSED(vm), void **environment, int32_t version)
{
    const void *caller = __builtin_return_address(0);
    if (environment == NULL) {
        return JNI_EINVAL;
    }
    *environment = NULL;
    if (!jni_attached()) {
        return JNI_EDETACHED;
    }
    int32_t status = JNI_OK;
    JNI_WITH_GIL
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *answer = vmscope_call_method(jni_bridge, "get_env", "(iN)", version, PyLong_FromVoidPtr((void *)caller));
    void *address = answer == NULL ? NULL : PyLong_AsVoidPtr(answer); /* below 0: an error of JNI's */
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        jni_swallow();
        status = JNI_ERR;
    } else if ((intptr_t)address < 0 && (intptr_t)address > -16) {
        status = (int32_t)(intptr_t)address;
    } else {
        *environment = address == NULL ? (void *)jni_native() : address; /* NULL: a JNIEnv was asked for */
    }
    PyErr_Restore(type, value, trace);
    JNI_WITHOUT_GIL
    return status;
}

static const void *const functions[8] = {
    NULL, NULL, NULL, destroy, attach, detach, get_environment, attach_as_daemon,
};

const void *const *jni_java_vm = functions;

/* -- threads of an agent's ------------------------------------------------------------------------- */

typedef void (*StartFunction)(const void *environment, void *native, void *argument);

typedef struct {
    const Environment *environment;
    StartFunction function;
    void *argument;
} Start;

#define START "vmscope.native.jni.start"

static void
start_free(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, START));
}

/* The agent's function runs, without the GIL. */
static PyObject *
start_call(PyObject *capsule, PyObject *const *Py_UNUSED(arguments), Py_ssize_t Py_UNUSED(count))
{
    const Start *start = PyCapsule_GetPointer(capsule, START);
    Native *native = jni_native();
    if (start == NULL || native == NULL || jni_push_frame(native) < 0) {
        return start == NULL ? NULL : PyErr_NoMemory();
    }
    PyThreadState *state = PyEval_SaveThread();
    start->function(start->environment, native, start->argument);
    jni_take_gil(state);
    jni_drop_pending(native, start->environment, IN_THREAD);
    jni_pop_frame(native);
    if (jni_raise_aside(native) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef start_method = {"start", (PyCFunction)(void (*)(void))start_call, METH_FASTCALL, NULL};

static PyObject *
py_start_function(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *environment, *function, *argument;
    if (!PyArg_ParseTuple(arguments, "OOO", &environment, &function, &argument)) {
        return NULL;
    }
    Start *start = PyMem_Malloc(sizeof *start);
    if (start == NULL) {
        return PyErr_NoMemory();
    }
    start->environment = PyLong_AsVoidPtr(environment);
    start->function = (StartFunction)PyLong_AsVoidPtr(function);
    start->argument = argument == Py_None ? NULL : PyLong_AsVoidPtr(argument);
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(start, START, start_free);
    if (capsule == NULL) {
        PyMem_Free(start);
        return NULL;
    }
    PyObject *made = PyCFunction_New(&start_method, capsule);
    Py_DECREF(capsule);
    return made;
}

static PyMethodDef java_vm_functions[] = {
    {"start_function", py_start_function, METH_VARARGS,
     "start_function(environment, function, argument): callable with whatever, on a thread of an agent's."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_java_vm(PyObject *module)
{
    return PyModule_AddFunctions(module, java_vm_functions);
}
