/* Where threads wait that have been suspended: what sys.monitoring calls at each line and jump while there are any.
 *
 * In C, so that the frame that a suspended thread stands in is the program's, and others pay little. */
#include "native.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *locks;  /* dict: number of a thread state -> the lock that it waits for */
    PyObject *parked; /* set: those that wait */
    PyObject *own;    /* how the names of files begin whose code is never stopped */
    PyObject *called; /* how those begin that such code may have called: these are not stopped then either */
    PyObject *hosts;  /* how those of its own begin from which the program is called */
    PyObject *acquire;
    PyObject *release;
} SuspendGate;

static int
begins(PyObject *name, PyObject *prefix)
{
    return PyUnicode_Tailmatch(name, prefix, 0, PyUnicode_GET_LENGTH(name), -1) == 1;
}

static int
is_own(SuspendGate *self, PyObject *code)
{
    return PyCode_Check(code) && begins(((PyCodeObject *)code)->co_filename, self->own);
}

static int
is_host(SuspendGate *self, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->hosts); i++) {
        if (begins(name, PyTuple_GET_ITEM(self->hosts, i))) {
            return 1;
        }
    }
    return 0;
}

/* Whether the calling thread is in what code of vmscope's has called, maybe with a lock of its own: 1, 0. */
static int
is_called_by_own(SuspendGate *self)
{
    int is = 0, look = 1;
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame != NULL && look) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *name = code->co_filename;
        if (begins(name, self->own)) {
            is = !is_host(self, name);
            look = 0;
        } else {
            look = begins(name, self->called);
        }
        Py_DECREF(code);
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    return is;
}

/* Until the lock is free. What a signal handler of the program's raises meanwhile goes to the program. */
static int
park(SuspendGate *self, PyObject *key, PyObject *lock)
{
    if (PySet_Add(self->parked, key) < 0) {
        return -1;
    }
    PyObject *done = PyObject_CallMethodNoArgs(lock, self->acquire);
    if (done != NULL) {
        Py_SETREF(done, PyObject_CallMethodNoArgs(lock, self->release));
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int discarded = PySet_Discard(self->parked, key);
    if (discarded < 0 || type != NULL) {
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(done);
    return done == NULL || discarded < 0 ? -1 : 0;
}

static PyObject *
suspend_gate_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    SuspendGate *self = (SuspendGate *)object;
    (void)names;
    if (PyDict_GET_SIZE(self->locks) == 0 || (PyVectorcall_NARGS(flags) > 0 && is_own(self, args[0]))) {
        Py_RETURN_NONE;
    }
    PyObject *key = PyLong_FromUnsignedLongLong(PyThreadState_GetID(PyThreadState_Get()));
    if (key == NULL) {
        return NULL;
    }
    PyObject *lock;
    int held = PyDict_Contains(self->locks, key); /* a thread that suspends itself gives nothing but a code object */
    if (held < 0 || (held && PyVectorcall_NARGS(flags) > 1 && is_called_by_own(self))) {
        Py_DECREF(key);
        return held < 0 ? NULL : Py_NewRef(Py_None);
    }
    while ((lock = PyDict_GetItemWithError(self->locks, key)) != NULL) { /* it may be suspended again */
        Py_INCREF(lock);
        int parked = park(self, key, lock);
        Py_DECREF(lock);
        if (parked < 0) {
            break;
        }
    }
    Py_DECREF(key);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *
suspend_gate_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *own, *called, *hosts;
    if (!PyArg_ParseTuple(args, "UUO!", &own, &called, &PyTuple_Type, &hosts)) {
        return NULL;
    }
    SuspendGate *self = (SuspendGate *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = suspend_gate_call;
    self->own = Py_NewRef(own);
    self->called = Py_NewRef(called);
    self->hosts = Py_NewRef(hosts);
    self->locks = PyDict_New();
    self->parked = PySet_New(NULL);
    self->acquire = PyUnicode_InternFromString("acquire");
    self->release = PyUnicode_InternFromString("release");
    if (self->locks == NULL || self->parked == NULL || self->acquire == NULL || self->release == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
suspend_gate_traverse(PyObject *object, visitproc visit, void *arg)
{
    SuspendGate *self = (SuspendGate *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->locks);
    Py_VISIT(self->parked);
    return 0;
}

static void
suspend_gate_dealloc(PyObject *object)
{
    SuspendGate *self = (SuspendGate *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->locks);
    Py_XDECREF(self->parked);
    Py_XDECREF(self->own);
    Py_XDECREF(self->called);
    Py_XDECREF(self->hosts);
    Py_XDECREF(self->acquire);
    Py_XDECREF(self->release);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef suspend_gate_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(SuspendGate, vectorcall), READONLY, NULL},
    {"locks", T_OBJECT, offsetof(SuspendGate, locks), READONLY,
     "The lock of each thread that is to wait, by its state."},
    {"parked", T_OBJECT, offsetof(SuspendGate, parked), READONLY, "The states of those that wait."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot suspend_gate_slots[] = {
    {Py_tp_doc,
     "SuspendGate(own, called, hosts, /)\n--\n\nCalled as sys.monitoring calls, with a code object first: a thread for "
     "whose state there is a lock waits until the lock is free, other than in code whose file name begins "
     "with `own`, and in what that calls of files that begin with `called`, except files of `hosts`."},
    {Py_tp_new, suspend_gate_new},
    {Py_tp_dealloc, suspend_gate_dealloc},
    {Py_tp_traverse, suspend_gate_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, suspend_gate_members},
    {0, NULL},
};

static PyType_Spec suspend_gate_spec = {
    .name = "vmscope.native.SuspendGate",
    .basicsize = sizeof(SuspendGate),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = suspend_gate_slots,
};

int
vmscope_add_suspend_gate(PyObject *module)
{
#ifdef Py_GIL_DISABLED /* the twin, as for the states */
    (void)suspend_gate_spec;
    (void)module;
    return 0;
#else
    PyTypeObject *type = vmscope_add_type(module, &suspend_gate_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
#endif
}
