/* Attributes by a name in C.
 *
 * PyObject_GetAttrString and PyObject_CallMethod make a new str for each look: CPython's cache of types' attributes is
 * by the name's address, so it never answers, and keeps up to 4,096 such names. These intern theirs. */
#ifndef VMSCOPE_ATTRIBUTES_H
#define VMSCOPE_ATTRIBUTES_H

#include "compat.h"

/* A new reference; NULL with an exception. */
PyObject *vmscope_attribute(PyObject *object, const char *name);

/* object.name(...). `format` is Py_BuildValue's with its parentheses, or NULL. A new reference; NULL with an exception. */
PyObject *vmscope_call_method(PyObject *object, const char *name, const char *format, ...);

#endif
