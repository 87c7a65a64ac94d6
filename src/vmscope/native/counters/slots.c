/* The live values: one aligned 64-bit word for a number, a second one for a counter's fractions, a guarded buffer for
 * a text.
 *
 * An update is one atomic operation (vmscope_add) on memory that belongs to the object itself. So it is exact under any
 * number of threads, in signal handlers and destructors, before a region exists and after it went.
 * Sums of integers wrap around at 64 bits, as Java's do. */
#include "attributes.h"
#include "native.h"

PyObject *
vmscope_init_subclass(PyObject *subclass, PyObject *Py_UNUSED(ignored))
{
    PyObject *bases = ((PyTypeObject *)subclass)->tp_mro;
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, i);
        PyObject *name, *method, *own;
        Py_ssize_t position = 0;
        while (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && PyDict_Next(base->tp_dict, &position, &name, &method)) {
            if (!Py_IS_TYPE(method, &PyMethodDescr_Type)) {
                continue;
            }
            PyObject *found = PyObject_GetAttr(subclass, name); /* another, where a class in between has its own */
            Py_XDECREF(found);
            if (found == NULL) {
                return NULL;
            }
            if (found != method) {
                continue;
            }
            own = PyDescr_NewMethod((PyTypeObject *)subclass, ((PyMethodDescrObject *)method)->d_method);
            if (own == NULL || PyObject_SetAttr(subclass, name, own) < 0) {
                Py_XDECREF(own);
                return NULL;
            }
            Py_DECREF(own);
        }
    }
    Py_RETURN_NONE;
}

/* -- numbers -------------------------------------------------------------------------------------- */

/* An int that fits into int64. Anything else: -1 with TypeError or OverflowError, and nothing changed. */
static inline int
as_int64(PyObject *number, int64_t *out)
{
    if (PyLong_CheckExact(number) && VMSCOPE_IS_COMPACT(number)) {
        *out = VMSCOPE_COMPACT_VALUE(number);
        return 0;
    }
    int64_t value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    *out = value;
    return 0;
}

static PyObject *
long_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs; /* a subclass's own __init__ takes them */
    LongSlot *self = (LongSlot *)type->tp_alloc(type, 0);
    if (self != NULL) {
        atomic_init(&self->value, 0);
        atomic_init(&self->children, NULL);
    }
    return (PyObject *)self;
}

static void
slot_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static void
long_dealloc(PyObject *self)
{
    vmscope_free_children(&((LongSlot *)self)->children);
    slot_dealloc(self);
}

static PyObject *
long_labels(PyObject *self, PyObject *const *values, Py_ssize_t positional, PyObject *names)
{
    return vmscope_labels(self, &((LongSlot *)self)->children, values, positional, names);
}

static PyObject *
long_inc(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    vmscope_add(&((LongSlot *)self)->value, 1);
    Py_RETURN_NONE;
}

static PyObject *
long_dec(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    vmscope_add(&((LongSlot *)self)->value, -1);
    Py_RETURN_NONE;
}

static PyObject *
long_add(PyObject *self, PyObject *amount)
{
    int64_t value;
    if (as_int64(amount, &value) < 0) {
        return NULL;
    }
    vmscope_add(&((LongSlot *)self)->value, value);
    Py_RETURN_NONE;
}

