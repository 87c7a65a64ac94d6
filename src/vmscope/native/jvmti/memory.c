/* What goes between agents and the functions in Python: arguments as C has them, and memory by address. */
#include "jni/interface.h"

static PyObject *
argument(const Value *value, char kind)
{
    switch (kind) {
    case 'z':
        return PyLong_FromLong(value->z);
    case 'b':
        return PyLong_FromLong(value->b);
    case 'c':
        return PyLong_FromLong(value->c);
    case 's':
        return PyLong_FromLong(value->s);
    case 'i':
        return PyLong_FromLong(value->i);
    case 'j':
        return PyLong_FromLongLong(value->j);
    case 'f':
        return PyFloat_FromDouble(value->f);
    case 'd':
        return PyFloat_FromDouble(value->d);
    default:
        return PyLong_FromVoidPtr(value->l);
    }
}

PyObject *
jni_arguments(int count, const Value *values, const char *kinds)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *each = argument(&values[i], kinds[i]);
        if (each == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, each);
        }
    }
    return tuple;
}

/* -- for Python ------------------------------------------------------------------------------------ */

static PyObject *
py_read(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "On", &number, &size)) {
        return NULL;
    }
    const void *address = PyLong_AsVoidPtr(number);
    return address == NULL && PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(address, size);
}

static PyObject *
py_text(PyObject *Py_UNUSED(module), PyObject *number)
{
    const char *address = PyLong_AsVoidPtr(number);
    return address == NULL && PyErr_Occurred() ? NULL : PyBytes_FromString(address);
}

static PyObject *
py_write(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number;
    Py_buffer data;
    if (!PyArg_ParseTuple(arguments, "Oy*", &number, &data)) {
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(number);
    if (!PyErr_Occurred()) {
        memcpy(address, data.buf, (size_t)data.len);
    }
    PyBuffer_Release(&data);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
py_allocate(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    void *memory = malloc(view.len ? (size_t)view.len : 1);
    if (memory != NULL) {
        memcpy(memory, view.buf, (size_t)view.len);
    }
    PyBuffer_Release(&view);
    return memory == NULL ? PyErr_NoMemory() : PyLong_FromVoidPtr(memory);
}

static PyObject *
py_free(PyObject *Py_UNUSED(module), PyObject *number)
{
    void *memory = PyLong_AsVoidPtr(number);
    if (memory == NULL && PyErr_Occurred()) {
        return NULL;
    }
    free(memory);
    Py_RETURN_NONE;
}

static PyObject *
py_view(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *number;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "On", &number, &size)) {
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(number);
    return address == NULL && PyErr_Occurred() ? NULL : PyMemoryView_FromMemory(address, size, PyBUF_WRITE);
}

static PyObject *
py_address(PyObject *Py_UNUSED(module), PyObject *view)
{
    Py_buffer buffer; /* of one that was released there is none */
    if (PyObject_GetBuffer(view, &buffer, PyBUF_FULL_RO) < 0) {
        return NULL;
    }
    PyObject *address = PyLong_FromVoidPtr(buffer.buf);
    PyBuffer_Release(&buffer);
    return address;
}

static PyMethodDef functions[] = {
    {"read", py_read, METH_VARARGS, "read(address, size) -> bytes"},
    {"text", py_text, METH_O, "text(address) -> bytes: up to the first NUL."},
    {"write", py_write, METH_VARARGS, "write(address, bytes)"},
    {"allocate", py_allocate, METH_O, "allocate(bytes) -> int: a copy of them, which Deallocate frees."},
    {"free", py_free, METH_O, "free(address)"},
    {"view", py_view, METH_VARARGS, "view(address, size) -> memoryview: of what is the caller's."},
    {"address", py_address, METH_O,
     "address(memoryview) -> int: of its first byte; ValueError for one that was released."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_memory(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
