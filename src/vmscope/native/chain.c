/* Several handlers of one event of sys.monitoring, and a look at a frame's variables. */
#include "dispatch.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *handlers; /* a tuple */
    int flags;          /* of a code object, one of which it has to have; 0: any code */
    Own own;
} Chain;

/* Calls each handler; gives the last one's answer. What they raise stays here, but for a KeyboardInterrupt. */
static PyObject *
chain_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Chain *self = (Chain *)object;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (names != NULL || given < 1 || given > MOST) {
        PyErr_SetString(PyExc_TypeError, "a chain is called as sys.monitoring calls");
        return NULL;
    }
    if (self->flags != 0 && !(PyCode_Check(args[0]) && ((PyCodeObject *)args[0])->co_flags & self->flags)) {
        Py_RETURN_NONE;
    }
    if (is_own(&self->own, args[0])) {
        Py_RETURN_NONE;
    }
    PyObject *interrupt = NULL, *answer = Py_NewRef(Py_None);
    Py_INCREF(object); /* sys.monitoring holds no reference meanwhile, and a handler may register another chain */
    PyThreadState *state = PyThreadState_Get();
    int lent = lend_room(state);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->handlers); i++) {
        PyObject *given_back = PyObject_Vectorcall(PyTuple_GET_ITEM(self->handlers, i), args, (size_t)given, NULL);
        if (given_back != NULL) {
            Py_SETREF(answer, given_back);
            continue;
        }
        Py_SETREF(answer, Py_NewRef(Py_None));
        PyObject *error = raised();
        if (!PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) {
            raise_again(error);
            PyErr_WriteUnraisable(object);
        }
        else if (interrupt == NULL) {
            interrupt = error;
        }
        else {
            Py_DECREF(error);
        }
    }
    take_room_back(state, lent);
    Py_DECREF(object);
    if (let_go(interrupt) < 0) {
        Py_CLEAR(answer);
    }
    return answer;
}

static PyObject *
chain_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *own, *handlers;
    int flags = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!U|i:Chain", names, &PyTuple_Type, &handlers, &own, &flags)) {
        return NULL;
    }
    Chain *self = (Chain *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = chain_call;
    self->handlers = Py_NewRef(handlers);
    self->flags = flags;
    if (own_fill(&self->own, own) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
chain_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((Chain *)object)->handlers);
    return 0;
}

static void
chain_dealloc(PyObject *object)
{
    Chain *self = (Chain *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->handlers);
    Py_CLEAR(self->own.name);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef chain_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Chain, vectorcall), READONLY, NULL},
    {"handlers", T_OBJECT, offsetof(Chain, handlers), READONLY, "The handlers."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot chain_type_slots[] = {
    {Py_tp_doc, "Chain(handlers, own, flags=0, /)\n--\n\nCalled as sys.monitoring calls; calls each handler with the same, near the "
                "limit of recursion too, and gives the last one's answer. Methods whose file name begins with `own` are "
                "passed over; with flags, so are those that have none of them. What a handler raises goes to sys.unraisablehook, a KeyboardInterrupt to the program."},
    {Py_tp_new, chain_new},
    {Py_tp_dealloc, chain_dealloc},
    {Py_tp_traverse, chain_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, chain_members},
    {0, NULL},
};

static PyType_Spec chain_spec = {"vmscope.native.Chain", sizeof(Chain), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                 chain_type_slots};

/* variable(frame, name): what a frame's f_locals would say, without the dict that 3.12 would leave behind in it. */
static PyObject *
variable(PyObject *module, PyObject *args)
{
    PyObject *frame, *name;
    if (!PyArg_ParseTuple(args, "O!U:variable", &PyFrame_Type, &frame, &name)) {
        return NULL;
    }
    (void)module;
#if PY_VERSION_HEX >= 0x030C0000
    return PyFrame_GetVar((PyFrameObject *)frame, name);
#else
    PyObject *locals = PyFrame_GetLocals((PyFrameObject *)frame);
    PyObject *value = locals == NULL ? NULL : PyObject_GetItem(locals, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Format(PyExc_NameError, "variable %R does not exist", name);
    }
    Py_XDECREF(locals);
    return value;
#endif
}

static PyMethodDef chain_functions[] = {
    {"variable", variable, METH_VARARGS, "variable(frame, name, /)\n--\n\nA local variable's value. NameError."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_chain(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &chain_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : PyModule_AddFunctions(module, chain_functions);
}
