/* The program's objects, whatever their class: marks, classes, sizes, references. */
#include "heap/objects.h"
#include "attributes.h"

#ifdef HAS_OBJECTS

#include <stdlib.h>
#include <structmember.h>

#ifndef CO_FAST_LOCAL /* CPython's own: the kind of a variable that is not a cell */
#define CO_FAST_LOCAL 0x20
#endif

/* -- marks ---------------------------------------------------------------------------------------- */

#define FIRST_BITS 8
#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)

static size_t
slot_of(uintptr_t key, unsigned bits)
{
    return (size_t)((uint64_t)key * MULTIPLIER >> (64 - bits));
}

static MarksPiece *
find_piece(MarksPiece *pieces, unsigned bits, uintptr_t place)
{
    size_t at = slot_of(place, bits);
    while (pieces[at].bytes != NULL && pieces[at].place != place) {
        at = (at + 1) & (((size_t)1 << bits) - 1);
    }
    return pieces + at;
}

static int
grow_marks(Marks *marks)
{
    unsigned bits = marks->pieces == NULL ? FIRST_BITS : marks->bits + 1;
    MarksPiece *larger = calloc((size_t)1 << bits, sizeof *larger);
    if (larger == NULL) {
        return -1;
    }
    for (size_t i = 0; marks->pieces != NULL && i < (size_t)1 << marks->bits; i++) {
        if (marks->pieces[i].bytes != NULL) {
            *find_piece(larger, bits, marks->pieces[i].place) = marks->pieces[i];
        }
    }
    free(marks->pieces);
    marks->pieces = larger;
    marks->bits = bits;
    return 0;
}

uint8_t *
vmscope_new_mark(Marks *marks, uintptr_t place)
{
    if ((marks->pieces == NULL || marks->count * 2 >= (size_t)1 << marks->bits) && grow_marks(marks) < 0) {
        return NULL;
    }
    MarksPiece *piece = find_piece(marks->pieces, marks->bits, place);
    if (piece->bytes == NULL) {
        piece->bytes = calloc((size_t)1 << (MARKS_BITS - 4), 1);
        if (piece->bytes == NULL) {
            return NULL;
        }
        piece->place = place;
        marks->count++;
    }
    marks->last = *piece;
    return piece->bytes;
}

const uint8_t *
vmscope_find_marks(Marks *marks, uintptr_t place)
{
    const MarksPiece *piece = marks->pieces == NULL ? NULL : find_piece(marks->pieces, marks->bits, place);
    if (piece == NULL || piece->bytes == NULL) {
        return NULL;
    }
    marks->last = *piece;
    return piece->bytes;
}

void
vmscope_free_marks(Marks *marks)
{
    for (size_t i = 0; marks->pieces != NULL && i < (size_t)1 << marks->bits; i++) {
        free(marks->pieces[i].bytes);
    }
    free(marks->pieces);
    *marks = (Marks){.pieces = NULL};
}

/* -- classes -------------------------------------------------------------------------------------- */

static Class **
find_class(Class **table, unsigned bits, PyTypeObject *type)
{
    size_t at = slot_of((uintptr_t)type >> 4, bits);
    while (table[at] != NULL && table[at]->type != type) {
        at = (at + 1) & (((size_t)1 << bits) - 1);
    }
    return table + at;
}

static int
grow_classes(Classes *classes)
{
    unsigned bits = classes->table == NULL ? FIRST_BITS : classes->bits + 1;
    Class **larger = calloc((size_t)1 << bits, sizeof *larger);
    if (larger == NULL) {
        return -1;
    }
    for (size_t i = 0; classes->table != NULL && i < (size_t)1 << classes->bits; i++) {
        if (classes->table[i] != NULL) {
            *find_class(larger, bits, classes->table[i]->type) = classes->table[i];
        }
    }
    free(classes->table);
    classes->table = larger;
    classes->bits = bits;
    return 0;
}

PyObject *
vmscope_namespace(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(type);
#else
    return Py_XNewRef(type->tp_dict);
#endif
}

