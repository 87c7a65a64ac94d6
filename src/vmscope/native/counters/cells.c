/* Cells: slots with the methods that prometheus_client's metrics have, bound to a metric in place of its own.
 *
 * An amount is any real number, and an exemplar may come with it, which Python code keeps (`_note`). */
#include "attributes.h"
#include "native.h"

/* The arguments (amount=1, exemplar=None), borrowed; `amount` NULL: there is none. -1 with TypeError. */
static int
read_arguments(const char *method, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **amount,
               PyObject **exemplar)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    PyObject *found[2] = {NULL, NULL};
    Py_ssize_t room = exemplar == NULL ? 1 : 2;
    int wrong = count + named > room;
    for (Py_ssize_t i = 0; i < count && !wrong; i++) {
        found[i] = args[i];
    }
    for (Py_ssize_t i = 0; i < named && !wrong; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        Py_ssize_t place = PyUnicode_CompareWithASCIIString(name, "exemplar") == 0 ? 1 : 0;
        wrong = (place == 0 && PyUnicode_CompareWithASCIIString(name, "amount") != 0) || place >= room ||
                found[place] != NULL;
        if (!wrong) {
            found[place] = args[count + i];
        }
    }
    if (wrong) {
        PyErr_Format(PyExc_TypeError,
                     exemplar == NULL ? "%s() takes an amount" : "%s() takes an amount and an exemplar", method);
        return -1;
    }
    *amount = found[0];
    if (exemplar != NULL) {
        *exemplar = found[1];
    }
    return 0;
}

/* What float(number) gives. */
static int
any_double(PyObject *number, double *out)
{
    if (PyFloat_CheckExact(number) || PyLong_CheckExact(number)) {
        return vmscope_as_double(number, out);
    }
    PyObject *real = PyNumber_Float(number);
    if (real == NULL) {
        return -1;
    }
    *out = PyFloat_AS_DOUBLE(real);
    Py_DECREF(real);
    return 0;
}

static PyObject *
no_note(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments))
{
    Py_RETURN_NONE;
}

static int
refuse_negative(void)
{
    PyErr_SetString(PyExc_ValueError, "Counters can only be incremented by non-negative amounts.");
    return -1;
}

static int
add_to_counter(PyObject *self, PyObject *amount)
{
    if (PyLong_CheckExact(amount) && VMSCOPE_IS_COMPACT(amount)) {
        int64_t value = VMSCOPE_COMPACT_VALUE(amount);
        if (value < 0) {
            return refuse_negative();
        }
        vmscope_add(&((LongSlot *)self)->value, value);
        return 0;
    }
    double number;
    if (any_double(amount, &number) < 0) {
        return -1;
    }
    return number < 0 ? refuse_negative() : vmscope_add_to_counter(self, number);
}

static PyObject *
counter_inc(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (count == 0 && names == NULL) {
        vmscope_add(&((LongSlot *)self)->value, 1);
        Py_RETURN_NONE;
    }
    if (count == 1 && names == NULL) {
        if (add_to_counter(self, args[0]) < 0) {
            return NULL;
        }
        Py_RETURN_NONE;
    }
    PyObject *amount, *exemplar;
    if (read_arguments("inc", args, count, names, &amount, &exemplar) < 0) {
        return NULL;
    }
    if (amount == NULL) {
        vmscope_add(&((LongSlot *)self)->value, 1);
    } else if (add_to_counter(self, amount) < 0) {
        return NULL;
    }
    return vmscope_note_exemplar(self, exemplar, amount);
}

static PyObject *
add_to_gauge(const char *method, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names, int sign)
{
    double number = 1;
    PyObject *amount = count == 1 ? args[0] : NULL;
    if ((count > 1 || names != NULL) && read_arguments(method, args, count, names, &amount, NULL) < 0) {
        return NULL;
    }
    if (amount != NULL && any_double(amount, &number) < 0) {
        return NULL;
    }
    vmscope_add_double(&((LongSlot *)self)->value, sign * number);
    Py_RETURN_NONE;
}

static PyObject *
gauge_inc(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return add_to_gauge("inc", self, args, count, names, 1);
}

static PyObject *
gauge_dec(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return add_to_gauge("dec", self, args, count, names, -1);
}

/* set(value, timestamp=None): when it was is not kept here. */
static PyObject *
gauge_set(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    double number;
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (count + named < 1 || count > 2 || named > 1) {
        PyErr_SetString(PyExc_TypeError, "set() takes a value");
        return NULL;
    }
    if (any_double(args[0], &number) < 0) { /* a name alone is `value` */
        return NULL;
    }
    atomic_store_explicit(&((LongSlot *)self)->value, vmscope_bits(number), memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
histogram_observe(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    double number;
    PyObject *amount = count == 1 ? args[0] : NULL, *exemplar = NULL;
    if ((count > 1 || names != NULL) && read_arguments("observe", args, count, names, &amount, &exemplar) < 0) {
        return NULL;
    }
    if (amount == NULL) {
        PyErr_SetString(PyExc_TypeError, "observe() takes an amount");
        return NULL;
    }
    if (any_double(amount, &number) < 0 || vmscope_observe(self, number) < 0) {
        return NULL;
    }
    return vmscope_note_exemplar(self, exemplar, amount);
}

#define METHOD(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS
#define NOTE {"_note", no_note, METH_VARARGS, "Keeps an exemplar that came with an amount."}

static PyMethodDef counter_methods[] = {
    {"inc", METHOD(counter_inc),
     "inc(amount=1, exemplar=None): adds an amount of zero or more (ValueError otherwise)."},
    NOTE,
    {NULL},
};

static PyMethodDef gauge_methods[] = {
    {"inc", METHOD(gauge_inc), "inc(amount=1): adds an amount."},
    {"dec", METHOD(gauge_dec), "dec(amount=1): takes an amount away."},
    {"set", METHOD(gauge_set), "set(value, timestamp=None): sets the value."},
    {NULL},
};

static PyMethodDef histogram_methods[] = {
    {"observe", METHOD(histogram_observe), "observe(amount, exemplar=None): counts an amount."},
    {NULL},
};

#define CELL(name, text, methods)                                                                                      \
    static PyType_Slot name##_slots[] = {{Py_tp_doc, text}, {Py_tp_methods, methods}, {0, NULL}}
#define CELL_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE)

CELL(counter, "A counter that takes any real number, and exemplars.", counter_methods);
CELL(gauge, "A gauge of floats that takes any real number.", gauge_methods);
CELL(histogram, "A histogram whose sum is a double, and which takes exemplars.", histogram_methods);

static PyType_Spec counter_spec = {"vmscope.native.CounterCell", 0, 0, CELL_FLAGS, counter_slots};
static PyType_Spec gauge_spec = {"vmscope.native.GaugeCell", 0, 0, CELL_FLAGS, gauge_slots};
static PyType_Spec histogram_spec = {"vmscope.native.HistogramCell", 0, 0, CELL_FLAGS, histogram_slots};

int
vmscope_add_cells(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    PyTypeObject *bases[] = {state->counter_slot, state->float_gauge_slot, state->histogram_slot};
    PyType_Spec *specs[] = {&counter_spec, &gauge_spec, &histogram_spec};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        PyTypeObject *type = vmscope_add_type(module, specs[i], bases[i]);
        if (type == NULL) {
            return -1;
        }
        Py_DECREF(type);
    }
    return 0;
}
