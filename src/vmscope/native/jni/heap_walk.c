/* A walk over all objects that calls an agent's function for each. What it meets is what tool.references.objects() gives,
 * in its order, but as of one moment: all are collected before the first call, and live until the last. */
#include "heap_walk.h"
#include "../objects.h"

#ifdef HAS_OBJECTS

enum { TAGGED = 0x4, UNTAGGED = 0x8, CLASS_TAGGED = 0x10, CLASS_UNTAGGED = 0x20 }; /* whom no callback is called for */
enum { ONLY_TAGGED = 1, ONLY_UNTAGGED = 2 };                                      /* whom an older one is called for */
enum { VISIT_ABORT = 0x8000, ITERATION_ABORT = 0 };

typedef struct {
    PyObject **items;
    size_t count, room;
} Things;

typedef struct {
    Things found; /* each with a reference */
    Things todo;  /* leaves whose parts are still to be looked at */
    Marks met;    /* leaves */
} Collection;

static int
append(Things *things, PyObject *thing)
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

static int
is_unsafe(PyObject *thing) /* it may be a tuple that is just being filled */
{
    return PyTuple_CheckExact(thing) || PyFrozenSet_CheckExact(thing);
}

static int
meet(PyObject *thing, void *context)
{
    Collection *all = context;
    if (thing == NULL || (!is_unsafe(thing) && vmscope_is_tracked(thing))) {
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
    if (append(&all->found, thing) < 0) {
        return -1;
    }
    Py_INCREF(thing);
    int is_atom = PyUnicode_CheckExact(thing) || PyLong_CheckExact(thing) || PyBytes_CheckExact(thing) ||
                  PyFloat_CheckExact(thing);
    return is_atom ? 0 : append(&all->todo, thing);
}

/* As gc.get_referents, but of a module its names only. */
static int
visit_referents(PyObject *thing, Collection *all)
{
    if (PyModule_Check(thing)) {
        return meet(PyModule_GetDict(thing), all);
    }
    return PyObject_IS_GC(thing) && Py_TYPE(thing)->tp_traverse != NULL ? Py_TYPE(thing)->tp_traverse(thing, meet, all)
                                                                        : 0;
}

static int
visit_code(PyCodeObject *code, Collection *all)
{
    PyObject *const parts[] = {code->co_consts,   code->co_names,    code->co_name,          code->co_qualname,
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
        return visit_referents(leaf, all);
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
collect_one(PyObject *thing, void *context)
{
    Collection *all = context;
    if (is_unsafe(thing)) {
        return 0; /* found through what refers to it */
    }
    if (append(&all->found, thing) < 0) {
        return -1;
    }
    Py_INCREF(thing);
    if (visit_referents(thing, all) < 0) {
        return -1;
    }
    while (all->todo.count > 0) {
        if (visit_parts(all->todo.items[--all->todo.count], all) < 0) {
            return -1;
        }
    }
    return 0;
}

/* -- tags ------------------------------------------------------------------------------------------- */

typedef struct {
    PyTypeObject *array; /* whose length it has, or NULL */
    int64_t tag;
    uint64_t changes; /* of the tags, when this one was read, and one more */
} OfClass;

typedef struct {
    const HeapWalk *walk;
    Classes classes;
    Marks tagged; /* all that may have a tag: the others are not looked up */
    uint64_t changes;
} Telling;

static int
mark_tagged(Telling *telling, const void *thing)
{
    uint8_t *mark = vmscope_mark(&telling->tagged, thing);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *mark = 1;
    return 0;
}

static int
mark_all_tagged(Telling *telling)
{
    PyObject *pairs = PyObject_CallMethod(telling->walk->tags, "tagged", NULL);
    int status = pairs == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(pairs); i++) {
        status = mark_tagged(telling, PyTuple_GET_ITEM(PyList_GET_ITEM(pairs, i), 0));
    }
    Py_XDECREF(pairs);
    return status;
}

static __attribute__((noinline)) int
look_up_tag(const Telling *telling, PyObject *thing, int64_t *tag)
{
    PyObject *value = PyObject_CallMethod(telling->walk->tags, "get", "(O)", thing);
    *tag = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int
tag_of(Telling *telling, PyObject *thing, int64_t *tag)
{
    *tag = 0;
    if (telling->tagged.count == 0) {
        return 0;
    }
    uint8_t *mark = vmscope_mark(&telling->tagged, thing);
    return mark != NULL && !*mark ? 0 : look_up_tag(telling, thing, tag);
}

static int
set_tag(Telling *telling, PyObject *thing, int64_t tag)
{
    telling->changes++;
    PyObject *done = PyObject_CallMethod(telling->walk->tags, "set", "OL", thing, (long long)tag);
    Py_XDECREF(done);
    return done == NULL ? -1 : mark_tagged(telling, thing);
}

/* -- telling ---------------------------------------------------------------------------------------- */

static OfClass *
of_class(Telling *telling, Class *class)
{
    OfClass *own = class->more;
    if (own == NULL) {
        class->more = own = calloc(1, sizeof *own);
        if (own == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        PyObject *arrays = telling->walk->arrays;
        for (Py_ssize_t i = 0; own->array == NULL && i < PyTuple_GET_SIZE(arrays); i++) {
            PyTypeObject *array = (PyTypeObject *)PyTuple_GET_ITEM(arrays, i);
            own->array = PyType_IsSubtype(class->type, array) ? array : NULL;
        }
    }
    if (own->changes != telling->changes + 1) {
        if (tag_of(telling, (PyObject *)class->type, &own->tag) < 0) {
            return NULL;
        }
        own->changes = telling->changes + 1;
    }
    return own;
}

static int32_t
length_of(const OfClass *own, PyObject *thing)
{
    if (own->array == NULL) {
        return -1;
    }
    const PyTypeObject *array = own->array; /* one of C, whose length is told by C */
    lenfunc length = array->tp_as_sequence == NULL ? NULL : array->tp_as_sequence->sq_length;
    if (length == NULL && array->tp_as_mapping != NULL) {
        length = array->tp_as_mapping->mp_length;
    }
    return length == NULL ? -1 : (int32_t)length(thing);
}

static int
is_wanted(const HeapWalk *walk, int64_t tag, int64_t class_tag)
{
    if (walk->older) {
        return walk->filter == ONLY_TAGGED ? tag != 0 : walk->filter == ONLY_UNTAGGED ? tag == 0 : 1;
    }
    return !(walk->filter & ((tag ? TAGGED : UNTAGGED) | (class_tag ? CLASS_TAGGED : CLASS_UNTAGGED)));
}

/* 1 when the agent wants no more; -1 with an exception. */
static int
tell(Telling *telling, Native *native, PyObject *thing)
{
    const HeapWalk *walk = telling->walk;
    PyTypeObject *type = Py_TYPE(thing);
    if (walk->klass != NULL && type != walk->klass && !(walk->older && PyType_IsSubtype(type, walk->klass))) {
        return 0;
    }
    Class *class = vmscope_class(&telling->classes, type);
    OfClass *own = class == NULL ? NULL : of_class(telling, class);
    int64_t tag, answer;
    if (own == NULL || tag_of(telling, thing, &tag) < 0) {
        return -1;
    }
    if (!is_wanted(walk, tag, own->tag)) {
        return 0;
    }
    int64_t before = tag, size = vmscope_size_of(class, thing);
    int without = native->without_python, over;
    native->without_python = 1;
    if (walk->older) {
        answer = ((int32_t(*)(int64_t, int64_t, int64_t *, void *))walk->function)(own->tag, size, &tag, walk->data);
        over = answer == ITERATION_ABORT;
    } else {
        answer = ((int32_t(*)(int64_t, int64_t, int64_t *, int32_t, void *))walk->function)(
            own->tag, size, &tag, length_of(own, thing), walk->data);
        over = (answer & VISIT_ABORT) != 0;
    }
    native->without_python = without;
    return tag != before && set_tag(telling, thing, tag) < 0 ? -1 : over;
}

int
jni_walk_heap(const HeapWalk *walk)
{
    Collection all = {.found = {.items = NULL}};
    Telling telling = {.walk = walk};
    Native *native = jni_native();
    int collecting = PyGC_Disable(); /* it would run the program's finalizers */
    int status = native == NULL ? -1 : vmscope_each_tracked(collect_one, &all);
    if (collecting) {
        PyGC_Enable();
    }
    vmscope_free_marks(&all.met);
    free(all.todo.items);
    status = status < 0 ? -1 : mark_all_tagged(&telling);
    for (size_t i = 0; status == 0 && i < all.found.count; i++) {
        status = tell(&telling, native, all.found.items[i]);
    }
    vmscope_free_marks(&telling.tagged);
    for (size_t i = 0; telling.classes.table != NULL && i < (size_t)1 << telling.classes.bits; i++) {
        if (telling.classes.table[i] != NULL) {
            free(telling.classes.table[i]->more);
        }
    }
    vmscope_free_classes(&telling.classes);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (size_t i = 0; i < all.found.count; i++) {
        Py_DECREF(all.found.items[i]); /* may run the program's code, for what it has let go of meanwhile */
    }
    free(all.found.items);
    PyErr_Restore(type, value, trace);
    if (status < 0 && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    return status < 0 ? -1 : 0;
}

#endif
