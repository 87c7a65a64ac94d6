/* An agent's callbacks for walks of the heap, as objects that Python's functions can be given. A walk (heap_callers.c) calls
 * what is behind them: nothing else does. */
#include "jni/interface.h"

/* By their kinds, in the order of a walk's callbacks (tool/model/heap_walks.py). */
static const char *const names[] = {
    "heap_iteration", "heap_reference", "primitive_field", "array_primitive_value", "string_primitive_value",
    "heap_object",    "heap_root",      "stack_reference", "object_reference",
};

typedef struct {
    PyObject_HEAD int kind;
    void (*function)(void);
} HeapCallback;

static PyTypeObject *callback_type;

/* Callbacks are checked to be callable. */
static PyObject *
callback_call(PyObject *self, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    return PyErr_Format(PyExc_TypeError, "%s is for walks of the heap alone", names[((HeapCallback *)self)->kind]);
}

static void
callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot callback_slots[] = {
    {Py_tp_dealloc, callback_dealloc},
    {Py_tp_call, callback_call},
    {Py_tp_doc, "An agent's function for what a walk of the heap meets."},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "vmscope.native.jni.HeapCallback",
    .basicsize = sizeof(HeapCallback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

static PyObject *
py_heap_callback(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *name;
    PyObject *function;
    if (!PyArg_ParseTuple(arguments, "sO", &name, &function)) {
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(function);
    int kind = 0, known = (int)(sizeof names / sizeof *names);
    while (kind < known && strcmp(name, names[kind]) != 0) {
        kind++;
    }
    if (PyErr_Occurred() || kind == known) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no heap callback is called %s", name);
    }
    HeapCallback *self = (HeapCallback *)callback_type->tp_alloc(callback_type, 0);
    if (self != NULL) {
        self->kind = kind;
        self->function = (void (*)(void))address;
    }
    return (PyObject *)self;
}

static PyMethodDef functions[] = {
    {"heap_callback", py_heap_callback, METH_VARARGS, "heap_callback(kind, function): as a walk of the heap takes it."},
    {NULL, NULL, 0, NULL},
};

void (*jni_heap_function(PyObject *callback, int kind))(void)
{
    const HeapCallback *self = (HeapCallback *)callback;
    return Py_IS_TYPE(callback, callback_type) && self->kind == kind ? self->function : NULL;
}

int
jni_add_heap_callbacks(PyObject *module)
{
    callback_type = vmscope_add_type(module, &callback_spec, NULL);
    return callback_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
