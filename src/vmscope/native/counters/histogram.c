/* Histograms: how many values were observed up to each bound, and their sum; and timers that feed them.
 *
 * An observation is a search and two atomic additions. Nothing of it is done when the value is wrong. */
#include "attributes.h"
#include "threads/thread.h"

#include <math.h>

/* -- the slot --------------------------------------------------------------------------------------- */

/* The index of the first bound that is not less than x; bound_count when all are. Compiled without a branch. */
static inline size_t
bucket_of(const HistogramSlot *self, double x)
{
    const double *bound = self->bounds;
    for (size_t left = self->bound_count; left > 1; left -= left / 2) {
        bound += bound[left / 2 - 1] < x ? left / 2 : 0;
    }
    return (size_t)(bound - self->bounds) + (*bound < x);
}

static int
refuse(double x)
{
    if (isnan(x)) {
        PyErr_SetString(PyExc_ValueError, "observe() takes a number, not nan");
    } else {
        PyErr_SetString(PyExc_OverflowError, "the value is too large for the sum, which has 64 bits");
    }
    return -1;
}

/* Where the sum is a double: it takes what is infinite, and becomes nan of a nan, which is in no bucket. */
static int
observe_double(HistogramSlot *self, double x)
{
    if (!isnan(x)) {
        vmscope_add(&self->cells[1 + bucket_of(self, x)], 1);
    }
    vmscope_add_double(&self->cells[0], x);
    return 0;
}

static inline int
observe(HistogramSlot *self, double x)
{
    if (self->scale == 0) {
        return observe_double(self, x);
    }
    double amount = x * self->scale;
    if (!(amount >= -0x1p63 && amount < 0x1p63)) { /* nan fails too */
        return refuse(x);
    }
    vmscope_add(&self->cells[1 + bucket_of(self, x)], 1);
    vmscope_add(&self->cells[0], llrint(amount));
    return 0;
}

int
vmscope_observe(PyObject *self, double value)
{
    return observe((HistogramSlot *)self, value);
}

/* observe(value, *, exemplar=None): Python code keeps an exemplar (`_note`), unless it is empty. */
static PyObject *
observe_with_exemplar(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (count != 1 || named > 1 ||
        (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "exemplar") != 0)) {
        PyErr_SetString(PyExc_TypeError, "observe() takes a value and the keyword argument exemplar");
        return NULL;
    }
    double x;
    if (vmscope_as_double(args[0], &x) < 0 || observe((HistogramSlot *)self, x) < 0) {
        return NULL;
    }
    return vmscope_note_exemplar(self, named == 1 ? args[1] : NULL, args[0]);
}

static PyObject *
histogram_observe(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (count != 1 || names != NULL) {
        return observe_with_exemplar(self, args, count, names);
    }
    double x;
    if (vmscope_as_double(args[0], &x) < 0 || observe((HistogramSlot *)self, x) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *
vmscope_note_exemplar(PyObject *self, PyObject *exemplar, PyObject *amount)
{
    int given = exemplar == NULL || exemplar == Py_None ? 0 : PyObject_IsTrue(exemplar);
    if (given < 0) {
        return NULL;
    }
    if (given) {
        PyObject *one = amount == NULL ? PyLong_FromLong(1) : Py_NewRef(amount);
        PyObject *done = one == NULL ? NULL : vmscope_call_method(self, "_note", "(OO)", exemplar, one);
        Py_XDECREF(one);
        return done;
    }
    Py_RETURN_NONE;
}

/* Reads the bounds into `out`, which has room for all; -1 with an exception set. */
static int
read_bounds(PyObject *bounds, double *out)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bounds); i++) {
        if (vmscope_as_double(PyTuple_GET_ITEM(bounds, i), &out[i]) < 0) {
            return -1;
        }
        if (!isfinite(out[i])) {
            PyErr_Format(PyExc_ValueError,
                         "bounds are finite, unlike %R; the bucket above the last one is always there",
                         PyTuple_GET_ITEM(bounds, i));
            return -1;
        }
        if (i > 0 && !(out[i - 1] < out[i])) {
            PyErr_Format(PyExc_ValueError, "bounds grow, but %R is followed by %R", PyTuple_GET_ITEM(bounds, i - 1),
                         PyTuple_GET_ITEM(bounds, i));
            return -1;
        }
    }
    return 0;
}

