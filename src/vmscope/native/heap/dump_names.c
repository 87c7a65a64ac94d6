/* A heap dump's names of classes, by the JVM's rules: `shop/models/Order$Line`.
 *
 * No class has the name of a package, and no part of a name has a character that means something to a reader. The first
 * needs all names before one of them is written: those of the packages are noted in a first pass over the classes. */
#include "heap/dump.h"

#ifdef HAS_OBJECTS

#include <string.h>

#define MODULE "<module>" /* the class that stands for a module, as Python calls a module's code */

/* The character as it stands in a name of the JVM's, where `.`, `;`, `[` and `/` may not. */
static Py_UCS4
legal(Py_UCS4 character)
{
    switch (character) {
    case '/':
        return '|';
    case ';':
        return ',';
    case '[':
        return '<';
    case ']':
        return '>';
    default:
        return character;
    }
}

/* The name of a class of this module, which may be NULL. A new reference. */
static PyObject *
spell(PyObject *module, PyObject *qualname)
{
    Py_ssize_t packages = module == NULL ? 0 : PyUnicode_GET_LENGTH(module), length = PyUnicode_GET_LENGTH(qualname);
    Py_UCS4 *name = PyMem_New(Py_UCS4, (size_t)(packages + length) + 2);
    if (name == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t used = 0;
    for (Py_ssize_t i = 0; i < packages; i++) {
        Py_UCS4 each = PyUnicode_READ_CHAR(module, i);
        if (each != '.') {
            name[used++] = legal(each);
        } else if (used > 0 && name[used - 1] != '/') { /* no part is empty */
            name[used++] = '/';
        }
    }
    if (used > 0 && name[used - 1] != '/') {
        name[used++] = '/';
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 each = PyUnicode_READ_CHAR(qualname, i);
        name[used++] = each == '.' ? '$' : legal(each);
    }
    if (length == 0) {
        name[used++] = '?';
    }
    PyObject *made = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, name, used);
    PyMem_Free(name);
    return made;
}

static PyObject *
module_of(PyTypeObject *type)
{
    PyObject *own = vmscope_namespace(type), *key, *value, *module = NULL;
    for (Py_ssize_t at = 0; own != NULL && PyDict_Next(own, &at, &key, &value);) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(value) &&
            PyUnicode_CompareWithASCIIString(key, "__module__") == 0) {
            module = PyUnicode_CompareWithASCIIString(value, "builtins") == 0 ? NULL : value;
        }
    }
    Py_XDECREF(own);
    return module; /* the dictionary has it */
}

/* A class of the interpreter, or of C: `module.Name`, or a name alone. */
static PyObject *
spell_static(const char *text)
{
    const char *dot = strrchr(text, '.'), *last = dot == NULL ? text : dot + 1;
    PyObject *module = PyUnicode_DecodeUTF8(text, dot == NULL ? 0 : dot - text, "backslashreplace");
    PyObject *qualname = PyUnicode_DecodeUTF8(last, (Py_ssize_t)strlen(last), "backslashreplace");
    PyObject *name = module == NULL || qualname == NULL ? NULL : spell(module, qualname);
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    return name;
}

static PyObject *
spell_type(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)
               ? spell(module_of(type), ((PyHeapTypeObject *)type)->ht_qualname)
               : spell_static(type->tp_name);
}

static PyObject *
spell_module(PyObject *module)
{
    PyObject *last = PyUnicode_FromString(MODULE);
    PyObject *name = last == NULL ? NULL : spell(module, last);
    Py_XDECREF(last);
    return name;
}

/* -- packages ------------------------------------------------------------------------------------- */

/* Notes the packages that a name stands in. Takes the reference to it. */
static int
note(Dump *dump, PyObject *name)
{
    if (name == NULL) {
        return -1;
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyUnicode_GET_LENGTH(name); i++) {
        if (PyUnicode_READ_CHAR(name, i) == '/') {
            PyObject *package = PyUnicode_Substring(name, 0, i);
            status = package == NULL ? -1 : PySet_Add(dump->taken, package);
            Py_XDECREF(package);
        }
    }
    Py_DECREF(name);
    return status;
}

int
vmscope_dump_reserve(Dump *dump, const char *text)
{
    PyObject *name = PyUnicode_FromString(text);
    int status = name == NULL ? -1 : PySet_Add(dump->taken, name);
    if (status < 0) {
        Py_XDECREF(name);
        return -1;
    }
    return note(dump, name);
}

int
vmscope_dump_note_type(Dump *dump, PyTypeObject *type)
{
    return note(dump, spell_type(type));
}

int
vmscope_dump_note_module(Dump *dump, PyObject *module)
{
    return note(dump, spell_module(module));
}

/* The name that is written: no package's, and in packages that have been noted. Takes the reference to `name`. */
static PyObject *
settle(Dump *dump, PyObject *name)
{
    Py_ssize_t end = name == NULL ? -1 : PyUnicode_FindChar(name, '/', 0, PyUnicode_GET_LENGTH(name), -1);
    if (end >= 0) { /* a class that no other one knows was not there when packages were noted */
        PyObject *package = PyUnicode_Substring(name, 0, end), *plain = NULL;
        int known = package == NULL ? -1 : PySet_Contains(dump->taken, package);
        Py_XDECREF(package);
        if (known == 0) {
            PyObject *slash = PyUnicode_FromString("/"), *mark = PyUnicode_FromString("$");
            plain = slash == NULL || mark == NULL ? NULL : PyUnicode_Replace(name, slash, mark, -1);
            Py_XDECREF(slash);
            Py_XDECREF(mark);
        }
        if (known <= 0) {
            Py_SETREF(name, plain);
        }
    }
    while (name != NULL) {
        int taken = PySet_Contains(dump->taken, name);
        if (taken == 0) {
            break;
        }
        Py_SETREF(name, taken < 0 ? NULL : PyUnicode_FromFormat("%U$", name));
    }
    return name;
}

PyObject *
vmscope_dump_name_of_type(Dump *dump, PyTypeObject *type)
{
    return settle(dump, spell_type(type));
}

PyObject *
vmscope_dump_name_of_module(Dump *dump, PyObject *module)
{
    return settle(dump, spell_module(module));
}

#endif
