/* The module of functions for native agents, made when the first is loaded: without any it costs nothing. */
#include "jni/interface.h"
#include "threads/thread.h"

#include <dlfcn.h>

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "vmscope.native.jni",
    .m_doc = "What native agents see of this process, and it of them.",
    .m_size = -1,
};

static PyObject *made;

static PyObject *
load_jni(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static int (*const parts[])(PyObject *) = {
        jni_add_threads, jni_add_handles, jni_add_environments, jni_add_callbacks, jni_add_heap_callbacks,
        jni_add_memory,  jni_add_library, jni_add_raw_monitors, jni_add_java_vm,   jni_add_jnienv,
    };
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "native agents are the process's: only its main interpreter loads them");
        return NULL;
    }
    if (made == NULL) {
        jni_interpreter = PyInterpreterState_Get();
        PyObject *module = PyModule_Create(&definition);
        for (size_t i = 0; module != NULL && i < sizeof parts / sizeof *parts; i++) {
            if (parts[i](module) < 0) {
                Py_CLEAR(module);
            }
        }
        made = module;
    }
    return Py_XNewRef(made);
}

/* As `open(None)` and `symbol` of that module find it, without the tables that native agents need. */
static PyObject *
program_exports(PyObject *Py_UNUSED(module), PyObject *argument)
{
    PyObject *name;
    if (!PyUnicode_FSConverter(argument, &name)) {
        return NULL;
    }
    void *program = dlopen(NULL, RTLD_LAZY);
    int found = program != NULL && dlsym(program, PyBytes_AS_STRING(name)) != NULL;
    if (program != NULL) {
        dlclose(program);
    }
    Py_DECREF(name);
    return PyBool_FromLong(found);
}

static PyMethodDef functions[] = {
    {"program_exports", program_exports, METH_O,
     "program_exports(name): whether the executable has a function of that name."},
    {"load_jni", load_jni, METH_NOARGS, "load_jni() -> module: the functions for native agents."},
    {NULL, NULL, 0, NULL},
};

/* Not there without a GIL, which is what guards the tables of references. */
int
vmscope_add_jni(PyObject *module)
{
#ifdef Py_GIL_DISABLED
    (void)module;
    (void)functions;
    return 0;
#else
    return PyModule_AddFunctions(module, functions);
#endif
}