static PyObject *
long_set(PyObject *self, PyObject *number)
{
    int64_t value;
    if (as_int64(number, &value) < 0) {
        return NULL;
    }
    atomic_store_explicit(&((LongSlot *)self)->value, value, memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
long_reset(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    atomic_store_explicit(&((LongSlot *)self)->value, 0, memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
long_value(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(atomic_load_explicit(&((LongSlot *)self)->value, memory_order_relaxed));
}

static PyObject *
cells(int64_t first, int64_t second, Py_ssize_t count)
{
    PyObject *numbers[] = {PyLong_FromLongLong(first), PyLong_FromLongLong(second)}, *tuple = NULL;
    if (numbers[0] != NULL && numbers[1] != NULL) {
        tuple = count == 1 ? PyTuple_Pack(1, numbers[0]) : PyTuple_Pack(2, numbers[0], numbers[1]);
    }
    Py_XDECREF(numbers[0]);
    Py_XDECREF(numbers[1]);
    return tuple;
}

static PyObject *
long_cells(PyObject *self, void *Py_UNUSED(closure))
{
    return cells(atomic_load_explicit(&((LongSlot *)self)->value, memory_order_relaxed), 0, 1);
}

/* -- counters: whole amounts, and the others beside them --------------------------------------------- */

static inline int64_t
bits_of(PyObject *counter)
{
    return atomic_load_explicit(&((CounterSlot *)counter)->fraction, memory_order_relaxed);
}

static PyObject *
counter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = long_new(type, args, kwargs);
    if (self != NULL) {
        atomic_init(&((CounterSlot *)self)->fraction, 0);
    }
    return self;
}

static PyObject *
refuse_negative(void)
{
    PyErr_SetString(PyExc_ValueError, "a counter only grows: add() takes no negative amount");
    return NULL;
}

int
vmscope_add_to_counter(PyObject *self, double amount)
{
    if (amount < 0x1p63 && amount == (double)(int64_t)amount) {
        vmscope_add(&((LongSlot *)self)->value, (int64_t)amount);
        return 0;
    }
    if (bits_of(self) == 0) { /* the first one */
        PyObject *shown = vmscope_call_method(self, "_show_fraction", NULL);
        if (shown == NULL) {
            return -1;
        }
        Py_DECREF(shown);
    }
    vmscope_add_double(&((CounterSlot *)self)->fraction, amount);
    return 0;
}

static PyObject *
counter_add(PyObject *self, PyObject *amount)
{
    int64_t value;
    if (PyLong_CheckExact(amount) && VMSCOPE_IS_COMPACT(amount)) { /* first: that is what most amounts are */
        value = VMSCOPE_COMPACT_VALUE(amount);
    } else if (PyFloat_Check(amount)) {
        double number = PyFloat_AS_DOUBLE(amount);
        if (!(number >= 0)) { /* nan too */
            return refuse_negative();
        }
        if (vmscope_add_to_counter(self, number) < 0) {
            return NULL;
        }
        Py_RETURN_NONE;
    } else if (as_int64(amount, &value) < 0) {
        return NULL;
    }
    if (value < 0) {
        return refuse_negative();
    }
    vmscope_add(&((LongSlot *)self)->value, value);
    Py_RETURN_NONE;
}

static PyObject *
counter_value(PyObject *self, void *Py_UNUSED(closure))
{
    int64_t whole = atomic_load_explicit(&((LongSlot *)self)->value, memory_order_relaxed), bits = bits_of(self);
    return bits == 0 ? PyLong_FromLongLong(whole) : PyFloat_FromDouble((double)whole + vmscope_double(bits));
}

static PyObject *
counter_cells(PyObject *self, void *Py_UNUSED(closure))
{
    return cells(atomic_load_explicit(&((LongSlot *)self)->value, memory_order_relaxed), bits_of(self), 2);
}

static PyObject *
counter_reset(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    atomic_store_explicit(&((LongSlot *)self)->value, 0, memory_order_relaxed);
    atomic_store_explicit(&((CounterSlot *)self)->fraction, 0, memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
counter_show_fraction(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    Py_RETURN_NONE;
}

/* -- gauges of floats: the value is the bits of a double --------------------------------------------- */

static PyObject *
float_inc(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    vmscope_add_double(&((LongSlot *)self)->value, 1);
    Py_RETURN_NONE;
}

static PyObject *
float_dec(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    vmscope_add_double(&((LongSlot *)self)->value, -1);
    Py_RETURN_NONE;
}

static PyObject *
float_add(PyObject *self, PyObject *amount)
{
    double number;
    if (vmscope_as_double(amount, &number) < 0) {
        return NULL;
    }
    vmscope_add_double(&((LongSlot *)self)->value, number);
    Py_RETURN_NONE;
}

static PyObject *
float_set(PyObject *self, PyObject *value)
{
    double number;
    if (vmscope_as_double(value, &number) < 0) {
        return NULL;
    }
    atomic_store_explicit(&((LongSlot *)self)->value, vmscope_bits(number), memory_order_relaxed);
    Py_RETURN_NONE;
}

static PyObject *
float_value(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(vmscope_double(atomic_load_explicit(&((LongSlot *)self)->value, memory_order_relaxed)));
}

/* -- the types of numbers ---------------------------------------------------------------------------- */

static PyMethodDef long_methods[] = {
    {"_restore", long_set, METH_O, "Puts a value back, whatever the kind."},
    {"_reset", long_reset, METH_NOARGS, "Back to zero: for forked children."},
    {"labels", (PyCFunction)(void (*)(void))long_labels, METH_FASTCALL | METH_KEYWORDS, VMSCOPE_LABELS_DOC},
    VMSCOPE_INIT_SUBCLASS,
    {NULL},
};

static PyMethodDef counter_methods[] = {
    {"inc", long_inc, METH_NOARGS, "Adds one."},
    {"add", counter_add, METH_O, "Adds an amount. ValueError for one below zero."},
    {"_reset", counter_reset, METH_NOARGS, "Back to zero: for forked children."},
    {"_show_fraction", counter_show_fraction, METH_NOARGS, "The first amount that is not whole is about to be added."},
    {NULL},
};

static PyMethodDef float_gauge_methods[] = {
    {"inc", float_inc, METH_NOARGS, "Adds one."},
    {"dec", float_dec, METH_NOARGS, "Subtracts one."},
    {"add", float_add, METH_O, "Adds an amount, negative or not."},
    {"set", float_set, METH_O, "Sets the value."},
    {"_restore", float_set, METH_O, "Puts a value back."},
    {NULL},
};

static PyMethodDef gauge_methods[] = {
    {"inc", long_inc, METH_NOARGS, "Adds one."},
    {"dec", long_dec, METH_NOARGS, "Subtracts one."},
    {"add", long_add, METH_O, "Adds an amount, negative or not."},
    {"set", long_set, METH_O, "Sets the value."},
    {NULL},
};

static PyGetSetDef long_getset[] = {
    {"value", long_value, NULL, "The value now, an int of 64 bits.", NULL},
    {"cells", long_cells, NULL, "The value as it is kept, in a tuple.", NULL},
    {NULL},
};

static PyGetSetDef counter_getset[] = {
    {"value", counter_value, NULL, "The value now: an int of 64 bits, or a float once an amount was not whole.", NULL},
    {"cells", counter_cells, NULL, "The sum of whole amounts; the bits of a double, the sum of the others.", NULL},
    {NULL},
};

static PyGetSetDef float_gauge_getset[] = {
    {"value", float_value, NULL, "The value now, a float.", NULL},
    {NULL},
};

static PyType_Slot long_type_slots[] = {
    {Py_tp_doc, "One 64-bit number, read and written whole."},
    {Py_tp_new, long_new},
    {Py_tp_dealloc, long_dealloc},
    {Py_tp_methods, long_methods},
    {Py_tp_getset, long_getset},
    {0, NULL},
};

static PyType_Slot counter_type_slots[] = {
    {Py_tp_doc, "A number that only grows."},
    {Py_tp_new, counter_new},
    {Py_tp_getset, counter_getset},
    {Py_tp_methods, counter_methods},
    {0, NULL},
};

static PyType_Slot gauge_type_slots[] = {
    {Py_tp_doc, "A number that goes up and down."},
    {Py_tp_methods, gauge_methods},
    {0, NULL},
};

static PyType_Slot float_gauge_type_slots[] = {
    {Py_tp_doc, "A float that goes up and down."},
    {Py_tp_methods, float_gauge_methods},
    {Py_tp_getset, float_gauge_getset},
    {0, NULL},
};

#define SLOT_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE)

static PyType_Spec long_spec = {"vmscope.native.LongSlot", sizeof(LongSlot), 0, SLOT_FLAGS, long_type_slots};
static PyType_Spec counter_spec = {"vmscope.native.CounterSlot", sizeof(CounterSlot), 0, SLOT_FLAGS,
                                   counter_type_slots};
static PyType_Spec gauge_spec = {"vmscope.native.GaugeSlot", sizeof(LongSlot), 0, SLOT_FLAGS, gauge_type_slots};
static PyType_Spec float_gauge_spec = {"vmscope.native.FloatGaugeSlot", sizeof(LongSlot), 0, SLOT_FLAGS,
                                       float_gauge_type_slots};

/* -- text ----------------------------------------------------------------------------------------- */

static PyObject *
text_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"capacity", NULL};
    Py_ssize_t capacity;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n:TextSlot", names, &capacity)) {
        return NULL;
    }
    if (capacity < 0 || capacity > VMSCOPE_MAX_TEXT) {
        PyErr_Format(PyExc_ValueError, "a text's capacity is 0 to %d bytes, not %zd", VMSCOPE_MAX_TEXT, capacity);
        return NULL;
    }
    TextSlot *self = (TextSlot *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    atomic_init(&self->sequence, 0);
    self->capacity = (uint32_t)capacity;
    self->word_count = (uint32_t)(capacity / 8 + 1); /* one NUL at least */
    self->words = PyMem_RawCalloc(self->word_count, sizeof *self->words);
    if (self->words == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int
text_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)args;
    (void)kwargs; /* all was done in __new__ */
    return 0;
}

static void
text_dealloc(PyObject *self)
{
    PyMem_RawFree((void *)((TextSlot *)self)->words);
    slot_dealloc(self);
}

/* How many of `size` bytes of UTF-8 to keep: up to `capacity`, to the first NUL, whole characters only. */
static size_t
cut_length(const char *utf8, size_t size, size_t capacity)
{
    size_t length = strnlen(utf8, size);
    if (length > capacity) {
        length = capacity;
        while (length > 0 && ((unsigned char)utf8[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    return length;
}

void
vmscope_text_store(TextSlot *self, const char *bytes, size_t length)
{
    uint32_t sequence;
    do { /* another writer holds it only for a copy of some words */
        sequence = atomic_load_explicit(&self->sequence, memory_order_relaxed) & ~UINT32_C(1);
    } while (!atomic_compare_exchange_weak_explicit(&self->sequence, &sequence, sequence + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < self->word_count; i++) {
        uint64_t word = 0;
        size_t start = (size_t)i * 8;
        if (start < length) {
            memcpy(&word, bytes + start, length - start < 8 ? length - start : 8);
        }
        atomic_store_explicit(&self->words[i], word, memory_order_relaxed);
    }
    atomic_store_explicit(&self->sequence, sequence + 2, memory_order_release);
}

int
vmscope_text_copy(const TextSlot *slot, uint64_t *out)
{
    uint32_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    if (before & 1) {
        return -1;
    }
    for (uint32_t i = 0; i < slot->word_count; i++) {
        out[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->sequence, memory_order_relaxed) == before ? 0 : -1;
}

static PyObject *
text_set(PyObject *self, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        return PyErr_Format(PyExc_TypeError, "set() takes a str, not %.100s", Py_TYPE(text)->tp_name);
    }
    TextSlot *slot = (TextSlot *)self;
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    PyObject *replaced = NULL;
    if (utf8 == NULL) { /* lone surrogates, as in undecodable file names, become question marks */
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return NULL;
        }
        PyErr_Clear();
        replaced = PyUnicode_AsEncodedString(text, "utf-8", "replace");
        if (replaced == NULL) {
            return NULL;
        }
        utf8 = PyBytes_AS_STRING(replaced);
        size = PyBytes_GET_SIZE(replaced);
    }
    vmscope_text_store(slot, utf8, cut_length(utf8, (size_t)size, slot->capacity));
    Py_XDECREF(replaced);
    Py_RETURN_NONE;
}

static PyObject *
text_value(PyObject *self, void *Py_UNUSED(closure))
{
    TextSlot *slot = (TextSlot *)self;
    uint64_t *copy = PyMem_Malloc(slot->word_count * sizeof *copy);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    while (vmscope_text_copy(slot, copy) < 0) {
    }
    PyObject *value = PyUnicode_FromString((const char *)copy);
    PyMem_Free(copy);
    return value;
}

static PyObject *
text_capacity(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(((TextSlot *)self)->capacity);
}

static PyMethodDef text_methods[] = {
    {"set", text_set, METH_O,
     "Sets the text, as UTF-8; one that is too long is cut between characters, at a NUL in any case."},
    VMSCOPE_INIT_SUBCLASS,
    {NULL},
};

static PyGetSetDef text_getset[] = {
    {"value", text_value, NULL, "The text now.", NULL},
    {"capacity", text_capacity, NULL, "How many bytes of UTF-8 it holds.", NULL},
    {NULL},
};

static PyType_Slot text_type_slots[] = {
    {Py_tp_doc, "TextSlot(capacity)\n--\n\nA text of at most `capacity` bytes of UTF-8."},
    {Py_tp_new, text_new},
    {Py_tp_init, text_init},
    {Py_tp_dealloc, text_dealloc},
    {Py_tp_methods, text_methods},
    {Py_tp_getset, text_getset},
    {0, NULL},
};

static PyType_Spec text_spec = {"vmscope.native.TextSlot", sizeof(TextSlot), 0, SLOT_FLAGS, text_type_slots};

/* What is zero is not written to: in a forked child each page that is costs a copy. */
static PyObject *
reset_slots(PyObject *module, PyObject *slots)
{
    NativeState *state = vmscope_state(module);
    PyObject *slot;
    Py_ssize_t position = 0;
    if (!PyDict_Check(slots)) {
        PyErr_SetString(PyExc_TypeError, "reset_slots() takes a dict");
        return NULL;
    }
    while (PyDict_Next(slots, &position, NULL, &slot)) {
        if (PyType_IsSubtype(Py_TYPE(slot), state->long_slot)) {
            LongSlot *number = (LongSlot *)slot;
            if (atomic_load_explicit(&number->value, memory_order_relaxed) != 0) {
                atomic_store_explicit(&number->value, 0, memory_order_relaxed);
            }
            if (PyType_IsSubtype(Py_TYPE(slot), state->counter_slot) && bits_of(slot) != 0) {
                atomic_store_explicit(&((CounterSlot *)slot)->fraction, 0, memory_order_relaxed);
            }
        } else if (PyType_IsSubtype(Py_TYPE(slot), state->histogram_slot)) {
            vmscope_reset_histogram((HistogramSlot *)slot);
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef slot_functions[] = {
    {"reset_slots", reset_slots, METH_O,
     "reset_slots(slots): those among the values of a dict that are numbers, back to zero, in a forked child."},
    {NULL},
};

int
vmscope_add_slots(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    state->long_slot = vmscope_add_type(module, &long_spec, NULL);
    if (state->long_slot == NULL || PyModule_AddFunctions(module, slot_functions) < 0) {
        return -1;
    }
    state->counter_slot = vmscope_add_type(module, &counter_spec, state->long_slot);
    if (state->counter_slot == NULL) {
        return -1;
    }
    state->float_gauge_slot = vmscope_add_type(module, &float_gauge_spec, state->long_slot);
    PyTypeObject *gauge =
        state->float_gauge_slot == NULL ? NULL : vmscope_add_type(module, &gauge_spec, state->long_slot);
    if (gauge == NULL) {
        return -1;
    }
    Py_DECREF(gauge);
    state->text_slot = vmscope_add_type(module, &text_spec, NULL);
    return state->text_slot == NULL ? -1 : 0;
}
