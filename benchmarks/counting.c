/* A callback of sys.monitoring's that adds one: the least that a method entry can cost. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static long long entries;

static PyObject *
entry(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(arguments), Py_ssize_t Py_UNUSED(count))
{
    entries++;
    Py_RETURN_NONE;
}

static PyObject *
count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(entries);
}

static PyMethodDef functions[] = {
    {"entry", (PyCFunction)(void (*)(void))entry, METH_FASTCALL, NULL},
    {"count", count, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "counting",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit_counting(void)
{
    return PyModuleDef_Init(&definition);
}
