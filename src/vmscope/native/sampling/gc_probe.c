/* The probe that CPython's collector calls through gc.callbacks: counts, times and causes, into slots.
 *
 * Nothing is sampled: a collection adds to its generation's slots when it ends. */
#include "threads/thread.h"

#include <string.h>

#define GENERATIONS 3
#define FIELDS 4 /* collections, ns, collected, uncollectable */

typedef struct {
    PyObject_HEAD LongSlot *slots[GENERATIONS][FIELDS];
    LongSlot *longest;
    TextSlot *cause, *last_cause;
    int64_t started;
} GcProbe;

static void
add(LongSlot *slot, int64_t amount)
{
    vmscope_add(&slot->value, amount);
}

static void
set_text(TextSlot *slot, int64_t generation)
{
    static const char *const names[] = {"No GC", "generation 0", "generation 1", "generation 2"};
    const char *name = names[generation >= 0 && generation < GENERATIONS ? generation + 1 : 0];
    size_t length = strlen(name);
    vmscope_text_store(slot, name, length < slot->capacity ? length : slot->capacity);
}

/* A number of the info dict; -1 when it has none, which leaves the slots as they were. */
static int64_t
number(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL;
    return value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
}

static PyObject *
gc_probe_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    GcProbe *self = (GcProbe *)object;
    PyObject *phase, *info;
    if (kwargs != NULL || !PyArg_ParseTuple(args, "UO:GcProbe", &phase, &info)) {
        PyErr_Clear();
        Py_RETURN_NONE; /* nothing is ever raised into the collector */
    }
    if (PyUnicode_CompareWithASCIIString(phase, "start") == 0) {
        set_text(self->cause, number(info, "generation"));
        self->started = vmscope_now();
        Py_RETURN_NONE;
    }
    int64_t ended = vmscope_now(), generation = number(info, "generation");
    if (self->started != 0 && generation >= 0 && generation < GENERATIONS) {
        LongSlot **slots = self->slots[generation];
        int64_t collected = number(info, "collected"), uncollectable = number(info, "uncollectable");
        add(slots[0], 1);
        add(slots[1], ended - self->started);
        add(slots[2], collected > 0 ? collected : 0);
        add(slots[3], uncollectable > 0 ? uncollectable : 0);
        if (ended - self->started > atomic_load_explicit(&self->longest->value, memory_order_relaxed)) {
            atomic_store_explicit(&self->longest->value, ended - self->started, memory_order_relaxed);
        }
        set_text(self->last_cause, generation);
    }
    set_text(self->cause, -1);
    self->started = 0;
    vmscope_thread_retry();
    Py_RETURN_NONE;
}

static PyObject *
gc_probe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"generations", "longest", "cause", "last_cause", NULL};
    PyObject *rows, *longest, *cause, *last_cause;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOO:GcProbe", names, &PyTuple_Type, &rows, &longest, &cause,
                                     &last_cause)) {
        return NULL;
    }
    GcProbe *self = (GcProbe *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    if (state == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    if (!PyObject_TypeCheck(longest, state->long_slot) || !PyObject_TypeCheck(cause, state->text_slot) ||
        !PyObject_TypeCheck(last_cause, state->text_slot)) {
        PyErr_SetString(PyExc_TypeError, "a collector takes a LongSlot for the longest pause, and two TextSlots");
        Py_DECREF(self);
        return NULL;
    }
    self->longest = (LongSlot *)Py_NewRef(longest);
    self->cause = (TextSlot *)Py_NewRef(cause);
    self->last_cause = (TextSlot *)Py_NewRef(last_cause);
    set_text(self->cause, -1);
    set_text(self->last_cause, -1);
    for (Py_ssize_t i = 0; i < GENERATIONS; i++) {
        PyObject *row = PyTuple_GET_SIZE(rows) == GENERATIONS ? PyTuple_GET_ITEM(rows, i) : NULL;
        for (Py_ssize_t k = 0; k < FIELDS; k++) {
            PyObject *slot =
                row != NULL && PyTuple_Check(row) && PyTuple_GET_SIZE(row) == FIELDS ? PyTuple_GET_ITEM(row, k) : NULL;
            if (slot == NULL || !PyObject_TypeCheck(slot, state->long_slot)) {
                PyErr_SetString(PyExc_TypeError, "a collector takes a tuple of 3 tuples of 4 LongSlots");
                Py_DECREF(self);
                return NULL;
            }
            self->slots[i][k] = (LongSlot *)Py_NewRef(slot);
        }
    }
    return (PyObject *)self;
}

static void
gc_probe_dealloc(PyObject *object)
{
    GcProbe *self = (GcProbe *)object;
    for (int i = 0; i < GENERATIONS; i++) {
        for (int k = 0; k < FIELDS; k++) {
            Py_XDECREF(self->slots[i][k]);
        }
    }
    Py_XDECREF(self->longest);
    Py_XDECREF(self->cause);
    Py_XDECREF(self->last_cause);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot gc_probe_type_slots[] = {
    {Py_tp_doc,
     "GcProbe(generations, longest, cause, last_cause)\n--\n\nA gc callback; for each of 3 generations the "
     "slots of collections, ns, collected and uncollectable objects; then those of the longest pause in ns, of "
     "what is being collected and of what was last."},
    {Py_tp_new, gc_probe_new},
    {Py_tp_dealloc, gc_probe_dealloc},
    {Py_tp_call, gc_probe_call},
    {0, NULL},
};

static PyType_Spec gc_probe_spec = {"vmscope.native.GcProbe", sizeof(GcProbe), 0, Py_TPFLAGS_DEFAULT,
                                    gc_probe_type_slots};

int
vmscope_add_gc_probe(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &gc_probe_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
