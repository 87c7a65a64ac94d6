/* Labels: a slot's children, found again without making a name.
 *
 * The keyword names of a call come as one tuple, the same object each time at one place of a program. Below it
 * stands a dict for each value but the last, whose dict has the children. Nothing is ever removed, so a borrowed
 * reference is good for as long as the parent lives. */
#include "native.h"

#define MAX_CHILDREN 2000 /* sets of labels of one slot that are remembered; labels.py has the same */

struct Children {
    PyObject *by_names;
    _Atomic uint32_t count;
};

static Children *
children_at(_Atomic(Children *) *where)
{
    Children *children = atomic_load_explicit(where, memory_order_acquire);
    if (children != NULL) {
        return children;
    }
    Children *fresh = PyMem_Calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    fresh->by_names = PyDict_New();
    if (fresh->by_names == NULL) {
        PyMem_Free(fresh);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(where, &children, fresh)) { /* another thread was first */
        Py_DECREF(fresh->by_names);
        PyMem_Free(fresh);
        return children;
    }
    return fresh;
}

void
vmscope_free_children(_Atomic(Children *) *where)
{
    Children *children = atomic_load(where);
    if (children != NULL) {
        Py_DECREF(children->by_names);
        PyMem_Free(children);
    }
}

/* A borrowed reference, or NULL, with an exception or without. */
static inline PyObject *
find(PyObject *by_names, PyObject *names, PyObject *const *values, Py_ssize_t count)
{
    PyObject *node = PyDict_GetItemWithError(by_names, names);
    for (Py_ssize_t i = 0; node != NULL && i < count; i++) {
        node = PyDict_GetItemWithError(node, values[i]);
    }
    return node;
}

static int
remember(PyObject *by_names, PyObject *names, PyObject *const *values, Py_ssize_t count, PyObject *child)
{
    PyObject *node = by_names, *key = names;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *fresh = PyDict_New();
        if (fresh == NULL) {
            return -1;
        }
        node = PyDict_SetDefault(node, key, fresh);
        Py_DECREF(fresh);
        if (node == NULL) {
            return -1;
        }
        key = values[i];
    }
    return PyDict_SetItem(node, key, child);
}

static PyObject *
make(PyObject *self, Children *children, PyObject *names, PyObject *const *values, Py_ssize_t count)
{
    PyObject *labels = PyDict_New();
    for (Py_ssize_t i = 0; labels != NULL && i < count; i++) {
        if (PyDict_SetItem(labels, PyTuple_GET_ITEM(names, i), values[i]) < 0) {
            Py_CLEAR(labels);
        }
    }
    if (labels == NULL) {
        return NULL;
    }
    int full = atomic_load(&children->count) >= MAX_CHILDREN;
    PyObject *child = PyObject_CallMethod(self, "_child", "OO", labels, full ? Py_True : Py_False);
    Py_DECREF(labels);
    if (child != NULL && !full) {
        atomic_fetch_add(&children->count, 1);
        if (remember(children->by_names, names, values, count, child) < 0) {
            Py_CLEAR(child);
        }
    }
    return child;
}

static PyObject *
find_or_make(PyObject *self, Children *children, PyObject *names, PyObject *const *values, Py_ssize_t count)
{
    PyObject *child = find(children->by_names, names, values, count);
    if (child != NULL) {
        return Py_NewRef(child);
    }
    return PyErr_Occurred() ? NULL : make(self, children, names, values, count);
}

/* The values as str(value), exact strings all of them; a new tuple, or NULL with an exception set. */
static PyObject *
as_texts(PyObject *const *values, Py_ssize_t count)
{
    PyObject *texts = PyTuple_New(count);
    for (Py_ssize_t i = 0; texts != NULL && i < count; i++) {
        PyObject *text = PyObject_Str(values[i]);
        PyObject *exact = text == NULL ? NULL : PyUnicode_FromObject(text);
        Py_XDECREF(text);
        if (exact == NULL) {
            Py_CLEAR(texts);
        } else {
            PyTuple_SET_ITEM(texts, i, exact);
        }
    }
    return texts;
}

PyObject *
vmscope_labels(PyObject *self, _Atomic(Children *) *where, PyObject *const *values, Py_ssize_t positional,
               PyObject *names)
{
    if (positional != 0 || names == NULL) {
        PyErr_SetString(PyExc_TypeError, "labels() takes one label at least, and each as name=value");
        return NULL;
    }
    Children *children = children_at(where);
    if (children == NULL) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyUnicode_CheckExact(values[i])) {
            PyObject *texts = as_texts(values, count);
            if (texts == NULL) {
                return NULL;
            }
            PyObject *child = find_or_make(self, children, names, ((PyTupleObject *)texts)->ob_item, count);
            Py_DECREF(texts);
            return child;
        }
    }
    return find_or_make(self, children, names, values, count);
}
