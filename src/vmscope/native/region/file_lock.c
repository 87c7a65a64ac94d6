/* lock_file, and lock_mapping: a mapping that keeps a file open, and so its flock held, without a descriptor.
 *
 * The descriptor that was mapped may be closed at once: nothing of vmscope's is left for the program to see,
 * to close by accident or to pass on. MADV_DONTFORK keeps a forked child from holding the lock for as long
 * as it lives. The child's copy of the object then stands for an address that is free, or another's by
 * now, and must never be unmapped; `generation` tells.
 */
#include "native.h"

#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>

typedef struct {
    PyObject_HEAD void *address; /* NULL once closed */
    size_t length;
    unsigned generation;
} LockMapping;

static unsigned generation; /* how many forks lie between this process and the one that loaded us */

static void
count_fork(void)
{
    generation++;
}

static void
lock_mapping_release(LockMapping *self)
{
    if (self->address != NULL && self->generation == generation) {
        munmap(self->address, self->length);
    }
    self->address = NULL;
}

static PyObject *
lock_mapping_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", NULL};
    int fd;
    Py_ssize_t length;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "in:lock_mapping", names, &fd, &length)) {
        return NULL;
    }
    if (length <= 0) {
        PyErr_Format(PyExc_ValueError, "cannot map %zd bytes", length);
        return NULL;
    }
    LockMapping *self = (LockMapping *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    void *address = mmap(NULL, (size_t)length, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    self->address = address;
    self->length = (size_t)length;
    self->generation = generation;
    if (madvise(address, (size_t)length, MADV_DONTFORK) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
lock_mapping_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    lock_mapping_release((LockMapping *)self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
lock_mapping_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    lock_mapping_release((LockMapping *)self);
    Py_RETURN_NONE;
}

static PyMethodDef lock_mapping_methods[] = {
    {"close", lock_mapping_close, METH_NOARGS, "Gives the file and its lock back; a second call does nothing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot lock_mapping_slots[] = {
    {Py_tp_doc, "lock_mapping(fd, length, /)\n--\n\n"
                "Maps `length` bytes of `fd` for reading; the descriptor may be closed."},
    {Py_tp_new, lock_mapping_new},
    {Py_tp_dealloc, lock_mapping_dealloc},
    {Py_tp_methods, lock_mapping_methods},
    {0, NULL},
};

static PyType_Spec lock_mapping_spec = {
    .name = "vmscope.native._native.lock_mapping",
    .basicsize = sizeof(LockMapping),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = lock_mapping_slots,
};

static PyObject *
lock_file(PyObject *Py_UNUSED(module), PyObject *number)
{
    int fd = PyObject_AsFileDescriptor(number);
    if (fd < 0) {
        return NULL;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyMethodDef file_lock_functions[] = {
    {"lock_file", lock_file, METH_O,
     "Takes the file's flock, exclusive, at once: BlockingIOError where another has it."},
    {NULL, NULL, 0, NULL},
};

static int watching; /* the error of pthread_atfork, or 0 */

static void
watch_forks(void)
{
    watching = pthread_atfork(NULL, NULL, count_fork);
}

int
vmscope_add_file_lock(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (watching != 0) {
        errno = watching;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    PyTypeObject *type = vmscope_add_type(module, &lock_mapping_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    Py_DECREF(type);
    return PyModule_AddFunctions(module, file_lock_functions);
}
