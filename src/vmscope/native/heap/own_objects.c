/* Which of the objects are vmscope's own, so that no walk reports them.
 *
 * Its classes, modules, functions and their objects are. So are the lists, dictionaries and other objects of the
 * interpreter or the standard library that nothing else refers to, counted as the collector does it. Objects of
 * the program's are the program's, whoever keeps them. */
#include "jvmti/heap_walk.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>

#define PACKAGE "vmscope"
#define FIRST_BITS 12

static int
is_our_name(PyObject *name)
{
    static const char package[] = PACKAGE;
    Py_ssize_t length = (Py_ssize_t)sizeof package - 1, all;
    if (name == NULL || !PyUnicode_Check(name)) {
        return 0;
    }
    if (!PyUnicode_IS_COMPACT_ASCII(name)) {
        return 0;
    }
    const char *text = PyUnicode_DATA(name);
    all = PyUnicode_GET_LENGTH(name);
    return all >= length && memcmp(text, package, (size_t)length) == 0 && (all == length || text[length] == '.');
}

static int
is_our_code(HeapWalk *walk, const PyCodeObject *code)
{
    if (walk->file != code->co_filename) { /* which a module's functions share */
        Py_XSETREF(walk->file, Py_NewRef(code->co_filename));
        walk->our_file = PyUnicode_Tailmatch(code->co_filename, walk->folder, 0, PY_SSIZE_T_MAX, -1) == 1;
    }
    return walk->our_file;
}

/* The name of a module or class among its own names; borrowed, or NULL. */
static PyObject *
name_in(PyObject *names, const char *key)
{
    PyObject *text = PyUnicode_InternFromString(key);
    PyObject *found = names == NULL || text == NULL ? NULL : PyDict_GetItemWithError(names, text);
    Py_XDECREF(text);
    PyErr_Clear();
    return found;
}

/* Whether a module of this name is of the interpreter or the standard library. */
static int
is_of_library(PyObject *name)
{
    PyObject *known = PySys_GetObject("stdlib_module_names"); /* borrowed */
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *parts = dot != NULL && PyUnicode_Check(name) ? PyUnicode_Partition(name, dot) : NULL;
    int found = known != NULL && parts != NULL && PySet_Contains(known, PyTuple_GET_ITEM(parts, 0)) == 1;
    Py_XDECREF(parts);
    Py_XDECREF(dot);
    PyErr_Clear();
    return found;
}

static int
is_asked(PyTypeObject *type)
{
    return type == &PyFunction_Type || type == &PyCode_Type || type == &PyMethod_Type || type == &PyFrame_Type ||
           type == &_PyWeakref_RefType || PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS) ||
           PyType_IsSubtype(type, &PyModule_Type) || PyType_IsSubtype(type, &PyCFunction_Type);
}

OfClass *
vmscope_of_class(HeapWalk *walk, PyTypeObject *type, Class **class)
{
    *class = vmscope_class(&walk->classes, type);
    if (*class == NULL || (*class)->more != NULL) {
        return *class == NULL ? NULL : (*class)->more;
    }
    OfClass *own = (*class)->more = calloc(1, sizeof *own);
    if (own == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; own->array == NULL && i < PyTuple_GET_SIZE(walk->arrays); i++) {
        PyTypeObject *array = (PyTypeObject *)PyTuple_GET_ITEM(walk->arrays, i);
        own->array = PyType_IsSubtype(type, array) ? array : NULL;
    }
    own->asked = is_asked(type);
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        PyObject *names = vmscope_namespace(type), *module = name_in(names, "__module__");
        own->ours = is_our_name(module);
        own->program = !own->ours && module != NULL && !is_of_library(module);
        Py_XDECREF(names);
    }
    return own;
}

/* Whether it is, by itself. */
static int
looks_ours(HeapWalk *walk, PyObject *thing)
{
    Class *class;
    const OfClass *own = vmscope_of_class(walk, Py_TYPE(thing), &class);
    if (own == NULL) {
        return -1;
    }
    if (own->ours || !own->asked) {
        return own->ours;
    }
    if (PyFunction_Check(thing)) {
        const PyFunctionObject *function = (PyFunctionObject *)thing;
        return is_our_code(walk, (PyCodeObject *)function->func_code) || is_our_name(function->func_module);
    }
    if (PyCode_Check(thing)) {
        return is_our_code(walk, (PyCodeObject *)thing);
    }
    if (PyType_Check(thing)) {
        own = vmscope_of_class(walk, (PyTypeObject *)thing, &class);
        return own == NULL ? -1 : own->ours;
    }
    if (PyModule_Check(thing)) {
        return is_our_name(name_in(PyModule_GetDict(thing), "__name__"));
    }
    if (PyCFunction_Check(thing)) {
        return is_our_name(((PyCFunctionObject *)thing)->m_module);
    }
    if (PyMethod_Check(thing)) {
        return looks_ours(walk, PyMethod_GET_FUNCTION(thing));
    }
    if (PyFrame_Check(thing)) {
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)thing);
        int ours = is_our_code(walk, code);
        Py_DECREF(code);
        return ours;
    }
    if (PyWeakref_CheckRefExact(thing)) {
        PyObject *referent = ((PyWeakReference *)thing)->wr_object;
        return referent != Py_None && Py_REFCNT(referent) > 0 && !PyWeakref_Check(referent) ? looks_ours(walk, referent)
                                                                                            : 0;
    }
    return 0;
}

