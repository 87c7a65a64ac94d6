/* The strings of a request, taken apart by a listener that has but one connection; held against the twin. */
#include "attach/request.c"
#include "python.h"

/* What belongs to the threads, of which there are none here. */
int64_t
vmscope_now(void)
{
    return 0;
}

void
vmscope_thread_kick(Thread *Py_UNUSED(self))
{
}

void
vmscope_give_up(Listener *Py_UNUSED(self), Connection *Py_UNUSED(connection))
{
}

void
vmscope_reclaim(Listener *Py_UNUSED(self), int64_t Py_UNUSED(now))
{
}

struct PyModuleDef vmscope_native_def = {PyModuleDef_HEAD_INIT, "state", NULL, sizeof(NativeState), .m_slots = NULL};

PyObject *
vmscope_stack_snapshot_of(PyTypeObject *Py_UNUSED(type), ThreadDump *Py_UNUSED(dump))
{
    Py_RETURN_NONE; /* no connection has a dump */
}

/* call(request): the request, which is whole, as the command sees it. */
static PyObject *
make_call(PyObject *module, PyObject *data)
{
    Listener *self = (Listener *)module;
    Connection *connection = &self->connections[0];
    connection->length = (size_t)PyBytes_GET_SIZE(data);
    connection->request = malloc(connection->length); /* so that the sanitizer sees what lies behind it */
    if (connection->request == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(connection->request, PyBytes_AS_STRING(data), connection->length);
    PyObject *call = vmscope_make_call(self, connection);
    free(connection->request);
    return call;
}

static PyMethodDef make_call_function = {"call", make_call, METH_O, NULL};

static int
add_call(PyObject *part)
{
    static Listener listener; /* for ever, as what refers to it */
    PyObject *module = PyModule_Create(&vmscope_native_def);
    if (module == NULL || vmscope_add_call(module) < 0) {
        return -1;
    }
    listener.call_type = vmscope_state(module)->call;
    (void)PyObject_Init((PyObject *)&listener, &PyBaseObject_Type);
    PyObject *function = PyCFunction_New(&make_call_function, (PyObject *)&listener);
    return function == NULL ? -1 : PyModule_AddObjectRef(part, "call", function);
}

const Fuzzed fuzzed = {.check = "strings", .add = add_call};
