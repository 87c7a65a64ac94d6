/* Locks that know who has them and who waits: what threading.Lock and threading.RLock make where an agent has asked.
 *
 * One that is free is taken, and any is given back, without a word of Python: what a signal handler raises cannot come
 * between a lock and the `with` that it is for. Python is called where a thread has to wait: before it does, and when it
 * has got the lock. What that raises goes to the program, and who asked for the lock does not get it.
 *
 * With the GIL held nothing here is seen half done. */
#include "locks/locks.h"

#include "attributes.h"
#include "events/dispatch.h"
#include "threads/thread.h"

#ifdef Py_GIL_DISABLED /* the twin, as for the states */

int
vmscope_add_locks(PyObject *Py_UNUSED(module))
{
    return 0;
}

#else

#define FOREVER ((PY_TIMEOUT_T) - 1)

/* -- who has it ---------------------------------------------------------------------------------------------------- */

typedef struct {
    PyFrameObject *frame;
    PyObject *code; /* a reference */
} Place;

/* The frame that takes a lock, where that is wanted: none of threading's own, as those that enter a condition. On 3.11
 * a collection may come with it, so that it is found before the lock is taken. */
static Place
find_place(Monitors *monitors)
{
    Place place = {NULL, NULL};
    if (!monitors->places) {
        return place;
    }
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef(PyEval_GetFrame());
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (code->co_filename != monitors->library) {
            place = (Place){frame, (PyObject *)code};
            break;
        }
        Py_DECREF(code);
        Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    if (frame == NULL) {
        PyErr_Clear(); /* no memory for a frame: it goes without */
    }
    Py_XDECREF(frame);
    return place;
}

static void
note_taken(MonitorLock *self, Place place, size_t times)
{
    self->ident = PyThread_get_thread_ident();
    self->state = PyThreadState_GetID(PyThreadState_Get());
    self->frame = place.frame;
    self->code = place.code;
    self->entered = times;
    Link *head = &self->monitors->held;
    self->link = (Link){head->before, head};
    head->before->after = &self->link;
    head->before = &self->link;
}

/* What it kept of its owner; gives back the reference to the code, to be let go of when the lock is free. */
static PyObject *
note_left(MonitorLock *self)
{
    self->link.before->after = self->link.after;
    self->link.after->before = self->link.before;
    PyObject *code = self->code;
    self->entered = 0;
    self->ident = 0;
    self->state = 0;
    self->frame = NULL;
    self->code = NULL;
    return code;
}

static void
give_back(MonitorLock *self)
{
    PyObject *code = note_left(self);
    PyThread_release_lock(self->lock);
    Py_XDECREF(code);
}

