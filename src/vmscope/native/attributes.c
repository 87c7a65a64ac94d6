#include "attributes.h"

#include <stdarg.h>

PyObject *
vmscope_attribute(PyObject *object, const char *name)
{
    PyObject *interned = PyUnicode_InternFromString(name);
    PyObject *found = interned == NULL ? NULL : PyObject_GetAttr(object, interned);
    Py_XDECREF(interned);
    return found;
}

PyObject *
vmscope_call_method(PyObject *object, const char *name, const char *format, ...)
{
    PyObject *interned = PyUnicode_InternFromString(name), *result = NULL;
    if (format == NULL) {
        result = interned == NULL ? NULL : PyObject_CallMethodNoArgs(object, interned);
        Py_XDECREF(interned);
        return result;
    }
    va_list values;
    va_start(values, format);
    PyObject *arguments = Py_VaBuildValue(format, values); /* in any case: "N" gives references away */
    va_end(values);
    PyObject *method = interned == NULL || arguments == NULL ? NULL : PyObject_GetAttr(object, interned);
    if (method != NULL) {
        result = PyObject_Call(method, arguments, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    Py_XDECREF(interned);
    return result;
}
