/* What the locks of one VM share: to whom they report, and which of them threads have. */
#include "attributes.h"
#include "locks/locks.h"

#include <structmember.h>

#ifndef Py_GIL_DISABLED

#define LOCK_OF(each) ((MonitorLock *)((char *)(each) - offsetof(MonitorLock, link)))

static int
monitors_traverse(PyObject *object, visitproc visit, void *arg)
{
    Monitors *self = (Monitors *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->current);
    Py_VISIT(self->tell);
    Py_VISIT(self->made);
    Py_VISIT(self->judge);
    return 0;
}

static void
monitors_dealloc(PyObject *object)
{
    Monitors *self = (Monitors *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->current);
    Py_XDECREF(self->tell);
    Py_XDECREF(self->made);
    Py_XDECREF(self->library);
    Py_XDECREF(self->judge);
    Py_XDECREF(self->contended);
    Py_XDECREF(self->patient);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
monitors_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *current, *tell_, *made, *library;
    if (!PyArg_ParseTuple(args, "OOOU:Monitors", &current, &tell_, &made, &library)) {
        return NULL;
    }
    Monitors *self = (Monitors *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->current = Py_NewRef(current);
    self->tell = Py_NewRef(tell_);
    self->made = Py_NewRef(made);
    self->library = Py_NewRef(library);
    self->held = (Link){&self->held, &self->held};
    self->contended = PyUnicode_InternFromString("contended");
    self->patient = PyUnicode_InternFromString("patient");
    PyObject *threads = PyImport_ImportModule("_thread");
    PyObject *lock = threads == NULL ? NULL : vmscope_call_method(threads, "allocate_lock", NULL);
    self->judge = lock == NULL ? NULL : vmscope_attribute(lock, "acquire");
    Py_XDECREF(lock);
    Py_XDECREF(threads);
    if (self->judge == NULL || self->contended == NULL || self->patient == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyObject *
monitors_held(PyObject *object, PyObject *args)
{
    Monitors *self = (Monitors *)object;
    unsigned long long state;
    if (!PyArg_ParseTuple(args, "K:held", &state)) {
        return NULL;
    }
    int collecting = PyGC_Disable(); /* a collection would run the program's finalizers, which take locks */
    PyObject *found = PyList_New(0);
    for (Link *each = self->held.after; found != NULL && each != &self->held; each = each->after) {
        MonitorLock *lock = LOCK_OF(each); /* perhaps just about to be freed */
        if (lock->state == state && Py_REFCNT(lock) > 0 && PyList_Append(found, (PyObject *)lock) < 0) {
            Py_CLEAR(found);
        }
    }
    if (collecting) {
        PyGC_Enable();
    }
    return found;
}

static PyMethodDef monitors_methods[] = {
    {"held", monitors_held, METH_VARARGS,
     "held(state): the locks that the thread of this state has, the first taken first."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef monitors_members[] = {
    {"places", T_BOOL, offsetof(Monitors, places), 0, "Whether locks note the frame that takes them."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot monitors_slots[] = {
    {Py_tp_doc, "Monitors(current, tell, made, library, /)\n--\n\nWhat the locks of one VM share. current() gives the "
                "calling thread's Thread; tell(entered, thread, lock) is called before a thread waits and when it has "
                "got the lock; made() gives what a new lock keeps; `library` is the file name of threading's code."},
    {Py_tp_new, monitors_new},
    {Py_tp_dealloc, monitors_dealloc},
    {Py_tp_traverse, monitors_traverse},
    {Py_tp_methods, monitors_methods},
    {Py_tp_members, monitors_members},
    {0, NULL},
};

static PyType_Spec monitors_spec = {
    .name = "vmscope.native.Monitors",
    .basicsize = sizeof(Monitors),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = monitors_slots,
};

int
vmscope_is_monitors(PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == monitors_dealloc;
}

int
vmscope_add_monitors(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &monitors_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}

#endif