static int
is_owned(MonitorLock *self)
{
    return self->entered != 0 && self->ident == PyThread_get_thread_ident();
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

/* As CPython's own locks wait: 1 with the lock, 0 when the time is over, -1 with what a signal handler raised. */
static int
block(PyThread_type_lock lock, PY_TIMEOUT_T limit)
{
    int64_t end = limit == FOREVER ? 0 : vmscope_now() + (int64_t)limit * 1000;
    for (;;) {
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(lock, limit, 1);
        Py_END_ALLOW_THREADS
        if (status != PY_LOCK_INTR) {
            return status == PY_LOCK_ACQUIRED;
        }
        if (Py_MakePendingCalls() < 0) {
            return -1;
        }
        if (limit != FOREVER) {
            int64_t left = end - vmscope_now();
            if (left < 0) {
                return 0;
            }
            limit = (PY_TIMEOUT_T)(left / 1000);
        }
    }
}

static int
tell(MonitorLock *self, PyObject *entered, PyObject *thread)
{
    PyObject *done = PyObject_CallFunctionObjArgs(self->monitors->tell, entered, thread, self, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int
add_waiter(MonitorLock *self, PyObject *thread)
{
    if (self->waiters == NULL && (self->waiters = PyList_New(0)) == NULL) {
        return -1;
    }
    return PyList_Append(self->waiters, thread);
}

static void
remove_waiter(MonitorLock *self, PyObject *thread)
{
    Py_ssize_t count = self->waiters == NULL ? 0 : PyList_GET_SIZE(self->waiters);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyList_GET_ITEM(self->waiters, i) == thread) {
            if (PyList_SetSlice(self->waiters, i, i + 1, NULL) < 0) {
                PyErr_Clear();
            }
            return;
        }
    }
}

/* What the thread waits for, in place of what there was: a callback that waits is within another wait. */
static int
set_wait(Monitors *monitors, PyObject *thread, PyObject *contended, PyObject *patient)
{
    return PyObject_SetAttr(thread, monitors->contended, contended) < 0 ||
                   PyObject_SetAttr(thread, monitors->patient, patient) < 0
               ? -1
               : 0;
}

/* Waits for it, and notes meanwhile that it does: 1 with the lock, 0 when the time is over, -1 with an exception. */
static int
wait_as(MonitorLock *self, PyObject *thread, PY_TIMEOUT_T limit, Place *place)
{
    Monitors *monitors = self->monitors;
    PyObject *contended = PyObject_GetAttr(thread, monitors->contended);
    PyObject *patient = contended == NULL ? NULL : PyObject_GetAttr(thread, monitors->patient);
    int got = -1;
    if (patient != NULL && add_waiter(self, thread) == 0) {
        if (set_wait(monitors, thread, (PyObject *)self, limit == FOREVER ? Py_True : Py_False) == 0 &&
            tell(self, Py_False, thread) == 0) {
            got = block(self->lock, limit);
        }
        if (got > 0) {
            note_taken(self, *place, 1);
            *place = (Place){NULL, NULL};
        }
        PyObject *error = raised();
        remove_waiter(self, thread);
        if (set_wait(monitors, thread, contended, patient) < 0) {
            PyErr_Clear();
        }
        if (error != NULL) {
            raise_again(error);
        }
    }
    Py_XDECREF(contended);
    Py_XDECREF(patient);
    if (got > 0 && tell(self, Py_True, thread) < 0) {
        if (is_owned(self)) { /* a callback may have given it back */
            give_back(self);
        }
        return -1;
    }
    return got;
}

/* 1 with the lock, 0 without it after this many microseconds, -1 with an exception. */
static int
take(MonitorLock *self, PY_TIMEOUT_T limit)
{
    Place place = find_place(self->monitors);
    int got = PyThread_acquire_lock(self->lock, NOWAIT_LOCK) == PY_LOCK_ACQUIRED;
    if (got) {
        note_taken(self, place, 1);
        return 1;
    }
    if (limit != 0) {
        PyObject *thread = PyObject_CallNoArgs(self->monitors->current);
        got = thread == NULL ? -1 : wait_as(self, thread, limit, &place);
        Py_XDECREF(thread);
    }
    Py_XDECREF(place.code);
    return got;
}

static PyObject *
answer(int got)
{
    return got < 0 ? NULL : PyBool_FromLong(got);
}

/* -- the lock ------------------------------------------------------------------------------------------------------ */

/* How long `blocking` and `timeout` allow to wait, in microseconds; 0 with what CPython's own lock has against them. */
static int
read_limit(Monitors *monitors, PyObject *const *args, Py_ssize_t count, PyObject *names, PY_TIMEOUT_T *limit)
{
    *limit = FOREVER;
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (count + named == 0) {
        return 1;
    }
    PyObject *given[2] = {count > 0 ? args[0] : NULL, count > 1 ? args[1] : NULL};
    int right = count <= 2;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int at = PyUnicode_CompareWithASCIIString(name, "timeout") == 0;
        right = right && given[at] == NULL && (at || PyUnicode_CompareWithASCIIString(name, "blocking") == 0);
        given[at] = args[count + i];
    }
    int blocking = given[0] == NULL ? 1 : PyObject_IsTrue(given[0]);
    double timeout = -1;
    if (given[1] != NULL) {
        timeout = PyFloat_Check(given[1]) ? PyFloat_AS_DOUBLE(given[1]) : (double)PyLong_AsLongLong(given[1]);
    }
    if (timeout != -1) {
        double wanted = timeout * 1e6;
        right = right && blocking && timeout >= 0 && wanted < (double)PY_TIMEOUT_MAX;
        *limit = right ? (PY_TIMEOUT_T)wanted : 0;
        *limit += (double)*limit < wanted;
    } else if (!blocking) {
        *limit = 0;
    }
    if (right && blocking >= 0 && !PyErr_Occurred()) {
        return 1;
    }
    PyErr_Clear();
    PyObject *accepted = PyObject_Vectorcall(monitors->judge, args, (size_t)count, names);
    if (accepted != NULL) {
        Py_DECREF(accepted);
        PyErr_SetString(PyExc_ValueError, "acquire() takes blocking and timeout");
    }
    return 0;
}

static PyObject *
lock_acquire(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    MonitorLock *self = (MonitorLock *)object;
    PY_TIMEOUT_T limit;
    return read_limit(self->monitors, args, count, names, &limit) ? answer(take(self, limit)) : NULL;
}

static PyObject *
lock_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return answer(take((MonitorLock *)self, FOREVER));
}

static PyObject *
lock_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    MonitorLock *self = (MonitorLock *)object;
    if (self->entered == 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return NULL;
    }
    give_back(self);
    Py_RETURN_NONE;
}

static PyObject *
lock_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return lock_release(self, NULL);
}