static PyObject *
histogram_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bounds", "scale", NULL};
    PyObject *iterable;
    int scale = 1000000000;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|i:HistogramSlot", names, &iterable, &scale)) {
        return NULL;
    }
    PyObject *bounds = PySequence_Tuple(iterable);
    if (bounds == NULL) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(bounds);
    HistogramSlot *self = NULL;
    if (count < 1 || count > VMSCOPE_MAX_BOUNDS || scale < 0) {
        PyErr_Format(PyExc_ValueError, scale < 0 ? "the scale is 0 or more" : "a histogram has 1 to %d bounds, not %zd",
                     VMSCOPE_MAX_BOUNDS, count);
    } else {
        self = (HistogramSlot *)type->tp_alloc(type, 0);
    }
    if (self != NULL) {
        size_t cell_count = (size_t)count + 2;
        atomic_init(&self->children, NULL);
        self->scale = scale;
        self->bound_count = (size_t)count;
        self->cells = PyMem_RawCalloc(cell_count + (size_t)count, 8);
        if (self->cells == NULL) {
            PyErr_NoMemory();
        } else {
            self->bounds = (double *)(self->cells + cell_count);
        }
        if (self->cells == NULL || read_bounds(bounds, self->bounds) < 0) {
            Py_CLEAR(self);
        }
    }
    Py_DECREF(bounds);
    return (PyObject *)self;
}

static int
histogram_init(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return 0; /* all was done in __new__ */
}

