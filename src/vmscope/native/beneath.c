/* open_beneath: what stands in a directory, on the same mount, opened without a look at any other. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(SYS_openat2) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>

static long
openat_same_mount(int folder, const char *name, unsigned long long flags)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return syscall(SYS_openat2, folder, name, &how, sizeof how);
}
#else
static long
openat_same_mount(int folder, const char *name, unsigned long long flags)
{
    (void)folder, (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}
#endif

static PyObject *
open_beneath(PyObject *Py_UNUSED(module), PyObject *args)
{
    int folder, flags;
    const char *name;
    if (!PyArg_ParseTuple(args, "isi:open_beneath", &folder, &name, &flags)) {
        return NULL;
    }
    long fd;
    do {
        Py_BEGIN_ALLOW_THREADS
        fd = openat_same_mount(folder, name, (unsigned)flags);
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
     "where something is mounted there,\nELOOP for a symbolic link, ENOSYS or EPERM where the kernel does not tell."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_beneath(PyObject *module)
{
    return PyModule_AddFunctions(module, beneath_functions);
}