static PyObject *
lock_locked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(((MonitorLock *)self)->entered != 0);
}

/* In a forked child: the lock that there was is not freed, as CPython's is not. */
static PyObject *
lock_reinit(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    MonitorLock *self = (MonitorLock *)object;
    PyThread_type_lock lock = PyThread_allocate_lock();
    if (lock == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *code = self->entered == 0 ? NULL : note_left(self);
    self->lock = lock;
    Py_CLEAR(self->waiters);
    Py_XDECREF(code);
    Py_RETURN_NONE;
}

static PyObject *
lock_taken_in(PyObject *object, PyObject *frame)
{
    MonitorLock *self = (MonitorLock *)object;
    if (!PyFrame_Check(frame)) {
        PyErr_SetString(PyExc_TypeError, "a lock is taken in a frame");
        return NULL;
    }
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
    Py_DECREF(code);
    return PyBool_FromLong((PyObject *)self->frame == frame && self->code == (PyObject *)code);
}

static PyObject *
lock_repr(PyObject *object)
{
    MonitorLock *self = (MonitorLock *)object;
    return PyUnicode_FromFormat("<%s %s object at %p>", self->entered != 0 ? "locked" : "unlocked",
                                Py_TYPE(object)->tp_name, object);
}

static PyObject *
lock_waiters(PyObject *object, void *Py_UNUSED(closure))
{
    PyObject *waiters = ((MonitorLock *)object)->waiters;
    return waiters == NULL ? PyList_New(0) : PyList_GetSlice(waiters, 0, PyList_GET_SIZE(waiters));
}

static PyObject *
lock_entered(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(((MonitorLock *)self)->entered);
}

static PyObject *
lock_owner(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(((MonitorLock *)self)->state);
}

/* -- the lock that its owner may take again ------------------------------------------------------------------------ */

static int
take_again(MonitorLock *self, PY_TIMEOUT_T limit)
{
    if (!is_owned(self)) {
        return take(self, limit);
    }
    if (self->entered == SIZE_MAX) {
        PyErr_SetString(PyExc_OverflowError, "Internal lock count overflowed");
        return -1;
    }
    self->entered++;
    return 1;
}

static PyObject *
rlock_acquire(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    MonitorLock *self = (MonitorLock *)object;
    PY_TIMEOUT_T limit;
    return read_limit(self->monitors, args, count, names, &limit) ? answer(take_again(self, limit)) : NULL;
}

static PyObject *
rlock_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return answer(take_again((MonitorLock *)self, FOREVER));
}

static PyObject *
refuse(void)
{
    PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
    return NULL;
}

static PyObject *
rlock_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    MonitorLock *self = (MonitorLock *)object;
    if (!is_owned(self)) {
        return refuse();
    }
    if (self->entered > 1) {
        self->entered--;
    } else {
        give_back(self);
    }
    Py_RETURN_NONE;
}

static PyObject *
rlock_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return rlock_release(self, NULL);
}

/* What threading.Condition asks of a lock that can be taken more than once: how often, by whom. */
static PyObject *
rlock_release_save(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    MonitorLock *self = (MonitorLock *)object;
    if (self->entered == 0) {
        return refuse();
    }
    PyObject *saved = Py_BuildValue("(nk)", (Py_ssize_t)self->entered, self->ident);
    if (saved != NULL) {
        give_back(self);
    }
    return saved;
}

