/* Labels: a slot's children, found again without making a name.
 *
 * The keyword names of a call come as one tuple, the same object each time at one place of a program. Below it
 * stands a dict for each value but the last, whose dict has the children. Nothing is ever removed, so a borrowed
 * reference is good for as long as the parent lives. In front of the dicts, what was asked for lately is known by
 * its objects alone: at one place of a program the values are mostly the same objects too. */
#include "attributes.h"
#include "native.h"

#define MAX_CHILDREN 2000 /* sets of labels of one slot that are remembered; labels.py has the same */

#define RECENT 16
#define RECENT_VALUES 2

/* Names and values are strong references, so that no other object can have their address; the child is borrowed. */
typedef struct {
    PyObject *names, *values[RECENT_VALUES], *child;
} Recent;

struct Children {
    PyObject *by_names;
    _Atomic uint32_t count;
#ifndef Py_GIL_DISABLED /* without the GIL, others would read what is being replaced */
    Recent recent[RECENT];
#endif
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
#ifndef Py_GIL_DISABLED
        for (size_t i = 0; i < RECENT; i++) {
            Py_XDECREF(children->recent[i].names);
            Py_XDECREF(children->recent[i].values[0]);
            Py_XDECREF(children->recent[i].values[1]);
        }
#endif
        Py_DECREF(children->by_names);
        PyMem_Free(children);
    }
}

/* Where a call with these names and values, one or two, stands if it was made lately. */
static inline Recent *
recent_of(Children *children, PyObject *names, PyObject *first, PyObject *second)
{
#ifdef Py_GIL_DISABLED
    (void)children, (void)names, (void)first, (void)second;
    return NULL;
#else
    uintptr_t mixed = ((uintptr_t)names >> 4) + ((uintptr_t)first >> 4) + ((uintptr_t)second >> 4) * 3;
    return &children->recent[(mixed ^ mixed >> 4) % RECENT];
#endif
}

static inline int
is_recent(const Recent *recent, PyObject *names, PyObject *first, PyObject *second)
{
    return recent != NULL && recent->names == names && recent->values[0] == first && recent->values[1] == second;
}

static void
make_recent(Recent *recent, PyObject *names, PyObject *first, PyObject *second, PyObject *child)
{
    Recent before = *recent;
    *recent = (Recent){Py_NewRef(names), {Py_NewRef(first), Py_XNewRef(second)}, child};
    Py_XDECREF(before.names); /* when all is in its place, whatever a destructor may do */
    Py_XDECREF(before.values[0]);
    Py_XDECREF(before.values[1]);
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
    return PyDict_SetDefault(node, key, child) == NULL ? -1 : 0; /* another thread's stays, and who found it has it */
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
    PyObject *child = vmscope_call_method(self, "_child", "(OO)", labels, full ? Py_True : Py_False);
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
    if (positional != 0 || names == NULL || PyTuple_GET_SIZE(names) == 0) {
        PyErr_SetString(PyExc_TypeError, "labels() takes one label at least, and each as name=value");
        return NULL;
    }
    Children *children = children_at(where);
    if (children == NULL) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    PyObject *second = count == 2 ? values[1] : NULL;
    Recent *recent = count <= RECENT_VALUES ? recent_of(children, names, values[0], second) : NULL;
    if (is_recent(recent, names, values[0], second)) {
        return Py_NewRef(recent->child);
    }
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
    PyObject *child = find(children->by_names, names, values, count);
    if (child == NULL) {
        return PyErr_Occurred() ? NULL : make(self, children, names, values, count);
    }
    if (recent != NULL) {
        make_recent(recent, names, values[0], second, child);
    }
    return Py_NewRef(child);
}
