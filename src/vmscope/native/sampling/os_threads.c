/* What the kernel knows of native threads of this process: many at once, without the GIL, which each file of /proc would
 * have to be waited for anew in a busy program. */
#include "native.h"
#include "sampling/os_threads.h"

#ifdef __linux__

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void
read_file(long id, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/%s", id, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    text[length < 0 ? 0 : length] = '\0';
    if (file >= 0) {
        close(file);
    }
}

static void
look_at(OsThread *task)
{
    struct timespec time;
    clockid_t clock = (clockid_t)(~(unsigned int)task->id << 3 | 6); /* the one that Linux has for a thread's number */
    read_file(task->id, "stat", task->stat, sizeof task->stat);
    read_file(task->id, "syscall", task->call, sizeof task->call);
    task->cpu = clock_gettime(clock, &time) < 0 ? -1 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The numbers in /proc/self/task, in its order; -1 without memory. */
static Py_ssize_t
list_ids(long **ids)
{
    Py_ssize_t count = 0, size = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (count == size) {
            long *larger = realloc(*ids, (size_t)(size = 2 * size + 64) * sizeof **ids);
            if (larger == NULL) {
                closedir(folder);
                return -1;
            }
            *ids = larger;
        }
        (*ids)[count] = strtol(entry->d_name, NULL, 10);
        count += (*ids)[count] != 0; /* not . and .. */
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

int
vmscope_read_os_threads(OsThreads *out)
{
    long *ids = NULL;
    Py_ssize_t count = list_ids(&ids);
    out->rows = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *out->rows);
    out->count = out->rows == NULL ? 0 : (size_t)count;
    for (size_t i = 0; i < out->count; i++) {
        out->rows[i].id = ids[i];
        look_at(&out->rows[i]);
    }
    free(ids);
    return out->rows != NULL;
}

static PyObject *
read_os_threads(PyObject *Py_UNUSED(module), PyObject *ids)
{
    if (!PyList_Check(ids)) {
        PyErr_SetString(PyExc_TypeError, "the ids of threads stand in a list");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(ids);
    OsThread *found = PyMem_Calloc((size_t)count + 1, sizeof *found);
    if (found == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *list = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        found[i].id = PyLong_AsLong(PyList_GET_ITEM(ids, i));
        if (found[i].id == -1 && PyErr_Occurred()) {
            goto done;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        look_at(&found[i]);
    }
    Py_END_ALLOW_THREADS
    list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = Py_BuildValue("yyL", found[i].stat, found[i].call, (long long)found[i].cpu);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, row);
        }
    }
done:
    PyMem_Free(found);
    return list;
}

static PyObject *
os_thread_ids(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    long *ids = NULL;
    Py_ssize_t count;
    Py_BEGIN_ALLOW_THREADS
    count = list_ids(&ids);
    Py_END_ALLOW_THREADS
    PyObject *list = count < 0 ? PyErr_NoMemory() : PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLong(ids[i]);
        if (number == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, number);
        }
    }
    free(ids);
    return list;
}

static PyMethodDef functions[] = {
    {"os_thread_ids", os_thread_ids, METH_NOARGS, "os_thread_ids()\n--\n\nThe ids of this process's native threads."},
    {"read_os_threads", read_os_threads, METH_O,
     "read_os_threads(ids, /)\n--\n\n(stat, syscall, CPU time in ns) of each native thread, as /proc has them; of one "
     "that "
     "has "
     "ended (b'', b'', -1)."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_os_threads(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_os_threads(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
