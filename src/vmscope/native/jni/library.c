/* An agent's library: opened, its entry points called, closed. */
#define _GNU_SOURCE /* dladdr */
#include "signals/problematic_frame.h"
#include "jni/interface.h"
#include "jni/jnienv.h"

#include <dlfcn.h>

typedef int32_t (*Start)(const void *vm, char *options, void *reserved);
typedef void (*Unload)(const void *vm);

static PyObject *
py_open(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *path; /* None: what the program itself exports */
    if (!PyArg_ParseTuple(arguments, "O", &path)) {
        return NULL;
    }
    PyObject *encoded = NULL;
    if (path != Py_None && !PyUnicode_FSConverter(path, &encoded)) {
        return NULL;
    }
    void *library;
    const char *error = NULL;
    const char *file = encoded == NULL ? NULL : PyBytes_AS_STRING(encoded);
    vmscope_open_problematic_frame(file);
    Py_BEGIN_ALLOW_THREADS /* its constructors are the agent's code */
    library = dlopen(file, RTLD_LAZY);
    if (library == NULL) {
        error = dlerror();
    }
    Py_END_ALLOW_THREADS
    vmscope_open_problematic_frame(NULL);
    Py_XDECREF(encoded);
    if (library == NULL) {
        PyObject *words =
            PyUnicode_DecodeFSDefault(error == NULL ? "it cannot be loaded" : error); /* it has the path */
        if (words != NULL) {
            PyErr_SetObject(PyExc_OSError, words);
            Py_DECREF(words);
        }
        return NULL;
    }
    vmscope_add_problematic_frame(library);
    return PyLong_FromVoidPtr(library);
}

static PyObject *
py_symbol(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number, *name; /* as a file's: an agent's own may be a part of it */
    if (!PyArg_ParseTuple(arguments, "OO&", &number, PyUnicode_FSConverter, &name)) {
        return NULL;
    }
    void *library = PyLong_AsVoidPtr(number);
    PyObject *address = PyErr_Occurred() ? NULL : PyLong_FromVoidPtr(dlsym(library, PyBytes_AS_STRING(name)));
    Py_DECREF(name);
    return address;
}

static PyObject *
home_of(const void *address)
{
    Dl_info found;
    if (!dladdr(address, &found) || found.dli_fname == NULL) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeFSDefault(found.dli_fname);
}

static PyObject *
py_home(PyObject *Py_UNUSED(module), PyObject *number)
{
    const void *address = PyLong_AsVoidPtr(number);
    return PyErr_Occurred() ? NULL : home_of(address);
}

static PyObject *
py_caller(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return home_of(jni_caller);
}

static PyObject *
py_close(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *library = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    dlclose(library);
    Py_END_ALLOW_THREADS
    vmscope_check_agent_code();
    Py_RETURN_NONE;
}

static PyObject *
py_call_start(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number, *given; /* bytes; None: no options */
    if (!PyArg_ParseTuple(arguments, "OO", &number, &given)) {
        return NULL;
    }
    const char *options = given == Py_None ? NULL : PyBytes_AsString(given);
    Start start = (Start)PyLong_AsVoidPtr(number);
    Native *native = jni_native();
    if (PyErr_Occurred()) {
        return NULL;
    }
    char *copy = options == NULL ? NULL : strdup(options);
    if (native == NULL || (options != NULL && copy == NULL) || jni_push_frame(native) < 0) {
        free(copy);
        return PyErr_NoMemory();
    }
    int32_t status;
    Py_BEGIN_ALLOW_THREADS
    status = start(&jni_java_vm, copy, NULL);
    Py_END_ALLOW_THREADS
    jni_drop_pending(native, NULL, IN_START);
    jni_pop_frame(native);
    free(copy);
    return jni_raise_aside(native) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
py_call_unload(PyObject *Py_UNUSED(module), PyObject *number)
{
    Unload unload = (Unload)PyLong_AsVoidPtr(number);
    Native *native = jni_native();
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (native == NULL || jni_push_frame(native) < 0) {
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    unload(&jni_java_vm);
    Py_END_ALLOW_THREADS
    jni_drop_pending(native, NULL, IN_UNLOAD);
    jni_pop_frame(native);
    if (jni_raise_aside(native) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"open", py_open, METH_VARARGS, "open(path or None) -> int: a library; OSError with the loader's words."},
    {"symbol", py_symbol, METH_VARARGS, "symbol(library, name) -> int: its address, or 0."},
    {"home", py_home, METH_O, "home(address) -> str: the file of the library that has it; None where none does."},
    {"caller", py_caller, METH_NOARGS, "caller() -> str: the home of who called this function of JNI's for a method."},
    {"close", py_close, METH_O, "close(library)"},
    {"call_start", py_call_start, METH_VARARGS, "call_start(address, options) -> int: Agent_OnLoad or Agent_OnAttach."},
    {"call_unload", py_call_unload, METH_O, "call_unload(address): Agent_OnUnload."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_library(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
