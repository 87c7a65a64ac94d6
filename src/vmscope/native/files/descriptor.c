/* Descriptor: what a call has opened, closed with the object that holds it.
 *
 * Between the return of os.open and the line that keeps the number a signal handler may raise, and then nothing closes
 * it. Here there is no such moment. */
#include "native.h"

#include <unistd.h>

typedef struct {
    PyObject_HEAD int fd; /* -1 once closed */
} Descriptor;

static void
close_descriptor(Descriptor *self)
{
    int fd = self->fd;
    self->fd = -1;
    if (fd >= 0) {
        close(fd);
    }
}

static PyObject *
descriptor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) < 1) {
        PyErr_SetString(PyExc_TypeError, "Descriptor() needs a function that opens something");
        return NULL;
    }
    Descriptor *self = (Descriptor *)type->tp_alloc(type, 0);
    PyObject *others = self == NULL ? NULL : PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *number = others == NULL ? NULL : PyObject_Call(PyTuple_GET_ITEM(args, 0), others, kwargs);
    Py_XDECREF(others);
    if (self != NULL) {
        self->fd = number == NULL ? -1 : PyObject_AsFileDescriptor(number);
    }
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
descriptor_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    close_descriptor((Descriptor *)object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
descriptor_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(((Descriptor *)object)->fd);
}

static PyObject *
descriptor_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    close_descriptor((Descriptor *)object);
    Py_RETURN_NONE;
}

static PyObject *
descriptor_fd(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((Descriptor *)object)->fd);
}

static PyMethodDef descriptor_methods[] = {
    {"close", descriptor_close, METH_NOARGS, "Gives it back; a second call does nothing."},
    {"__enter__", descriptor_enter, METH_NOARGS, "The number."},
    {"__exit__", descriptor_close, METH_VARARGS, "Gives it back."},
    {NULL},
};

static PyGetSetDef descriptor_getset[] = {
    {"fd", descriptor_fd, NULL, "The number; -1 once it was given back.", NULL},
    {NULL},
};

static PyType_Slot descriptor_slots[] = {
    {Py_tp_doc, "Descriptor(function, /, *arguments, **keywords)\n--\n\nThe descriptor that the call opens."},
    {Py_tp_new, descriptor_new},
    {Py_tp_dealloc, descriptor_dealloc},
    {Py_tp_methods, descriptor_methods},
    {Py_tp_getset, descriptor_getset},
    {0, NULL},
};

static PyType_Spec descriptor_spec = {
    "vmscope.native.Descriptor", sizeof(Descriptor), 0, Py_TPFLAGS_DEFAULT, descriptor_slots,
};

int
vmscope_add_descriptor(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &descriptor_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
