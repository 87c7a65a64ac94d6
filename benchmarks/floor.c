/* Methods with nothing to do: what a call costs, and so the least that an update can. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *
nothing(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(argument))
{
    Py_RETURN_NONE;
}

static PyMethodDef empty_methods[] = {
    {"noargs", nothing, METH_NOARGS, NULL},
    {"o", nothing, METH_O, NULL},
    {NULL},
};

static PyType_Slot empty_slots[] = {
    {Py_tp_methods, empty_methods},
    {0, NULL},
};

static PyType_Spec empty_spec = {"floor.Empty", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, empty_slots};

static int
floor_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &empty_spec, NULL);
    int status = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return status;
}

static PyModuleDef_Slot floor_slots[] = {
    {Py_mod_exec, floor_exec},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef floor_def = {PyModuleDef_HEAD_INIT, .m_name = "floor", .m_slots = floor_slots};

PyMODINIT_FUNC
PyInit_floor(void)
{
    return PyModuleDef_Init(&floor_def);
}
