/* The interpreter's thread states: who there is, and what each is executing, as of one moment.
 *
 * Nothing here runs Python code, so with the GIL held the threads stand still meanwhile. A state without a frame is one
 * that a native thread keeps for later, or our own sampler's. */
#define _GNU_SOURCE
#include "stacks/racy_snapshot.h"

#ifdef HAS_STACKS

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

#define EACH_STATE(state)                                                                                              \
    PyThreadState *state = vmscope_first_state(PyInterpreterState_Get());                                              \
    state != NULL;                                                                                                     \
    state = vmscope_next_state(state)

static PyObject *
thread_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(PyThreadState_GetID(PyThreadState_Get()));
}

/* (code, offset) of each frame, the innermost first. */
static PyObject *
describe_frames(const SnapshotFrame *frames, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = Py_BuildValue("Oi", (PyObject *)frames[i].code, frames[i].offset);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *
describe_state(const Snapshot *snapshot, const SnapshotThread *thread)
{
    (void)snapshot;
    return Py_BuildValue("KkkO", (unsigned long long)thread->state.id, thread->state.ident, thread->state.native_id,
                         thread->count > 0 ? Py_True : Py_False);
}

static PyObject *
describe_stack(const Snapshot *snapshot, const SnapshotThread *thread)
{
    PyObject *frames = describe_frames(snapshot->frames + thread->begin, thread->count);
    return frames == NULL ? NULL : Py_BuildValue("KN", (unsigned long long)thread->state.id, frames);
}

/* A new list of what `describe` makes of each thread, the oldest first; `framed`: of those that have a frame. No collection
 * may begin meanwhile: it would run the program's finalizers. */
static PyObject *
of_each_thread(PyObject *(*describe)(const Snapshot *, const SnapshotThread *), Py_ssize_t limit, int framed,
               unsigned long long only)
{
    int collecting = PyGC_Disable();
    Snapshot *snapshot = vmscope_new_snapshot();
    int taken = snapshot != NULL &&
                vmscope_copy_snapshot(snapshot, PyInterpreterState_Get(), limit < 0 ? 0 : (size_t)limit, only);
    PyObject *list = taken ? PyList_New(0) : PyErr_NoMemory();
    for (size_t i = taken ? snapshot->thread_count : 0; list != NULL && i > 0; i--) { /* the newest comes first */
        const SnapshotThread *thread = &snapshot->threads[i - 1];
        PyObject *row = thread->count == 0 && framed ? Py_NewRef(Py_None) : describe(snapshot, thread);
        if (row == NULL || (row != Py_None && PyList_Append(list, row) < 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    vmscope_free_snapshot(snapshot);
    if (collecting) {
        PyGC_Enable();
    }
    return list;
}

static PyObject *
thread_states(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return of_each_thread(describe_state, 1, 0, 0);
}

static PyObject *
thread_stacks(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t limit;
    unsigned long long only = 0;
    return PyArg_ParseTuple(args, "n|K", &limit, &only) ? of_each_thread(describe_stack, limit, 1, only) : NULL;
}

static PyObject *
tie_thread(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long id;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "KO", &id, &object)) {
        return NULL;
    }
    for (EACH_STATE(state)) {
        if (PyThreadState_GetID(state) == id) {
            if (state->dict == NULL && (state->dict = PyDict_New()) == NULL) {
                return NULL;
            }
            return PyDict_SetItemString(state->dict, "vmscope.thread", object) < 0 ? NULL : Py_NewRef(Py_True);
        }
    }
    Py_RETURN_FALSE;
}

static PyObject *
stop_thread(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long id;
    PyObject *kind;
    if (!PyArg_ParseTuple(args, "KO", &id, &kind)) {
        return NULL;
    }
    for (EACH_STATE(state)) {
        if (PyThreadState_GetID(state) == id) {
            return PyBool_FromLong(PyThreadState_SetAsyncExc(state->thread_id, kind));
        }
    }
    Py_RETURN_FALSE;
}

static PyObject *
runtime_span(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    unsigned long long start = 0, size = 0;
#ifdef __GLIBC__
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    if (runtime != NULL && dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol != NULL) {
        start = (uintptr_t)runtime;
        size = symbol->st_size;
    }
#endif
    return Py_BuildValue("KK", start, size);
}

/* A lock of `_thread`, of either kind, and one of vmscope's begin with the system's lock, up to 3.13: a semaphore, by whose
 * address the kernel knows who waits for it. */
static PyObject *
lock_address(PyObject *Py_UNUSED(module), PyObject *lock)
{
    void *address = NULL;
#if PY_VERSION_HEX < 0x030E0000
    if (Py_TYPE(lock)->tp_basicsize >= (Py_ssize_t)(sizeof(PyObject) + sizeof address)) {
        memcpy(&address, lock + 1, sizeof address);
    }
#else
    (void)lock;
#endif
    return PyLong_FromVoidPtr(address);
}

static PyMethodDef functions[] = {
    {"lock_address", lock_address, METH_O,
     "lock_address(lock, /)\n--\n\nWhat the kernel calls a lock of `_thread` or a MonitorLock; 0: that is unknown."},
    {"thread_state", thread_state, METH_NOARGS,
     "thread_state()\n--\n\nThe number of the calling thread's state, which no other state gets."},
    {"thread_states", thread_states, METH_NOARGS,
     "thread_states()\n--\n\n(state, ident, native_id, whether it has a frame) of each thread, the oldest first."},
    {"thread_stacks", thread_stacks, METH_VARARGS,
     "thread_stacks(limit, only=0, /)\n--\n\n(state, [(code, offset), ...]) of each thread that has a frame, or of "
     "one: "
     "from the top of its stack, `limit` frames at most."},
    {"tie_thread", tie_thread, METH_VARARGS,
     "tie_thread(state, object, /)\n--\n\nKeeps one object until that thread ends; False where that cannot be."},
    {"stop_thread", stop_thread, METH_VARARGS,
     "stop_thread(state, kind, /)\n--\n\nLets that thread raise an exception of this class; False: it has ended."},
    {"runtime_span", runtime_span, METH_NOARGS,
     "runtime_span()\n--\n\n(start, size) of the interpreter's own state, with the GIL's lock; (0, 0): unknown."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_thread_states(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else /* other threads may come and go while the states are walked: the twin asks the interpreter */

int
vmscope_add_thread_states(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