/* The first `__sizeof__` of C along the class's line; NULL for none. `*sizer`: the class that it must know. */
static PyCFunction
find_size(PyTypeObject *type, PyTypeObject **sizer)
{
    PyObject *line = type->tp_mro;
    PyObject *name = PyUnicode_InternFromString("__sizeof__");
    PyCFunction found = NULL;
    *sizer = NULL;
    for (Py_ssize_t i = 0; name != NULL && line != NULL && found == NULL && i < PyTuple_GET_SIZE(line); i++) {
        PyObject *own = vmscope_namespace((PyTypeObject *)PyTuple_GET_ITEM(line, i));
        PyObject *method = own == NULL ? NULL : PyDict_GetItemWithError(own, name);
        if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
            PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
            int told = definition->ml_flags == (METH_METHOD | METH_FASTCALL | METH_KEYWORDS);
            found = told || definition->ml_flags == METH_NOARGS ? definition->ml_meth : NULL;
            *sizer = told ? PyDescr_TYPE(method) : NULL; /* which is in the line */
        }
        Py_XDECREF(own);
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return found;
}

static Py_ssize_t
ask_size(const Class *class, PyObject *object)
{
    PyObject *found = NULL;
    if (class->sizer != NULL) {
        found = ((PyCMethod)(void (*)(void))class->size)(object, class->sizer, NULL, 0, NULL);
    } else if (class->size != NULL) {
        found = class->size(object, NULL);
    }
    Py_ssize_t bytes = found == NULL ? -1 : PyLong_AsSsize_t(found);
    Py_XDECREF(found);
    if (bytes < 0) { /* a class of C that cannot tell */
        PyErr_Clear();
        return 0;
    }
    return bytes;
}

static Py_ssize_t
header_of(PyTypeObject *type)
{
    Py_ssize_t size = PyType_IS_GC(type) ? 2 * (Py_ssize_t)sizeof(void *) : 0;
#if PY_VERSION_HEX >= 0x030C0000
    int before = PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF);
#else
    int before = PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT);
#endif
    return before ? size + 2 * (Py_ssize_t)sizeof(void *) : size;
}

static int
form_of(PyTypeObject *type)
{
    static PyTypeObject *const atoms[] = {&PyUnicode_Type, &PyLong_Type,    &PyFloat_Type,
                                          &PyBytes_Type,   &PyComplex_Type, &PyBool_Type};
    for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++) {
        if (type == atoms[i]) {
            return ATOM;
        }
    }
    return type == &PyDict_Type                                ? DICT
           : type == &PyCode_Type                              ? CODE
           : PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS) ? CLASS
           : PyType_HasFeature(type, Py_TPFLAGS_DICT_SUBCLASS) ? DERIVED
           : PyType_IS_GC(type)                                ? PLAIN
                                                               : LEAF;
}

Class *
vmscope_new_class(Classes *classes, PyTypeObject *type)
{
    if ((classes->table == NULL || classes->count * 2 >= (size_t)1 << classes->bits) && grow_classes(classes) < 0) {
        PyErr_NoMemory();
        return NULL;
    }
    Class **found = find_class(classes->table, classes->bits, type);
    if (*found == NULL) {
        Class *made = calloc(1, sizeof *made);
        if (made == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        made->type = type;
        made->form = form_of(type);
        made->header = header_of(type);
        made->fixed = -1;
        made->size = find_size(type, &made->sizer);
        *found = made;
        classes->count++;
    }
    return classes->last = *found;
}

void
vmscope_free_classes(Classes *classes)
{
    for (size_t i = 0; classes->table != NULL && i < (size_t)1 << classes->bits; i++) {
        free(classes->table[i]);
    }
    free(classes->table);
    *classes = (Classes){.table = NULL};
}

static Py_ssize_t
items_of(PyObject *object)
{
    Py_ssize_t count = Py_SIZE(object);
    return count < 0 ? -count : count;
}

/* Classes that have object's own `__sizeof__` say the same of each object, except its items. */
static Py_ssize_t
first_size(Class *class, PyObject *object)
{
    static PyCFunction plain; /* the same in every interpreter */
    if (plain == NULL) {
        PyTypeObject *sizer;
        plain = find_size(&PyBaseObject_Type, &sizer);
    }
    Py_ssize_t size = ask_size(class, object), header = class->header;
#if PY_VERSION_HEX >= 0x030D0000 /* the earlier ones count what a class of the interpreter's own does not have */
    if (class->form == CLASS && !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE)) {
        header = 0;
    }
#endif
    if (class->size == plain && size > 0) {
        class->item = class->type->tp_itemsize;
        class->fixed = size - (class->item > 0 ? class->item * items_of(object) : 0) + class->header;
    }
    return size + header;
}