/* As CPython's, a signal does not end the wait. */
static PyObject *
rlock_acquire_restore(PyObject *object, PyObject *saved)
{
    MonitorLock *self = (MonitorLock *)object;
    Py_ssize_t times;
    unsigned long ident;
    if (!PyTuple_Check(saved)) {
        PyErr_SetString(PyExc_TypeError, "_acquire_restore() takes what _release_save() gave");
        return NULL;
    }
    if (!PyArg_ParseTuple(saved, "nk:_acquire_restore", &times, &ident)) {
        return NULL;
    }
    if (times < 1) {
        PyErr_SetString(PyExc_ValueError, "a lock is taken once or more");
        return NULL;
    }
    Place place = find_place(self->monitors);
    if (PyThread_acquire_lock(self->lock, NOWAIT_LOCK) != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    note_taken(self, place, (size_t)times);
    self->ident = ident;
    Py_RETURN_NONE;
}

static PyObject *
rlock_is_owned(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(is_owned((MonitorLock *)self));
}

static PyObject *
rlock_recursion_count(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    MonitorLock *self = (MonitorLock *)object;
    return PyLong_FromSize_t(is_owned(self) ? self->entered : 0);
}

/* -- the types ----------------------------------------------------------------------------------------------------- */

/* The shared part is the class's: its attribute `monitors`. */
static PyObject *
lock_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(named))
{
    PyObject *monitors = vmscope_attribute((PyObject *)type, "monitors");
    if (monitors == NULL) {
        return NULL;
    }
    if (!vmscope_is_monitors(monitors)) {
        PyErr_SetString(PyExc_TypeError, "the class of a lock has its Monitors");
        Py_DECREF(monitors);
        return NULL;
    }
    PyObject *made = PyObject_CallNoArgs(((Monitors *)monitors)->made);
    MonitorLock *self = made == NULL ? NULL : (MonitorLock *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_XDECREF(made);
        Py_DECREF(monitors);
        return NULL;
    }
    self->monitors = (Monitors *)monitors;
    self->made = made;
    self->lock = PyThread_allocate_lock();
    if (self->lock == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int
lock_traverse(PyObject *object, visitproc visit, void *arg)
{
    MonitorLock *self = (MonitorLock *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->monitors);
    Py_VISIT(self->made);
    Py_VISIT(self->waiters);
    Py_VISIT(self->code);
    return 0;
}

static void
lock_dealloc(PyObject *object)
{
    MonitorLock *self = (MonitorLock *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->entered != 0) {
        give_back(self); /* one that is taken cannot be freed */
    }
    if (self->weak != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    if (self->lock != NULL) {
        PyThread_free_lock(self->lock);
    }
    Py_XDECREF(self->waiters);
    Py_XDECREF(self->made);
    Py_XDECREF(self->monitors);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))lock_acquire, METH_FASTCALL | METH_KEYWORDS,
     "acquire(blocking=True, timeout=-1): as threading.Lock's."},
    {"release", lock_release, METH_NOARGS, "As threading.Lock's."},
    {"locked", lock_locked, METH_NOARGS, "Whether a thread has it."},
    {"__enter__", lock_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))lock_exit, METH_FASTCALL, NULL},
    {"_at_fork_reinit", lock_reinit, METH_NOARGS, NULL},
    {"taken_in", lock_taken_in, METH_O, "taken_in(frame): whether it was taken there by who has it."},
    VMSCOPE_INIT_SUBCLASS,
    {NULL, NULL, 0, NULL},
};

static PyMethodDef rlock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))rlock_acquire, METH_FASTCALL | METH_KEYWORDS,
     "acquire(blocking=True, timeout=-1): as threading.RLock's."},
    {"release", rlock_release, METH_NOARGS, "As threading.RLock's."},
    {"__enter__", rlock_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))rlock_exit, METH_FASTCALL, NULL},
    {"_release_save", rlock_release_save, METH_NOARGS, NULL},
    {"_acquire_restore", rlock_acquire_restore, METH_O, NULL},
    {"_is_owned", rlock_is_owned, METH_NOARGS, NULL},
    {"_recursion_count", rlock_recursion_count, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef lock_members[] = {
    {"made", T_OBJECT_EX, offsetof(MonitorLock, made), READONLY, "What its Monitors' made() gave."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(MonitorLock, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef lock_fields[] = {
    {"owner", lock_owner, NULL, "The number of the thread state that has it; 0: it is free.", NULL},
    {"entered", lock_entered, NULL, "How often its owner has it.", NULL},
    {"waiters", lock_waiters, NULL, "The Threads that wait to get it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot lock_slots[] = {
    {Py_tp_doc, "A threading.Lock that knows who has it. Its class has an attribute `monitors`."},
    {Py_tp_new, lock_new},
    {Py_tp_dealloc, lock_dealloc},
    {Py_tp_traverse, lock_traverse},
    {Py_tp_repr, lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_members, lock_members},
    {Py_tp_getset, lock_fields},
    {0, NULL},
};

static PyType_Spec lock_spec = {
    .name = "vmscope.native.MonitorLock",
    .basicsize = sizeof(MonitorLock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = lock_slots,
};

static PyType_Slot rlock_slots[] = {
    {Py_tp_doc, "A threading.RLock that knows who has it. Its class has an attribute `monitors`."},
    {Py_tp_traverse, lock_traverse},
    {Py_tp_methods, rlock_methods},
    {0, NULL},
};

static PyType_Spec rlock_spec = {
    .name = "vmscope.native.MonitorRLock",
    .basicsize = sizeof(MonitorLock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = rlock_slots,
};

int
vmscope_add_locks(PyObject *module)
{
    PyTypeObject *lock = vmscope_add_monitors(module) < 0 ? NULL : vmscope_add_type(module, &lock_spec, NULL);
    PyTypeObject *rlock = lock == NULL ? NULL : vmscope_add_type(module, &rlock_spec, lock);
    Py_XDECREF(lock);
    Py_XDECREF(rlock);
    return rlock == NULL ? -1 : 0;
}

#endif
