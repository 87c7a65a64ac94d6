/* What an object refers to, and where in it each reference stands. tool/model/references.py is the twin. */
#include "jvmti/heap_walk.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>

typedef struct {
    References *into;
    PyObject *referrer;
} Finding;

static int
add(const Finding *found, int kind, Py_ssize_t index, PyObject *name, PyObject *referee)
{
    References *into = found->into;
    if (into->count == into->room) {
        size_t room = into->room ? 2 * into->room : 256;
        Reference *larger = realloc(into->items, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        into->items = larger;
        into->room = room;
    }
    into->items[into->count++] = (Reference){.kind = kind,
                                             .index = (int32_t)index,
                                             .name = Py_XNewRef(name),
                                             .referrer = found->referrer,
                                             .referee = Py_NewRef(referee)};
    return 0;
}

void
vmscope_drop_references(References *references)
{
    while (references->count > 0) {
        const Reference *last = &references->items[--references->count];
        PyObject *name = last->name, *referee = last->referee;
        Py_XDECREF(name);
        Py_DECREF(referee); /* may run the program's code */
    }
}

int
vmscope_each_referent(PyObject *thing, visitproc visit, void *arg)
{
    if (PyModule_Check(thing)) { /* what its C code keeps may be free already */
        return visit(PyModule_GetDict(thing), arg);
    }
    traverseproc traverse = PyObject_IS_GC(thing) ? Py_TYPE(thing)->tp_traverse : NULL;
    return traverse == NULL ? 0 : traverse(thing, visit, arg);
}

static int
add_referent(PyObject *referee, void *context)
{
    return referee == NULL ? 0 : add(context, KIND_FIELD, 0, NULL, referee);
}

static int
count_one(PyObject *referee, void *context)
{
    *(Py_ssize_t *)context += referee != NULL;
    return 0;
}

/* Members of a C struct, attributes: those from `first` on are, and without the class, which was reported already. */
static void
make_fields(const Finding *found, size_t first)
{
    References *into = found->into;
    PyObject *class = (PyObject *)Py_TYPE(found->referrer);
    size_t kept = first;
    for (size_t i = first; i < into->count; i++) {
        Reference each = into->items[i];
        if (each.referee == class) {
            class = NULL; /* a second reference is the program's */
            Py_DECREF(each.referee);
            continue;
        }
        each.index = (int32_t)(i - first);
        into->items[kept++] = each;
    }
    into->count = kept;
}

static int
find_fields(Finding *found)
{
    size_t first = found->into->count;
    if (vmscope_each_referent(found->referrer, add_referent, found) < 0) {
        return -1;
    }
    make_fields(found, first);
    return 0;
}

/* Elements; attributes, where its class derives from tuple or list. A tuple that is just being filled has places without
 * any. */
static int
find_in_sequence(Finding *found)
{
    References *into = found->into;
    size_t first = into->count;
    if (vmscope_each_referent(found->referrer, add_referent, found) < 0) {
        return -1;
    }
    size_t all = into->count - first, length = (size_t)Py_SIZE(found->referrer);
    size_t elements = all < length ? all : length, attributes = all - elements;
    Reference *items = into->items + first;
    if (attributes == 0) {
        for (size_t i = 0, j = all; i + 1 < j; i++) { /* the last one comes first */
            Reference other = items[--j];
            items[j] = items[i];
            items[i] = other;
        }
    } else { /* attributes come before the elements, and are reported after them */
        Reference *ordered = malloc(all * sizeof *ordered);
        if (ordered == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < elements; i++) {
            ordered[i] = items[all - 1 - i];
        }
        memcpy(ordered + elements, items, attributes * sizeof *items);
        memcpy(items, ordered, all * sizeof *items);
        free(ordered);
    }
    for (size_t i = 0; i < elements; i++) {
        items[i].kind = KIND_ELEMENT;
        items[i].index = (int32_t)i;
    }
    make_fields(found, first + elements);
    return 0;
}

/* Keys; values, under the names of their keys; attributes, where its class derives from dict, which come first. */
static int
find_in_dict(Finding *found)
{
    PyObject *dict = found->referrer, *key, *value;
    Py_ssize_t index = 0, own = 0;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value); index++) {
        int named = PyUnicode_CheckExact(key);
        if (add(found, KIND_ELEMENT, index, NULL, key) < 0 ||
            add(found, named ? KIND_FIELD : KIND_ELEMENT, index, named ? key : NULL, value) < 0) {
            return -1;
        }
    }
    if (PyDict_CheckExact(dict)) {
        return 0;
    }
    size_t first = found->into->count;
    if (PyDict_Type.tp_traverse(dict, count_one, &own) < 0 || vmscope_each_referent(dict, add_referent, found) < 0) {
        return -1;
    }
    for (size_t last = found->into->count; own > 0 && last > first; own--) {
        Py_DECREF(found->into->items[--last].referee); /* the dictionary has it, too */
        found->into->count = last;
    }
    make_fields(found, first);
    return 0;
}

static int
find_in_code(Finding *found)
{
    const PyCodeObject *code = (PyCodeObject *)found->referrer;
    PyObject *const parts[] = {code->co_consts, code->co_names};
    Py_ssize_t index = 0;
    for (size_t part = 0; part < 2; part++) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts[part]); i++) {
            if (add(found, KIND_CONSTANT, index++, NULL, PyTuple_GET_ITEM(parts[part], i)) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Bases, loader, and what stands in its `__dict__`. */
static int
find_in_class(const HeapWalk *walk, Finding *found)
{
    PyObject *bases, *loader, *parts = PyObject_CallOneArg(walk->class_parts, found->referrer), *key, *value;
    if (parts == NULL || !PyArg_ParseTuple(parts, "O!O", &PyList_Type, &bases, &loader)) {
        Py_XDECREF(parts);
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(bases); i++) {
        PyObject *pair = PyList_GET_ITEM(bases, i);
        status = add(found, (int)PyLong_AsLong(PyTuple_GET_ITEM(pair, 0)), i, NULL, PyTuple_GET_ITEM(pair, 1));
    }
    if (status == 0 && loader != Py_None) {
        status = add(found, KIND_LOADER, -1, NULL, loader);
    }
    Py_DECREF(parts);
    PyObject *names = vmscope_namespace((PyTypeObject *)found->referrer);
    Py_ssize_t index = 0;
    for (Py_ssize_t at = 0; names != NULL && status == 0 && PyDict_Next(names, &at, &key, &value);) {
        status = add(found, KIND_STATIC, index++, key, value);
    }
    Py_XDECREF(names);
    return status;
}

int
vmscope_find_references(const HeapWalk *walk, PyObject *thing, References *into)
{
    Finding found = {into, thing};
    PyTypeObject *type = Py_TYPE(thing);
    if (add(&found, KIND_CLASS, -1, NULL, (PyObject *)type) < 0) {
        return -1;
    }
    return PyType_Check(thing)                           ? find_in_class(walk, &found)
           : PyCode_Check(thing)                         ? find_in_code(&found)
           : PyTuple_Check(thing) || PyList_Check(thing) ? find_in_sequence(&found)
           : PyDict_Check(thing)                         ? find_in_dict(&found)
                                                         : find_fields(&found);
}

#endif
