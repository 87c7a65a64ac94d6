/* Locks of the tool interface's, and what may not come while a thread has one: a native agent's callback of the
 * collector, or of an object that is freed, which waits for another thread, and that thread for the lock.
 *
 * In C, so that what a signal's handler raises leaves no lock taken and no thread held. */
#include "attributes.h"
#include "native.h"
#ifndef Py_GIL_DISABLED
#include "jni/interface.h"

typedef struct {
    PyObject_HEAD PyObject *lock; /* an RLock */
    PyObject *acquire;
    PyObject *release;
} DeferringLock;

static PyObject *
deferring_lock_acquire(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    DeferringLock *self = (DeferringLock *)object;
    if (jni_hold() < 0) {
        return NULL;
    }
    PyObject *taken = PyObject_CallMethodNoArgs(self->lock, self->acquire);
    if (taken == NULL) { /* what a handler raised while this thread waited */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        jni_let_go();
        PyErr_Restore(type, value, trace);
    }
    return taken;
}

static PyObject *
deferring_lock_release(PyObject *object, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    DeferringLock *self = (DeferringLock *)object;
    PyObject *done = PyObject_CallMethodNoArgs(self->lock, self->release);
    if (done != NULL) {
        jni_let_go();
    }
    return done;
}

static PyObject *
deferring_lock_is_owned(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return vmscope_call_method(((DeferringLock *)object)->lock, "_is_owned", NULL);
}

#ifdef VMSCOPE_WITH_IS_INTERRUPTED
/* What `__exit__` is there: a `with` has it from before `__enter__` is called, and drops it when it is left. So one that
 * goes without having been called, of a lock that was taken meanwhile, gives it back. */
typedef struct {
    PyObject_HEAD DeferringLock *lock;
    Py_ssize_t taken; /* how often this thread had it before */
    int called;
} Exit;

/* How often this thread has it. */
static Py_ssize_t
count_taken(DeferringLock *self)
{
    PyObject *count = vmscope_call_method(self->lock, "_recursion_count", NULL);
    Py_ssize_t taken = count == NULL ? -1 : PyLong_AsSsize_t(count);
    Py_XDECREF(count);
    return taken;
}

static PyObject *
deferring_lock_exit(PyObject *object, void *Py_UNUSED(closure))
{
    NativeState *state = vmscope_state_of(object);
    Exit *made = state == NULL ? NULL : PyObject_New(Exit, state->deferring_lock_exit);
    if (made == NULL) {
        return NULL;
    }
    made->lock = (DeferringLock *)Py_NewRef(object);
    made->called = 0;
    made->taken = count_taken(made->lock);
    if (made->taken < 0) {
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

static PyObject *
exit_call(PyObject *object, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(named))
{
    Exit *self = (Exit *)object;
    self->called = 1;
    return deferring_lock_release((PyObject *)self->lock, NULL, 0);
}

static void
exit_dealloc(PyObject *object)
{
    Exit *self = (Exit *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (!self->called && self->taken >= 0) {
        PyObject *raised = PyErr_GetRaisedException();
        PyObject *done =
            count_taken(self->lock) > self->taken ? deferring_lock_release((PyObject *)self->lock, NULL, 0) : NULL;
        Py_XDECREF(done);
        PyErr_SetRaisedException(raised);
    }
    Py_DECREF(self->lock);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot exit_slots[] = {
    {Py_tp_call, exit_call},
    {Py_tp_dealloc, exit_dealloc},
    {0, NULL},
};

static PyType_Spec exit_spec = {
    .name = "vmscope.native.QuietLockExit",
    .basicsize = sizeof(Exit),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = exit_slots,
};

static PyGetSetDef deferring_lock_getset[] = {
    {"__exit__", deferring_lock_exit, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
#endif

static PyObject *
deferring_lock_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    if (!PyArg_ParseTuple(args, "")) {
        return NULL;
    }
    DeferringLock *self = (DeferringLock *)type->tp_alloc(type, 0);
    PyObject *module = self == NULL ? NULL : PyImport_ImportModule("_thread");
    if (module == NULL) {
        Py_XDECREF(self);
        return NULL;
    }
    self->lock = vmscope_call_method(module, "RLock", NULL);
    self->acquire = PyUnicode_InternFromString("acquire");
    self->release = PyUnicode_InternFromString("release");
    Py_DECREF(module);
    if (self->lock == NULL || self->acquire == NULL || self->release == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
deferring_lock_dealloc(PyObject *object)
{
    DeferringLock *self = (DeferringLock *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->lock);
    Py_XDECREF(self->acquire);
    Py_XDECREF(self->release);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef deferring_lock_methods[] = {
    {"acquire", deferring_lock_acquire, METH_NOARGS,
     "acquire($self, /)\n--\n\nWaits for it; its owner has it once more."},
    {"release", (PyCFunction)(void (*)(void))deferring_lock_release, METH_FASTCALL, "release($self, /)\n--\n\nOnce."},
    {"__enter__", deferring_lock_acquire, METH_NOARGS, NULL},
#ifndef VMSCOPE_WITH_IS_INTERRUPTED
    {"__exit__", (PyCFunction)(void (*)(void))deferring_lock_release, METH_FASTCALL, NULL},
#endif
    {"_is_owned", deferring_lock_is_owned, METH_NOARGS, "_is_owned($self, /)\n--\n\nWhether this thread has it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot deferring_lock_slots[] = {
    {Py_tp_doc, "DeferringLock()\n--\n\nA lock that its owner may take again. While a thread has one, native agents' "
                "callbacks of the collector and of freed objects are postponed on it."},
    {Py_tp_new, deferring_lock_new},
    {Py_tp_dealloc, deferring_lock_dealloc},
    {Py_tp_methods, deferring_lock_methods},
#ifdef VMSCOPE_WITH_IS_INTERRUPTED
    {Py_tp_getset, deferring_lock_getset},
#endif
    {0, NULL},
};

static PyType_Spec deferring_lock_spec = {
    .name = "vmscope.native.DeferringLock",
    .basicsize = sizeof(DeferringLock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = deferring_lock_slots,
};
#endif

int
vmscope_add_deferring_lock(PyObject *module)
{
#ifdef Py_GIL_DISABLED /* the twin: there are no native agents */
    (void)module;
    return 0;
#else
#ifdef VMSCOPE_WITH_IS_INTERRUPTED
    NativeState *state = vmscope_state(module);
    state->deferring_lock_exit = (PyTypeObject *)PyType_FromModuleAndSpec(module, &exit_spec, NULL);
    if (state->deferring_lock_exit == NULL) {
        return -1;
    }
#endif
    PyTypeObject *type = vmscope_add_type(module, &deferring_lock_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
#endif
}
