/* The probe that CPython's collector calls through gc.callbacks: counts and times, into slots.
 *
 * Nothing is sampled: a collection adds to its generation's slots when it ends. */
#include "native.h"

#include <time.h>

#define GENERATIONS 3
#define FIELDS 4 /* collections, ns, collected, uncollectable */

typedef struct {
    PyObject_HEAD
    LongSlot *slots[GENERATIONS][FIELDS];
    int64_t started;
} Collector;

static int64_t
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void
add(LongSlot *slot, int64_t amount)
{
    atomic_fetch_add_explicit(&slot->value, amount, memory_order_relaxed);
}

/* A number of the info dict; -1 when it has none, which leaves the slots as they were. */
static int64_t
number(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL;
    return value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
}

static PyObject *
collector_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    Collector *self = (Collector *)object;
    PyObject *phase, *info;
    if (kwargs != NULL || !PyArg_ParseTuple(args, "UO:Collector", &phase, &info)) {
        PyErr_Clear();
        Py_RETURN_NONE; /* nothing is ever raised into the collector */
    }
    if (PyUnicode_CompareWithASCIIString(phase, "start") == 0) {
        self->started = now();
        Py_RETURN_NONE;
    }
    int64_t generation = number(info, "generation");
    if (self->started != 0 && generation >= 0 && generation < GENERATIONS) {
        LongSlot **slots = self->slots[generation];
        int64_t collected = number(info, "collected"), uncollectable = number(info, "uncollectable");
        add(slots[0], 1);
        add(slots[1], now() - self->started);
        add(slots[2], collected > 0 ? collected : 0);
        add(slots[3], uncollectable > 0 ? uncollectable : 0);
    }
    self->started = 0;
    Py_RETURN_NONE;
}

static PyObject *
collector_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"generations", NULL};
    PyObject *rows;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Collector", names, &PyTuple_Type, &rows)) {
        return NULL;
    }
    Collector *self = (Collector *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    if (state == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < GENERATIONS; i++) {
        PyObject *row = PyTuple_GET_SIZE(rows) == GENERATIONS ? PyTuple_GET_ITEM(rows, i) : NULL;
        for (Py_ssize_t k = 0; k < FIELDS; k++) {
            PyObject *slot = row != NULL && PyTuple_Check(row) && PyTuple_GET_SIZE(row) == FIELDS
                                 ? PyTuple_GET_ITEM(row, k)
                                 : NULL;
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
collector_dealloc(PyObject *object)
{
    Collector *self = (Collector *)object;
    for (int i = 0; i < GENERATIONS; i++) {
        for (int k = 0; k < FIELDS; k++) {
            Py_XDECREF(self->slots[i][k]);
        }
    }
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot collector_type_slots[] = {
    {Py_tp_doc, "Collector(generations)\n--\n\nA gc callback; for each of 3 generations the slots of collections, ns, "
                "collected and uncollectable objects."},
    {Py_tp_new, collector_new},
    {Py_tp_dealloc, collector_dealloc},
    {Py_tp_call, collector_call},
    {0, NULL},
};

static PyType_Spec collector_spec = {"vmscope.native.Collector", sizeof(Collector), 0, Py_TPFLAGS_DEFAULT,
                                     collector_type_slots};

int
vmscope_add_collector(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &collector_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
