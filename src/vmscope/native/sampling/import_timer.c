/* Time that is spent importing: a callable that stands in for importlib's _find_and_load, which every import of a
 * module that is not loaded yet goes through, and gives on whatever that does. */
#include "attributes.h"
#include "threads/thread.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function;
    LongSlot *slot;
} ImportTimer;

/* Imports under way on this thread, one within the other. */
static VMSCOPE_THREAD_LOCAL int depth;

static PyObject *
timed_call(PyObject *object, PyObject *const *args, size_t nargs, PyObject *names)
{
    ImportTimer *self = (ImportTimer *)object;
    if (depth > 0) { /* the outermost one counts for all */
        return PyObject_Vectorcall(self->function, args, nargs, names);
    }
    int64_t start = vmscope_now();
    Py_INCREF(object); /* the import may end vmscope */
    depth++;
    PyObject *result = PyObject_Vectorcall(self->function, args, nargs, names);
    depth--;
    atomic_fetch_add_explicit(&self->slot->value, vmscope_now() - start, memory_order_relaxed);
    Py_DECREF(object);
    return result;
}

static PyObject *
timer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "slot", NULL};
    PyObject *function, *slot;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:ImportTimer", names, &function, &slot)) {
        return NULL;
    }
    ImportTimer *self = (ImportTimer *)type->tp_alloc(type, 0);
    NativeState *state = self == NULL ? NULL : vmscope_state_of((PyObject *)self);
    if (state == NULL || !PyCallable_Check(function) || !PyObject_TypeCheck(slot, state->long_slot)) {
        if (state != NULL) {
            PyErr_SetString(PyExc_TypeError, "an ImportTimer takes a function and a LongSlot");
        }
        Py_XDECREF(self);
        return NULL;
    }
    self->call = timed_call;
    self->function = Py_NewRef(function);
    self->slot = (LongSlot *)Py_NewRef(slot);
    return (PyObject *)self;
}

static int
timer_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((ImportTimer *)object)->function);
    Py_VISIT(((ImportTimer *)object)->slot);
    return 0;
}

static void
timer_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((ImportTimer *)object)->function);
    Py_XDECREF(((ImportTimer *)object)->slot);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef timer_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ImportTimer, call), READONLY, NULL},
    {NULL},
};

static PyType_Slot timer_slots[] = {
    {Py_tp_doc,
     "ImportTimer(function, slot)\n--\n\nCalls the function; ns spent in it, on any thread, go to the slot."},
    {Py_tp_new, timer_new},
    {Py_tp_dealloc, timer_dealloc},
    {Py_tp_traverse, timer_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, timer_members},
    {0, NULL},
};

static PyType_Spec timer_spec = {"vmscope.native.ImportTimer", sizeof(ImportTimer), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, timer_slots};

int
vmscope_is_importing(void)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = PyUnicode_FromString("_frozen_importlib");
    PyObject *module = name == NULL ? NULL : PyImport_GetModule(name);
    PyObject *locks = module == NULL ? NULL : vmscope_attribute(module, "_module_locks");
    int importing = locks != NULL && PyDict_Check(locks) && PyDict_GET_SIZE(locks) > 0;
    Py_XDECREF(locks);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    PyGILState_Release(gil);
    return importing;
}

int
vmscope_add_import_timer(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &timer_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
