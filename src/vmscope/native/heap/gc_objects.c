/* What the garbage collector knows, without harm to the program.
 *
 * gc.get_objects() also gives tuples that C code is just filling, tuple(generator) for one; that fails with a
 * SystemError in the program when anybody else holds such a tuple by the time it is done. The same holds for frozensets.
 * So they are dropped here, before another thread can run; those that are done are found through what refers to them. */
#include "attributes.h"
#include "native.h"

/* The tracked objects of this very class; with None, all but tuples and frozensets. */
static PyObject *
tracked_objects(PyObject *module, PyObject *kind)
{
    (void)module;
    PyObject *gc = PyImport_ImportModule("gc");
    if (gc == NULL) {
        return NULL;
    }
    int collecting = PyGC_Disable(); /* a collection would run the program's finalizers */
    PyObject *all = vmscope_call_method(gc, "get_objects", NULL);
    PyObject *wanted = all == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; wanted != NULL && i < PyList_GET_SIZE(all); i++) {
        PyObject *thing = PyList_GET_ITEM(all, i);
        int take = kind == Py_None ? !PyTuple_CheckExact(thing) && !PyFrozenSet_CheckExact(thing)
                                   : Py_TYPE(thing) == (PyTypeObject *)kind;
        if (take && PyList_Append(wanted, thing) < 0) {
            Py_CLEAR(wanted);
        }
    }
    Py_XDECREF(all);
    if (collecting) {
        PyGC_Enable();
    }
    Py_DECREF(gc);
    return wanted;
}

static PyMethodDef functions[] = {
    {"tracked_objects", tracked_objects, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_gc_objects(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