Py_ssize_t
vmscope_size_of(Class *class, PyObject *object)
{
    if (class->fixed >= 0) {
        return class->fixed + (class->item > 0 ? class->item * items_of(object) : 0);
    }
    if (class->type == &PyUnicode_Type && PyUnicode_IS_COMPACT_ASCII(object)) {
        return (Py_ssize_t)sizeof(PyASCIIObject) + PyUnicode_GET_LENGTH(object) + 1;
    }
    if (class->type == &PyLong_Type && VMSCOPE_IS_COMPACT(object) && VMSCOPE_COMPACT_VALUE(object) != 0) {
        return class->type->tp_basicsize + (Py_ssize_t)sizeof(digit);
    }
    if (class->type == &PyList_Type) {
        return class->header + class->type->tp_basicsize +
               ((PyListObject *)object)->allocated * (Py_ssize_t)sizeof(void *);
    }
    return first_size(class, object);
}

/* -- references ----------------------------------------------------------------------------------- */

#define VISIT(member) Py_VISIT((PyObject *)(member)) /* of a function with `visit` and `arg` */

/* The members of a C struct that the collector does not visit: those of a range, for one. */
static int
visit_members(PyTypeObject *type, PyObject *object, visitproc visit, void *arg)
{
    for (; type != NULL; type = type->tp_base) {
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++) {
            if (member->type == T_OBJECT || member->type == T_OBJECT_EX) {
                VISIT(*(PyObject **)((char *)object + member->offset));
            }
        }
    }
    return 0;
}

static int
visit_items(PyObject *dict, visitproc visit, void *arg)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
        VISIT(key);
        VISIT(value);
    }
    return 0;
}

/* Of a dictionary, which tells the collector of its values: its keys. */
static int
visit_keys(PyObject *dict, visitproc visit, void *arg)
{
    PyObject *key;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, NULL);) {
        if (PyUnicode_Check(key)) {
            VISIT(key);
        }
    }
    return 0;
}

static int
visit_code(PyCodeObject *code, visitproc visit, void *arg)
{
    VISIT(code->co_consts);
    VISIT(code->co_names);
    VISIT(code->co_localsplusnames);
    VISIT(code->co_localspluskinds);
    VISIT(code->co_filename);
    VISIT(code->co_name);
    VISIT(code->co_qualname);
    VISIT(code->co_linetable);
    VISIT(code->co_exceptiontable);
    return 0;
}

static int
visit_class(PyTypeObject *type, visitproc visit, void *arg)
{
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        PyHeapTypeObject *heap = (PyHeapTypeObject *)type;
        VISIT(heap->ht_name);
        VISIT(heap->ht_qualname);
        VISIT(heap->ht_slots);
        return Py_TYPE(type)->tp_traverse((PyObject *)type, visit, arg);
    }
    PyObject *own = vmscope_namespace(type);
    int status = own == NULL ? 0 : visit(own, arg); /* the class has it as well */
    Py_XDECREF(own);
    if (status != 0) {
        return status;
    }
    VISIT(type->tp_bases);
    VISIT(type->tp_mro);
    VISIT(type->tp_base);
    return 0;
}

int
vmscope_each_reference(const Class *class, PyObject *object, visitproc visit, void *arg)
{
    switch (class->form) {
    case ATOM:
        return 0;
    case LEAF:
        return visit_members(class->type, object, visit, arg);
    case DICT:
        return visit_items(object, visit, arg);
    case CODE:
        return visit_code((PyCodeObject *)object, visit, arg);
    case CLASS:
        return visit_class((PyTypeObject *)object, visit, arg);
    case DERIVED: {
        int status = visit_keys(object, visit, arg);
        return status != 0 ? status : class->type->tp_traverse(object, visit, arg);
    }
    default:
        if (PyModule_Check(object)) { /* what its C code keeps may be free already: 3.12's _asyncio keeps such a list */
            return visit(PyModule_GetDict(object), arg);
        }
        return class->type->tp_traverse(object, visit, arg);
    }
}

