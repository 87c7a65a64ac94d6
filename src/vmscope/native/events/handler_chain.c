/* Several handlers of one event of sys.monitoring; something after a call; and a look at a frame's variables. */
#include "events/dispatch.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *handlers; /* a tuple */
    int flags;          /* of a code object, one of which it has to have; 0: any code */
    Own own;
} HandlerChain;

/* Calls each handler; gives the last one's answer. What they raise stays here, except a KeyboardInterrupt. */
static PyObject *
chain_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    HandlerChain *self = (HandlerChain *)object;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (names != NULL || given < 1 || given > MOST_ARGUMENTS) {
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
        } else if (interrupt == NULL) {
            interrupt = error;
        } else {
            Py_DECREF(error);
        }
    }
    take_room_back(state, lent);
    was_late();
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
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!U|i:HandlerChain", names, &PyTuple_Type, &handlers, &own,
                                     &flags)) {
        return NULL;
    }
    HandlerChain *self = (HandlerChain *)type->tp_alloc(type, 0);
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
    Py_VISIT(((HandlerChain *)object)->handlers);
    return 0;
}

static void
chain_dealloc(PyObject *object)
{
    HandlerChain *self = (HandlerChain *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->handlers);
    Py_CLEAR(self->own.name);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef chain_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(HandlerChain, vectorcall), READONLY, NULL},
    {"handlers", T_OBJECT, offsetof(HandlerChain, handlers), READONLY, "The handlers."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot chain_type_slots[] = {
    {Py_tp_doc,
     "HandlerChain(handlers, own, flags=0, /)\n--\n\nCalled as sys.monitoring calls; calls each handler with the same, "
     "near the "
     "limit of recursion too, and gives the last one's answer. Methods whose file name begins with `own` are "
     "passed over; with flags, so are those that have none of them. What a handler raises goes to sys.unraisablehook, "
     "a KeyboardInterrupt to the program."},
    {Py_tp_new, chain_new},
    {Py_tp_dealloc, chain_dealloc},
    {Py_tp_traverse, chain_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, chain_members},
    {0, NULL},
};

static PyType_Spec chain_spec = {"vmscope.native.HandlerChain", sizeof(HandlerChain), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                 chain_type_slots};

/* -- after a call -------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *then;
    PyObject *first; /* or NULL */
} After;

/* 0, or -1 when what was raised is the program's. */
static int
kept(PyObject *where)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        return -1;
    }
    PyErr_WriteUnraisable(where);
    return 0;
}

/* Calls the function, with no frame of vmscope's between it and its caller; then `then` with what it returned, and the
 * arguments by position, which may give back something else to return. */
static PyObject *
after_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    After *self = (After *)object;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    PyObject *function = Py_NewRef(self->function), *then = Py_NewRef(self->then);
    PyObject *first = Py_XNewRef(self->first), *result = NULL;
    int stopped = 0;
    if (first != NULL) {
        PyObject *nothing = call_apart(first, args, (size_t)given);
        stopped = nothing == NULL && kept(first) < 0;
        Py_XDECREF(nothing);
        Py_DECREF(first);
    }
    if (!stopped) {
        result = PyObject_Vectorcall(function, args, flags, names);
    }
    if (result != NULL && then != Py_None) {
        vmscope_dispatching++;
        PyObject *rest = PyTuple_New(given + 1), *other = NULL;
        if (rest != NULL) {
            PyTuple_SET_ITEM(rest, 0, Py_NewRef(result));
            for (Py_ssize_t i = 0; i < given; i++) {
                PyTuple_SET_ITEM(rest, i + 1, Py_NewRef(args[i]));
            }
            other = PyObject_CallObject(then, rest);
            Py_DECREF(rest);
        }
        vmscope_dispatching--;
        was_late();
        if (other != NULL && other != Py_None) {
            Py_SETREF(result, Py_NewRef(other));
        }
        Py_XDECREF(other);
        if (other == NULL && kept(then) < 0) {
            Py_CLEAR(result);
        }
    }
    Py_DECREF(function);
    Py_DECREF(then);
    return result;
}

static PyObject *
after_get(PyObject *object, PyObject *instance, PyObject *type)
{
    (void)type;
    return instance == NULL || instance == Py_None ? Py_NewRef(object) : PyMethod_New(object, instance);
}

static PyObject *
after_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *function, *then, *first = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:After", names, &function, &then, &first)) {
        return NULL;
    }
    After *self = (After *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = after_call;
        self->function = Py_NewRef(function);
        self->then = Py_NewRef(then);
        self->first = first == Py_None ? NULL : Py_NewRef(first);
    }
    return (PyObject *)self;
}

static int
after_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((After *)object)->function);
    Py_VISIT(((After *)object)->then);
    Py_VISIT(((After *)object)->first);
    return 0;
}

static int
after_clear(PyObject *object)
{
    Py_CLEAR(((After *)object)->function);
    Py_CLEAR(((After *)object)->then);
    Py_CLEAR(((After *)object)->first);
    return 0;
}

static void
after_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    after_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
after_repr(PyObject *object)
{
    return PyObject_Repr(((After *)object)->function);
}

static PyMemberDef after_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(After, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(After, function), READONLY, "The function."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot after_type_slots[] = {
    {Py_tp_doc,
     "After(function, then, first=None, /)\n--\n\nCalls `first`, or nothing for None, with the arguments by position; "
     "the function as it is called; then `then`, if not None, with what that returned and the arguments by "
     "position: what is not None is returned instead. As an attribute of a class it is a method. What `first` "
     "and `then` raise goes to sys.unraisablehook, a KeyboardInterrupt to the program."},
    {Py_tp_new, after_new},
    {Py_tp_dealloc, after_dealloc},
    {Py_tp_traverse, after_traverse},
    {Py_tp_clear, after_clear},
    {Py_tp_repr, after_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, after_get},
    {Py_tp_members, after_members},
    {0, NULL},
};

static PyType_Spec after_spec = {"vmscope.native.After", sizeof(After), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                 after_type_slots};

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
vmscope_add_handler_chain(PyObject *module)
{
    PyTypeObject *chain = vmscope_add_type(module, &chain_spec, NULL);
    PyTypeObject *after = chain == NULL ? NULL : vmscope_add_type(module, &after_spec, NULL);
    Py_XDECREF(chain);
    Py_XDECREF(after);
    return after == NULL ? -1 : PyModule_AddFunctions(module, chain_functions);
}
