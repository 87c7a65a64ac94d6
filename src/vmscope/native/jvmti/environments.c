/* What a jvmtiEnv* points to, the checks that each of its functions begins with, and the way into Python. */
#include "attributes.h"
#include "jni/interface.h"
#include "jni/gil.h"

PyObject *jni_bridge;

enum { PHASE_ONLOAD = 1 };

#define LAST_SLOT (JVMTI_SLOTS + JVMTI_EXTENSIONS)

static uint16_t allowed[LAST_SLOT + 1]; /* phases by bit */
static int8_t needed[LAST_SLOT + 1];    /* capability, or -1 */

int
jni_enter(Environment *environment, int slot, int needs)
{
    if (environment->magic != ENVIRONMENT_MAGIC) {
        return ERROR_INVALID_ENVIRONMENT;
    }
    int phase = atomic_load_explicit(&environment->phase, memory_order_relaxed);
    if (!(allowed[slot] >> phase & 1)) {
        return ERROR_WRONG_PHASE;
    }
    /* What may be called in ONLOAD, before there is a thread, looks at the thread last. */
    int thread_last = allowed[slot] >> PHASE_ONLOAD & 1;
    int in_callback = needs == THREAD_OR_CALLBACK && jni_here != NULL && jni_here->without_python;
    int unattached = needs != NO_THREAD && !in_callback && !jni_attached();
    if (unattached && !thread_last) {
        return ERROR_UNATTACHED;
    }
    if (atomic_load_explicit(&environment->disposed, memory_order_relaxed)) {
        return ERROR_INVALID_ENVIRONMENT;
    }
    if (needed[slot] >= 0 && !(atomic_load_explicit(&environment->held, memory_order_relaxed) >> needed[slot] & 1)) {
        return ERROR_MUST_POSSESS;
    }
    return unattached ? ERROR_UNATTACHED : ERROR_NONE;
}

/* With the GIL, and after the checks. */
static long
call_method(Environment *environment, int slot, int count, const Value *arguments, const char *kinds)
{
    long status = ERROR_INTERNAL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program's, where this came in the middle of its raising */
    jni_tidy();
    PyObject *tuple = jni_arguments(count, arguments, kinds);
    PyObject *answer =
        tuple == NULL ? NULL
                      : vmscope_call_method(jni_bridge, "function", "(OiO)", environment->environment, slot, tuple);
    if (answer != NULL) {
        status = PyLong_AsLong(answer);
        Py_DECREF(answer);
    }
    if (PyErr_Occurred()) {
        status = PyErr_ExceptionMatches(PyExc_MemoryError) ? ERROR_OUT_OF_MEMORY : ERROR_INTERNAL;
        jni_swallow();
    }
    Py_XDECREF(tuple);
    PyErr_Restore(type, value, trace);
    return status;
}

int32_t
jni_forward(Environment *environment, int slot, int count, const Value *arguments, const char *kinds)
{
    long status = jni_enter(environment, slot, THREAD);
    if (status != ERROR_NONE) {
        return (int32_t)status; /* without the GIL: when the interpreter has ended there is none */
    }
    JNI_WITH_GIL
    status = jni_enter(environment, slot, THREAD); /* again: other threads ran until this one had the GIL */
    if (status == ERROR_NONE) {
        status = call_method(environment, slot, count, arguments, kinds);
    }
    JNI_WITHOUT_GIL
    return (int32_t)status;
}

/* -- for Python ------------------------------------------------------------------------------------ */

static Environment *
environment_at(PyObject *number)
{
    Environment *environment = PyLong_AsVoidPtr(number);
    if (environment == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a null pointer is not an environment");
    }
    return environment;
}

static PyObject *
py_environment(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *object, *number = NULL;
    if (!PyArg_ParseTuple(arguments, "O|O", &object, &number)) {
        return NULL;
    }
    Environment *environment = number == NULL ? calloc(1, sizeof *environment) : environment_at(number);
    if (environment == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    environment->functions = jvmti_functions;
    environment->magic = ENVIRONMENT_MAGIC;
    atomic_store(&environment->storage, NULL);
    Py_XSETREF(environment->environment, Py_NewRef(object));
    return PyLong_FromVoidPtr(environment);
}

static PyObject *
py_update(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number;
    int phase, disposed;
    unsigned long long held;
    if (!PyArg_ParseTuple(arguments, "OiKp", &number, &phase, &held, &disposed)) {
        return NULL;
    }
    Environment *environment = environment_at(number);
    if (environment == NULL) {
        return NULL;
    }
    atomic_store(&environment->phase, phase);
    atomic_store(&environment->held, held);
    atomic_store(&environment->disposed, disposed);
    Py_RETURN_NONE;
}

static PyObject *
py_define(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int slot, phases, capability;
    if (!PyArg_ParseTuple(arguments, "iii", &slot, &phases, &capability)) {
        return NULL;
    }
    if (slot < 1 || slot > LAST_SLOT) {
        PyErr_SetString(PyExc_ValueError, "no such slot");
        return NULL;
    }
    allowed[slot] = (uint16_t)phases;
    needed[slot] = (int8_t)capability;
    Py_RETURN_NONE;
}

static PyObject *
py_extension(PyObject *Py_UNUSED(module), PyObject *number)
{
    long slot = PyLong_AsLong(number);
    if (slot <= JVMTI_SLOTS || slot > LAST_SLOT) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no extension has the slot %ld", slot);
    }
    return PyLong_FromVoidPtr((void *)jvmti_extensions[slot - JVMTI_SLOTS - 1]);
}

static PyObject *
py_start(PyObject *Py_UNUSED(module), PyObject *machine)
{
    if (jni_know_threads(machine) < 0) {
        return NULL;
    }
    Py_XSETREF(jni_bridge, Py_NewRef(machine));
    return PyLong_FromVoidPtr(&jni_java_vm);
}

static PyMethodDef functions[] = {
    {"start", py_start, METH_O, "start(machine) -> int: the JavaVM's address; `machine` serves calls from now on."},
    {"define", py_define, METH_VARARGS, "define(slot, phases, capability): what a function asks for; -1: none."},
    {"extension", py_extension, METH_O, "extension(slot) -> int: the address of a function behind the table's end."},
    {"environment", py_environment, METH_VARARGS,
     "environment(environment, address=...) -> int: a jvmtiEnv's address; a new one, or that of one long disposed of."},
    {"update", py_update, METH_VARARGS, "update(address, phase, held, disposed): how an environment is now."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_environments(PyObject *module)
{
    for (int slot = 0; slot <= LAST_SLOT; slot++) {
        needed[slot] = -1;
    }
    return PyModule_AddFunctions(module, functions);
}

void
jni_report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyObject *text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    PyObject *done = text == NULL || jni_bridge == NULL ? NULL : vmscope_call_method(jni_bridge, "report", "(O)", text);
    if (done == NULL) {
        jni_swallow();
    }
    Py_XDECREF(done);
    Py_XDECREF(text);
}