int
vmscope_is_ours(HeapWalk *walk, PyObject *thing)
{
    return vmscope_was_found_ours(walk, thing) ? 1 : looks_ours(walk, thing);
}

/* -- what nothing else refers to -------------------------------------------------------------------- */

typedef struct {
    PyObject *thing;
    Py_ssize_t count; /* references to it from what is ours */
} Counted;

typedef struct {
    HeapWalk *walk;
    Counted *table; /* an open hash table of 2^bits */
    size_t count;
    unsigned bits;
    Things todo; /* ours, whose references are still to be counted; borrowed */
} Closure;

static Counted *
find_counted(const Closure *closure, PyObject *thing)
{
    size_t at = (size_t)((uint64_t)((uintptr_t)thing >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - closure->bits));
    while (closure->table[at].thing != NULL && closure->table[at].thing != thing) {
        at = (at + 1) & (((size_t)1 << closure->bits) - 1);
    }
    return &closure->table[at];
}

static int
make_room(Closure *closure)
{
    Closure before = *closure;
    if (before.table != NULL && before.count * 2 < (size_t)1 << before.bits) {
        return 0;
    }
    closure->bits = before.table == NULL ? FIRST_BITS : before.bits + 1;
    closure->table = calloc((size_t)1 << closure->bits, sizeof *closure->table);
    if (closure->table == NULL) {
        closure->table = before.table;
        closure->bits = before.bits;
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; before.table != NULL && i < (size_t)1 << before.bits; i++) {
        if (before.table[i].thing != NULL) {
            *find_counted(closure, before.table[i].thing) = before.table[i];
        }
    }
    free(before.table);
    return 0;
}

static int
take(Closure *closure, PyObject *thing)
{
    uint8_t *mark = vmscope_mark(&closure->walk->ours, thing);
    if (mark == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (*mark) {
        return 0;
    }
    *mark = 1;
    return vmscope_add_thing(&closure->walk->held, thing) < 0 ? -1 : vmscope_add_thing(&closure->todo, thing);
}

static int
is_the_program_s(HeapWalk *walk, PyObject *thing)
{
    Class *class;
    const OfClass *own = vmscope_of_class(walk, Py_TYPE(thing), &class);
    return own == NULL ? -1 : own->program || PyFunction_Check(thing) || PyType_Check(thing) || PyModule_Check(thing);
}

static int
count_reference(PyObject *thing, void *context)
{
    Closure *closure = context;
    if (thing == NULL || !vmscope_is_tracked(thing)) {
        return 0; /* what the collector does not know is met only where something refers to it */
    }
    if (make_room(closure) < 0) {
        return -1;
    }
    Counted *found = find_counted(closure, thing);
    closure->count += found->thing == NULL;
    found->thing = thing;
    if (++found->count != Py_REFCNT(thing)) {
        return 0;
    }
    int other = is_the_program_s(closure->walk, thing);
    return other != 0 ? (other < 0 ? -1 : 0) : take(closure, thing);
}

static int
find_seed(PyObject *thing, void *context)
{
    Closure *closure = context;
    int ours = looks_ours(closure->walk, thing);
    if (ours == 0 && closure->walk->wants_tracked) {
        return vmscope_add_thing(&closure->walk->tracked, thing);
    }
    return ours <= 0 ? ours : take(closure, thing);
}

int
vmscope_find_ours(HeapWalk *walk)
{
    Closure closure = {.walk = walk};
    int collecting = PyGC_Disable(); /* it would run the program's finalizers */
    int status = vmscope_each_tracked(find_seed, &closure);
    while (status == 0 && closure.todo.count > 0) {
        PyObject *thing = closure.todo.items[--closure.todo.count];
        if (!Py_IS_TYPE(thing, (PyTypeObject *)walk->holder_class)) { /* which keeps a tagged object of the program's */
            status = vmscope_each_referent(thing, count_reference, &closure);
        }
    }
    for (size_t i = 0; i < walk->held.count; i++) {
        Py_INCREF(walk->held.items[i]);
    }
    if (collecting) {
        PyGC_Enable();
    }
    free(closure.todo.items);
    free(closure.table);
    return status < 0 ? -1 : 0;
}

#endif
