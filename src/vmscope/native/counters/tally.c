/* Counts events by kind for hooks of the interpreter: sys.monitoring's and the audit hook.
 *
 * A hook in Python needs a frame, which near the recursion limit there may not be: then it would raise into what the
 * program is doing. This one needs Python only for a kind that it has not met. */
#include "native.h"

typedef struct {
    PyObject_HEAD LongSlot *total, *other;
    PyObject *make;  /* kind -> LongSlot */
    PyObject *kinds; /* dict of those made */
    Py_ssize_t limit;
    _Atomic char on;
} Tally;

/* Making a slot may itself be an event. */
static _Thread_local int making;

static int
is_on(Tally *self)
{
    return atomic_load_explicit(&self->on, memory_order_relaxed);
}

static void
add_one(LongSlot *slot)
{
    atomic_fetch_add_explicit(&slot->value, 1, memory_order_relaxed);
}

/* The slot of a kind that is new, or NULL for none. -1 with what a signal handler of the program's raised meanwhile. */
static int
make_slot(Tally *self, PyObject *kind, LongSlot **out)
{
    *out = NULL;
    if (making || PyDict_GET_SIZE(self->kinds) >= self->limit) {
        return 0;
    }
    making = 1;
    PyObject *made = PyObject_CallOneArg(self->make, kind);
    making = 0;
    NativeState *state = made == NULL ? NULL : vmscope_state_of((PyObject *)self);
    if (state != NULL && PyObject_TypeCheck(made, state->long_slot) && PyDict_SetItem(self->kinds, kind, made) == 0) {
        *out = (LongSlot *)made; /* which the dict keeps */
    }
    Py_XDECREF(made);
    if (*out == NULL && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_RecursionError) && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
            return -1;
        }
        PyErr_Clear(); /* there will be another moment */
    }
    return 0;
}

/* Takes the reference to `kind`, which may be NULL with an exception set. */
static PyObject *
count(Tally *self, PyObject *kind)
{
    add_one(self->total);
    LongSlot *slot = NULL;
    if (kind != NULL) {
        slot = (LongSlot *)PyDict_GetItemWithError(self->kinds, kind);
        if (slot == NULL && !PyErr_Occurred() && make_slot(self, kind, &slot) < 0) {
            add_one(self->other);
            Py_DECREF(kind);
            return NULL;
        }
        Py_DECREF(kind);
    }
    add_one(slot == NULL ? self->other : slot);
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *
tally_count(PyObject *object, PyObject *kind)
{
    Tally *self = (Tally *)object;
    if (!is_on(self) || !PyUnicode_Check(kind)) {
        Py_RETURN_NONE;
    }
    return count(self, PyUnicode_FromObject(kind));
}

static PyObject *
tally_raised(PyObject *object, PyObject *const *arguments, Py_ssize_t number)
{
    Tally *self = (Tally *)object;
    PyObject *error = number == 3 ? arguments[2] : NULL;
    if (!is_on(self) || error == NULL || !PyExceptionInstance_Check(error)) {
        Py_RETURN_NONE;
    }
    PyObject *trace = PyException_GetTraceback(error);
    int first = trace == NULL || ((PyTracebackObject *)trace)->tb_next == NULL; /* the event comes once a frame */
    Py_XDECREF(trace);
    if (!first) {
        Py_RETURN_NONE;
    }
    PyObject *name = PyType_GetName(Py_TYPE(error));
    PyObject *kind = name == NULL ? NULL : PyUnicode_FromObject(name);
    Py_XDECREF(name);
    return count(self, kind);
}

static PyObject *
tally_audited(PyObject *object, PyObject *const *arguments, Py_ssize_t number)
{
    Tally *self = (Tally *)object;
    PyObject *event = number == 2 ? arguments[0] : NULL;
    if (!is_on(self) || event == NULL || !PyUnicode_Check(event)) {
        Py_RETURN_NONE;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(event), dot = PyUnicode_FindChar(event, '.', 0, length, 1);
    return count(self, PyUnicode_Substring(event, 0, dot < 0 ? length : dot));
}

static PyObject *
tally_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"total", "other", "make", "limit", NULL};
    PyObject *total, *other, *make;
    Py_ssize_t limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOn:Tally", names, &total, &other, &make, &limit)) {
        return NULL;
    }
    Tally *self = (Tally *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    if (state == NULL || (self->kinds = PyDict_New()) == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    if (!PyObject_TypeCheck(total, state->long_slot) || !PyObject_TypeCheck(other, state->long_slot)) {
        PyErr_SetString(PyExc_TypeError, "a tally takes a LongSlot for all events and one for other kinds");
        Py_DECREF(self);
        return NULL;
    }
    self->total = (LongSlot *)Py_NewRef(total);
    self->other = (LongSlot *)Py_NewRef(other);
    self->make = Py_NewRef(make);
    self->limit = limit;
    atomic_init(&self->on, 1);
    return (PyObject *)self;
}

static int
tally_traverse(PyObject *object, visitproc visit, void *arg)
{
    Tally *self = (Tally *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->total);
    Py_VISIT(self->other);
    Py_VISIT(self->make);
    Py_VISIT(self->kinds);
    return 0;
}

static void
tally_dealloc(PyObject *object)
{
    Tally *self = (Tally *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->total);
    Py_XDECREF(self->other);
    Py_XDECREF(self->make);
    Py_XDECREF(self->kinds);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
tally_get_on(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(is_on((Tally *)self));
}

static int
tally_set_on(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "a tally is on or off");
        return -1;
    }
    int on = PyObject_IsTrue(value);
    if (on >= 0) {
        atomic_store_explicit(&((Tally *)self)->on, (char)on, memory_order_relaxed);
    }
    return on < 0 ? -1 : 0;
}

static PyMethodDef tally_methods[] = {
    {"count", tally_count, METH_O, "count(kind): one event of this kind."},
    {"raised", (PyCFunction)(void (*)(void))tally_raised, METH_FASTCALL,
     "raised(code, offset, exception): a callback for sys.monitoring's RAISE; an exception counts where it is raised."},
    {"audited", (PyCFunction)(void (*)(void))tally_audited, METH_FASTCALL,
     "audited(event, arguments): an audit hook; the kind is the event up to its first dot."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tally_fields[] = {
    {"on", tally_get_on, tally_set_on, "Whether it counts.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tally_type_slots[] = {
    {Py_tp_doc,
     "Tally(total, other, make, limit)\n--\n\nCounts events in total, and those of each kind in the slot that "
     "make(kind) gives: for `limit` kinds, and other for the rest."},
    {Py_tp_new, tally_new},
    {Py_tp_dealloc, tally_dealloc},
    {Py_tp_traverse, tally_traverse},
    {Py_tp_methods, tally_methods},
    {Py_tp_getset, tally_fields},
    {0, NULL},
};

static PyType_Spec tally_spec = {"vmscope.native.Tally", sizeof(Tally), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                 tally_type_slots};

int
vmscope_add_tally(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &tally_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