/* -- which there are ------------------------------------------------------------------------------ */

typedef struct {
    int (*visit)(PyObject *, void *);
    void *context;
    int status;
} Round;

#if PY_VERSION_HEX >= 0x030C0000

static int
visit_one(PyObject *object, void *context)
{
    Round *round = context;
    round->status = round->visit(object, round->context);
    return round->status == 0;
}

int
vmscope_each_tracked(int (*visit)(PyObject *, void *), void *context)
{
    Round round = {visit, context, 0};
    PyUnstable_GC_VisitObjects(visit_one, &round);
    return round.status;
}

#else

int
vmscope_each_tracked(int (*visit)(PyObject *, void *), void *context)
{
    Round round = {visit, context, 0};
    PyObject *gc = PyImport_ImportModule("gc");
    int collecting = PyGC_Disable(); /* a collection would run the program's finalizers */
    PyObject *all = gc == NULL ? NULL : vmscope_call_method(gc, "get_objects", NULL);
    for (Py_ssize_t i = 0; all != NULL && round.status == 0 && i < PyList_GET_SIZE(all); i++) {
        round.status = round.visit(PyList_GET_ITEM(all, i), round.context);
    }
    Py_XDECREF(all); /* before another thread runs: a tuple that is being filled must have no other owner */
    if (collecting) {
        PyGC_Enable();
    }
    Py_XDECREF(gc);
    return all == NULL ? -1 : round.status;
}

#endif

int
vmscope_has_frozen(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *count = gc == NULL ? NULL : vmscope_call_method(gc, "get_freeze_count", NULL);
    Py_XDECREF(gc);
    int found = count == NULL ? -1 : PyObject_IsTrue(count);
    Py_XDECREF(count);
    return found;
}

/* -- variables of running functions --------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000

/* Without the frame's `f_locals`, which may keep the values for as long as the function runs. */
static PyObject *
variable_of(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t slot)
{
    if (!(PyBytes_AS_STRING(code->co_localspluskinds)[slot] & CO_FAST_LOCAL)) {
        return NULL; /* a cell, which the collector knows */
    }
    PyObject *value = PyFrame_GetVar(frame, PyTuple_GET_ITEM(code->co_localsplusnames, slot));
    if (value == NULL) {
        PyErr_Clear(); /* it has none yet */
    }
    return value;
}

#else

typedef struct { /* CPython's own, of 3.11 */
    PyObject *function, *globals, *builtins, *locals, *code, *frame_object, *previous, *instruction;
    int stack_top;
    char is_entry, owner;
    PyObject *slots[];
} InterpreterFrame;

typedef struct {
    PyObject_HEAD PyFrameObject *back;
    InterpreterFrame *frame;
} Frame;

/* PyFrame_GetLocals would keep the values for as long as the function runs. */
static PyObject *
variable_of(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t slot)
{
    if (!(PyBytes_AS_STRING(code->co_localspluskinds)[slot] & CO_FAST_LOCAL)) {
        return NULL; /* a cell, which the collector knows */
    }
    return Py_XNewRef(((Frame *)frame)->frame->slots[slot]);
}

#endif

int
vmscope_each_variable(PyFrameObject *frame, visitproc visit, void *context)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(code->co_localsplusnames); i++) {
        PyObject *value = variable_of(frame, code, i);
        if (value != NULL) {
            status = visit(value, context);
            Py_DECREF(value);
        }
    }
    Py_DECREF(code);
    return status;
}

int
vmscope_each_frame(VisitFrame *visit, void *context)
{
    int status = 0;
    PyThreadState *state = vmscope_first_state(PyInterpreterState_Get());
    for (; status == 0 && state != NULL; state = vmscope_next_state(state)) {
        PyFrameObject *frame = PyThreadState_GetFrame(state);
        for (int depth = 0; frame != NULL; depth++) {
            status = status != 0 ? status : visit(frame, state, depth, context);
            PyFrameObject *back = PyFrame_GetBack(frame);
            Py_DECREF(frame);
            frame = back;
        }
    }
    return status;
}

#endif
