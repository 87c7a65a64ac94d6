/* open_beneath: what stands in a directory, on the same mount, opened without a look at any other (shared_folder.c). */
#include "native.h"
#include "files/shared_folder.h"

#include <errno.h>

static PyObject *
open_beneath(PyObject *Py_UNUSED(module), PyObject *args)
{
    int folder, flags, fd;
    const char *name;
    if (!PyArg_ParseTuple(args, "isi:open_beneath", &folder, &name, &flags)) {
        return NULL;
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        fd = vmscope_open_beneath(folder, name, flags);
        Py_END_ALLOW_THREADS
    } while (fd < 0 && errno == EINTR && PyErr_CheckSignals() == 0);
    if (fd >= 0) {
        return PyLong_FromLong(fd);
    }
    return PyErr_Occurred() ? NULL : PyErr_SetFromErrno(PyExc_OSError);
}

static PyMethodDef beneath_functions[] = {
    {"open_beneath", open_beneath, METH_VARARGS,
     "open_beneath(folder, name, flags, /)\n--\n\nA descriptor of what a directory has under this name. OSError: EXDEV "
     "where something is mounted there,\nELOOP for a symbolic link."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_beneath(PyObject *module)
{
    return PyModule_AddFunctions(module, beneath_functions);
}