static void
histogram_dealloc(PyObject *object)
{
    HistogramSlot *self = (HistogramSlot *)object;
    vmscope_free_children(&self->children);
    PyMem_RawFree((void *)self->cells);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
histogram_labels(PyObject *self, PyObject *const *values, Py_ssize_t positional, PyObject *names)
{
    return vmscope_labels(self, &((HistogramSlot *)self)->children, values, positional, names);
}

static PyObject *
histogram_reset(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    vmscope_reset_histogram((HistogramSlot *)object);
    Py_RETURN_NONE;
}

static int64_t
cell(const HistogramSlot *self, size_t index)
{
    return atomic_load_explicit(&self->cells[index], memory_order_relaxed);
}

static PyObject *
histogram_cells(PyObject *object, void *Py_UNUSED(closure))
{
    HistogramSlot *self = (HistogramSlot *)object;
    PyObject *cells = PyTuple_New((Py_ssize_t)self->bound_count + 2);
    for (size_t i = 0; cells != NULL && i < self->bound_count + 2; i++) {
        PyObject *number = PyLong_FromLongLong(cell(self, i));
        if (number == NULL) {
            Py_CLEAR(cells);
        } else {
            PyTuple_SET_ITEM(cells, (Py_ssize_t)i, number);
        }
    }
    return cells;
}

static PyObject *
histogram_bounds(PyObject *object, void *Py_UNUSED(closure))
{
    HistogramSlot *self = (HistogramSlot *)object;
    PyObject *bounds = PyTuple_New((Py_ssize_t)self->bound_count);
    for (size_t i = 0; bounds != NULL && i < self->bound_count; i++) {
        PyObject *number = PyFloat_FromDouble(self->bounds[i]);
        if (number == NULL) {
            Py_CLEAR(bounds);
        } else {
            PyTuple_SET_ITEM(bounds, (Py_ssize_t)i, number);
        }
    }
    return bounds;
}

static PyObject *
histogram_count(PyObject *object, void *Py_UNUSED(closure))
{
    HistogramSlot *self = (HistogramSlot *)object;
    uint64_t count = 0;
    for (size_t i = 0; i <= self->bound_count; i++) {
        count += (uint64_t)cell(self, 1 + i);
    }
    return PyLong_FromLongLong((int64_t)count);
}

static PyObject *
histogram_sum(PyObject *object, void *Py_UNUSED(closure))
{
    HistogramSlot *self = (HistogramSlot *)object;
    if (self->scale == 0) {
        return PyFloat_FromDouble(vmscope_double(cell(self, 0)));
    }
    PyObject *sum = PyLong_FromLongLong(cell(self, 0)), *scale = PyLong_FromDouble(self->scale);
    PyObject *quotient = sum == NULL || scale == NULL ? NULL : PyNumber_TrueDivide(sum, scale); /* rounded once */
    Py_XDECREF(sum);
    Py_XDECREF(scale);
    return quotient;
}

/* -- the timer -------------------------------------------------------------------------------------- */

/* One begin of the timer, by the thread that made it. */
typedef struct {
    unsigned long thread;
    int64_t began;
} Run;

/* Used as a context manager it may be entered again, in the same thread or in others, before it is left. */
typedef struct {
    PyObject_HEAD HistogramSlot *histogram;
    Run *runs;
    size_t count, capacity;
    Run first; /* all that most timers need */
} Timer;

#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

static PyObject *
histogram_time(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    NativeState *state = vmscope_state_of(self);
    Timer *timer = state == NULL ? NULL : PyObject_New(Timer, state->timer);
    if (timer != NULL) {
        timer->histogram = (HistogramSlot *)Py_NewRef(self);
        timer->runs = &timer->first;
        timer->count = 0;
        timer->capacity = 1;
    }
    return (PyObject *)timer;
}

static void
timer_dealloc(PyObject *object)
{
    Timer *self = (Timer *)object;
    if (self->runs != &self->first) {
        PyMem_Free(self->runs);
    }
    Py_DECREF(self->histogram);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* Room for one more run; 0, or -1 where there is no memory. */
static int
grow(Timer *self)
{
    Run *old = self->runs == &self->first ? NULL : self->runs;
    Run *runs = PyMem_Realloc(old, 2 * self->capacity * sizeof *runs);
    if (runs == NULL) {
        return -1;
    }
    runs[0] = old == NULL ? self->first : runs[0];
    self->runs = runs;
    self->capacity *= 2;
    return 0;
}

static PyObject *
timer_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Timer *self = (Timer *)object;
    int status = 0;
    Py_BEGIN_CRITICAL_SECTION(object);
    if (self->count == self->capacity) {
        status = grow(self);
    }
    if (status == 0) {
        self->runs[self->count++] = (Run){PyThread_get_thread_ident(), vmscope_now()};
    }
    Py_END_CRITICAL_SECTION();
    return status == 0 ? Py_NewRef(object) : PyErr_NoMemory();
}

/* The last run of this thread; of a generator that went on to another thread, the last of all. */
static size_t
find_run(const Timer *self)
{
    unsigned long thread = PyThread_get_thread_ident();
    for (size_t i = self->count; i-- > 0;) {
        if (self->runs[i].thread == thread) {
            return i;
        }
    }
    return self->count - 1;
}

static PyObject *
timer_exit(PyObject *object, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    Timer *self = (Timer *)object;
    int64_t ended = vmscope_now(), began = -1;
    Py_BEGIN_CRITICAL_SECTION(object);
    if (self->count > 0) {
        size_t i = find_run(self);
        began = self->runs[i].began;
        for (self->count--; i < self->count; i++) {
            self->runs[i] = self->runs[i + 1];
        }
    }
    Py_END_CRITICAL_SECTION();
    if (began < 0) {
        PyErr_SetString(PyExc_RuntimeError, "a timer is left that was not entered");
        return NULL;
    }
    if (observe(self->histogram, (double)(ended - began) / 1e9) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* As a decorator: timed.py makes the function. */
static PyObject *
timer_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    PyObject *function;
    if (kwargs != NULL || !PyArg_ParseTuple(args, "O:time", &function)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a timer decorates one function");
        }
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("vmscope.native.counters.timed");
    if (module == NULL) {
        return NULL;
    }
    PyObject *timed = vmscope_call_method(module, "timed", "(OO)", ((Timer *)object)->histogram, function);
    Py_DECREF(module);
    return timed;
}

static PyObject *
histogram_note(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments))
{
    Py_RETURN_NONE;
}

/* -- the types -------------------------------------------------------------------------------------- */

static PyMethodDef histogram_methods[] = {
    {"observe", (PyCFunction)(void (*)(void))histogram_observe, METH_FASTCALL | METH_KEYWORDS,
     "observe($self, value, /, *, exemplar=None)\n--\n\nCounts a value. An exemplar is a dict of labels, of 128 "
     "characters at most, "
     "that "
     "say where the value comes from. ValueError: it is nan; OverflowError: the sum could not hold it; nothing has "
     "changed then."},
    {"_note", histogram_note, METH_VARARGS, "Keeps an exemplar that came with a value."},
    {"time", histogram_time, METH_NOARGS,
     "A context manager or decorator that observes the seconds from its begin to its end."},
    {"labels", (PyCFunction)(void (*)(void))histogram_labels, METH_FASTCALL | METH_KEYWORDS, VMSCOPE_LABELS_DOC},
    {"_reset", histogram_reset, METH_NOARGS, "Back to zero: for forked children."},
    VMSCOPE_INIT_SUBCLASS,
    {NULL},
};

static PyGetSetDef histogram_getset[] = {
    {"bounds", histogram_bounds, NULL, "The bounds, a tuple of floats.", NULL},
    {"cells", histogram_cells, NULL, "The sum as it is kept, then the count of each bucket.", NULL},
    {"count", histogram_count, NULL, "How many values were observed.", NULL},
    {"sum", histogram_sum, NULL, "Their sum, a float.", NULL},
    {NULL},
};

static PyType_Slot histogram_type_slots[] = {
    {Py_tp_doc, "HistogramSlot(bounds, scale=10**9)\n--\n\nCounts of values up to each of `bounds` and above the last, "
                "and their sum times `scale`; with 0 the sum is the bits of a double."},
    {Py_tp_new, histogram_new},
    {Py_tp_init, histogram_init},
    {Py_tp_dealloc, histogram_dealloc},
    {Py_tp_methods, histogram_methods},
    {Py_tp_getset, histogram_getset},
    {0, NULL},
};

static PyMethodDef timer_methods[] = {
    {"__enter__", timer_enter, METH_NOARGS, "Begins."},
    {"__exit__", (PyCFunction)(void (*)(void))timer_exit, METH_FASTCALL, "Ends, and observes, whatever was raised."},
    {NULL},
};

static PyType_Slot timer_type_slots[] = {
    {Py_tp_doc, "Observes how long something takes, in seconds: `with`, or a decorator."},
    {Py_tp_dealloc, timer_dealloc},
    {Py_tp_call, timer_call},
    {Py_tp_methods, timer_methods},
    {0, NULL},
};

static PyType_Spec histogram_spec = {"vmscope.native.HistogramSlot", sizeof(HistogramSlot), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, histogram_type_slots};
static PyType_Spec timer_spec = {"vmscope.native.Timer", sizeof(Timer), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, timer_type_slots};

int
vmscope_add_histogram(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    state->histogram_slot = vmscope_add_type(module, &histogram_spec, NULL);
    if (state->histogram_slot == NULL) {
        return -1;
    }
    state->timer = vmscope_add_type(module, &timer_spec, NULL);
    return state->timer == NULL ? -1 : 0;
}
