/* Walks of the heap for the tool interface; tool/model/heap_walks.py is the twin.
 *
 * An iteration collects all objects before the first call, so that they are of one moment; they live until the last. A
 * walk along references goes on while the program may run, in callbacks in Python and what tags set off. What it visits
 * lives until it ends, so that no address is used again. Nothing that is made for it is reported as a new object. */
#include "jvmti/heap_walk.h"

#ifdef HAS_OBJECTS

#include "events/dispatch.h"

#include <stdlib.h>

enum { VISITED = 1, WITHIN = 2 }; /* marks: it was, or may be */

int
vmscope_add_thing(Things *things, PyObject *thing)
{
    if (things->count == things->room) {
        size_t room = things->room ? 2 * things->room : 1024;
        PyObject **larger = realloc(things->items, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        things->items = larger;
        things->room = room;
    }
    things->items[things->count++] = thing;
    return 0;
}

/* Objects lie all over the memory: those that are looked at soon are asked for now. */
#define AHEAD 12

static inline void
fetch(const Things *things, size_t from)
{
    if (from < things->count) {
        __builtin_prefetch(things->items[from]);
    }
}

/* Lets go of them, which may run the program's code, for what it has let go of meanwhile. */
static void
drop(Things *things)
{
    while (things->count > 0) {
        fetch(things, things->count - AHEAD);
        Py_DECREF(things->items[--things->count]);
    }
    free(things->items);
}

static int
is_unsafe(PyObject *thing) /* it may be a tuple that is just being filled */
{
    return PyTuple_CheckExact(thing) || PyFrozenSet_CheckExact(thing);
}

/* Whether it is found only through what refers to it. */
static int
is_leaf(PyObject *thing)
{
    return is_unsafe(thing) || !vmscope_is_tracked(thing);
}

/* -- all objects ------------------------------------------------------------------------------------ */

typedef struct {
    HeapWalk *walk;
    Things found; /* each with a reference */
    Things todo;  /* leaves whose parts are still to be looked at */
    Marks met;    /* leaves */
} Collection;

static int
meet(PyObject *thing, void *context)
{
    Collection *all = context;
    if (thing == NULL || !is_leaf(thing)) {
        return 0;
    }
    uint8_t *mark = vmscope_mark(&all->met, thing);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (*mark) {
        return 0;
    }
    *mark = 1;
    int is_atom = PyUnicode_CheckExact(thing) || PyLong_CheckExact(thing) || PyBytes_CheckExact(thing) ||
                  PyFloat_CheckExact(thing);
    int ours = is_atom ? 0 : vmscope_is_ours(all->walk, thing);
    if (ours != 0) {
        return ours < 0 ? -1 : 0;
    }
    if (vmscope_add_thing(&all->found, thing) < 0) {
        return -1;
    }
    Py_INCREF(thing);
    return is_atom ? 0 : vmscope_add_thing(&all->todo, thing);
}

static int
visit_code(PyCodeObject *code, Collection *all)
{
    PyObject *const parts[] = {code->co_consts,   code->co_names,     code->co_name,          code->co_qualname,
                               code->co_filename, code->co_linetable, code->co_exceptiontable};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (meet(parts[i], all) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What it refers to, also where the collector need not know that. */
static int
visit_parts(PyObject *leaf, Collection *all)
{
    if (PyCode_Check(leaf)) {
        return visit_code((PyCodeObject *)leaf, all);
    }
    if (!PyType_Check(leaf)) {
        return vmscope_each_referent(leaf, meet, all);
    }
    PyObject *names = vmscope_namespace((PyTypeObject *)leaf), *value;
    int status = 0;
    for (Py_ssize_t at = 0; names != NULL && status == 0 && PyDict_Next(names, &at, NULL, &value);) {
        status = meet(value, all);
    }
    Py_XDECREF(names);
    return status;
}

static int
collect_one(PyObject *thing, Collection *all)
{
    if (is_unsafe(thing) || vmscope_was_found_ours(all->walk, thing)) {
        return 0; /* the unsafe ones are found through what refers to them */
    }
    if (vmscope_add_thing(&all->found, thing) < 0) {
        return -1;
    }
    Py_INCREF(thing);
    if (vmscope_each_referent(thing, meet, all) < 0) {
        return -1;
    }
    while (all->todo.count > 0) {
        if (visit_parts(all->todo.items[--all->todo.count], all) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
tell_one(HeapWalk *walk, PyObject *thing)
{
    int answer = vmscope_report_object(walk, thing);
    if (answer < 0 || answer & VISIT_ABORT || !vmscope_reports_values(walk)) {
        return answer;
    }
    References fields = {.items = NULL};
    if (vmscope_reports_fields(walk) && vmscope_find_references(walk, thing, &fields) < 0) {
        answer = -1;
    }
    answer = answer < 0 ? -1 : vmscope_report_values(walk, thing, &fields);
    vmscope_drop_references(&fields);
    free(fields.items);
    return answer;
}

static int
iterate(HeapWalk *walk)
{
    Collection all = {.walk = walk};
    int collecting = PyGC_Disable(); /* it would run the program's finalizers */
    walk->wants_tracked = 1;
    int status = vmscope_find_ours(walk);
    for (size_t i = 0; status == 0 && i < walk->tracked.count;
         i++) { /* all are still there: nothing has run meanwhile */
        fetch(&walk->tracked, i + AHEAD);
        status = collect_one(walk->tracked.items[i], &all);
    }
    free(walk->tracked.items);
    if (collecting) {
        PyGC_Enable();
    }
    vmscope_free_marks(&all.met);
    free(all.todo.items);
    for (size_t i = 0; status >= 0 && !(status & VISIT_ABORT) && i < all.found.count; i++) {
        fetch(&all.found, i + AHEAD);
        status = tell_one(walk, all.found.items[i]);
    }
    PyObject *error = raised();
    drop(&all.found);
    if (error != NULL) {
        raise_again(error);
    }
    return status < 0 ? -1 : 0;
}

/* -- along references ------------------------------------------------------------------------------- */

typedef struct {
    HeapWalk *walk;
    Things visited; /* each with a reference */
    Things todo;
    References found; /* of the object that is just being visited */
    Marks marks;
    int bounded;
} Following;

static int
mark_within(PyObject *thing, void *context)
{
    uint8_t *mark = vmscope_mark(context, thing);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *mark |= WITHIN;
    return 0;
}

/* Whether a walk that has become large still goes there: not to what is made meanwhile, or a thread that makes objects
 * faster than they are visited would keep it from ending. */
static int
is_within(Following *all, PyObject *thing, const uint8_t *mark)
{
    if (!all->bounded) {
        if ((Py_ssize_t)all->visited.count < all->walk->unbounded) {
            return 1;
        }
        all->bounded = 1;
        if (vmscope_each_tracked(mark_within, &all->marks) < 0) {
            return -1;
        }
    }
    return *mark & WITHIN || is_leaf(thing);
}

static int
put_off(Following *all, PyObject *thing)
{
    if (vmscope_add_thing(&all->visited, thing) < 0) {
        return -1;
    }
    Py_INCREF(thing);
    return vmscope_add_thing(&all->todo, thing);
}

/* 1 when a callback wants no more; -1 with an exception. */
static int
follow(Following *all, const Reference *reference)
{
    PyObject *thing = reference->referee;
    int ours = vmscope_is_ours(all->walk, thing);
    if (ours != 0) {
        return ours < 0 ? -1 : 0;
    }
    int answer = vmscope_report_reference(all->walk, reference);
    if (answer < 0) {
        return -1;
    }
    uint8_t *mark = answer & VISIT_OBJECTS ? vmscope_mark(&all->marks, thing) : NULL;
    if (mark == NULL && answer & VISIT_OBJECTS) {
        PyErr_NoMemory();
        return -1;
    }
    if (mark != NULL && !(*mark & VISITED)) {
        int within = is_within(all, thing, mark);
        *mark |= within > 0 ? VISITED : 0;
        if (within < 0 || (within && put_off(all, thing) < 0)) {
            return -1;
        }
    }
    return (answer & VISIT_ABORT) != 0;
}

/* Visits what was met. 1 when a callback wants no more; -1 with an exception. */
static int
go_on(Following *all)
{
    int status = 0;
    while (status == 0 && all->todo.count > 0) {
        PyObject *thing = all->todo.items[--all->todo.count];
        status = vmscope_find_references(all->walk, thing, &all->found);
        if (status == 0 && vmscope_reports_values(all->walk)) {
            int answer = vmscope_report_values(all->walk, thing, &all->found);
            status = answer < 0 ? -1 : (answer & VISIT_ABORT) != 0;
        }
        for (size_t i = 0; status == 0 && i < all->found.count; i++) {
            status = follow(all, &all->found.items[i]);
        }
        PyObject *error = status < 0 ? raised() : NULL;
        vmscope_drop_references(&all->found);
        if (error != NULL) {
            raise_again(error);
        }
    }
    return status;
}

/* Roots come as (kind, StackLocal or None, object), and None where what they lead to is visited. */
static int
from_roots(Following *all, PyObject *roots)
{
    int status = 0;
    for (PyObject *row; status == 0 && (row = PyIter_Next(roots)) != NULL; Py_DECREF(row)) {
        if (row == Py_None) {
            status = go_on(all);
            continue;
        }
        Reference root = {.index = -1};
        if (!PyArg_ParseTuple(row, "iOO", &root.kind, &root.local, &root.referee)) {
            status = -1;
        } else {
            root.local = root.local == Py_None ? NULL : root.local;
            status = follow(all, &root);
        }
    }
    return PyErr_Occurred() ? -1 : status;
}

static int
follow_all(HeapWalk *walk, PyObject *start, PyObject *roots)
{
    Following all = {.walk = walk};
    int status = vmscope_find_ours(walk);
    if (status == 0 && roots != Py_None) {
        status = from_roots(&all, roots);
    } else if (status == 0) {
        uint8_t *mark = vmscope_mark(&all.marks, start);
        status = mark == NULL ? (PyErr_NoMemory(), -1) : put_off(&all, start);
        if (status == 0) {
            *mark = VISITED;
            status = go_on(&all);
        }
    }
    PyObject *error = raised();
    drop(&all.visited);
    free(all.todo.items);
    free(all.found.items);
    vmscope_free_marks(&all.marks);
    if (error != NULL) {
        raise_again(error);
    }
    return status < 0 ? -1 : 0;
}

/* -- functions -------------------------------------------------------------------------------------- */

/* The walk that Python asks for: what all have in common, then what this one has. */
static int
begin(HeapWalk *walk, PyObject *common, PyObject *own)
{
    PyObject *klass, *callbacks;
    if (!PyArg_ParseTuple(common, "OOOO!O!O!OOOU", &walk->tag_class, &walk->holder_class, &walk->info_class,
                          &PyTuple_Type, &walk->kinds, &PyTuple_Type, &walk->root_kinds, &PyDict_Type,
                          &walk->primitives, &walk->control, &walk->old_control, &walk->class_parts, &walk->folder) ||
        !PyArg_ParseTuple(own, "OO!O!O!iOpnO", &walk->tags, &PyDict_Type, &walk->by_id, &PyTuple_Type, &walk->arrays,
                          &PyTuple_Type, &callbacks, &walk->filter, &klass, &walk->older, &walk->unbounded,
                          &walk->data)) {
        return -1;
    }
    if (PyTuple_GET_SIZE(callbacks) != CALLBACKS || PyTuple_GET_SIZE(walk->kinds) < KINDS ||
        (klass != Py_None && !PyType_Check(klass))) {
        PyErr_SetString(PyExc_TypeError, "a walk has callbacks, kinds and a class or None");
        return -1;
    }
    walk->klass = klass == Py_None ? NULL : (PyTypeObject *)klass;
    for (int i = 0; i < CALLBACKS; i++) {
        PyObject *callback = PyTuple_GET_ITEM(callbacks, i);
        walk->callbacks[i] = callback == Py_None ? NULL : callback;
        walk->functions[i] = callback == Py_None ? NULL : jni_heap_function(callback, i);
    }
    vmscope_dispatching++;
    return 0;
}

static PyObject *
end(HeapWalk *walk, int status)
{
    PyObject *error = raised();
    vmscope_free_marks(&walk->ours);
    drop(&walk->held);
    Py_CLEAR(walk->file);
    for (size_t i = 0; walk->classes.table != NULL && i < (size_t)1 << walk->classes.bits; i++) {
        if (walk->classes.table[i] != NULL) {
            free(walk->classes.table[i]->more);
        }
    }
    vmscope_free_classes(&walk->classes);
    if (error != NULL) {
        raise_again(error);
    }
    vmscope_dispatching--;
    was_late();
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
iterate_heap(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *common, *own;
    HeapWalk walk = {.data = NULL};
    if (!PyArg_ParseTuple(arguments, "OO", &common, &own) || begin(&walk, common, own) < 0) {
        return NULL;
    }
    return end(&walk, iterate(&walk));
}

static PyObject *
follow_heap(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *common, *own, *start, *roots;
    HeapWalk walk = {.data = NULL};
    if (!PyArg_ParseTuple(arguments, "OOOO", &common, &own, &start, &roots) || begin(&walk, common, own) < 0) {
        return NULL;
    }
    return end(&walk, follow_all(&walk, start, roots));
}

static PyMethodDef functions[] = {
    {"iterate_heap", iterate_heap, METH_VARARGS, "iterate_heap(common, own): calls back for every object."},
    {"follow_heap", follow_heap, METH_VARARGS,
     "follow_heap(common, own, start, roots): calls back for every reference from an object, or from an iterator's "
     "roots."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_heap_walk(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_heap_walk(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
