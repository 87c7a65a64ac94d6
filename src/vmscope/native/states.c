/* The interpreter's thread states: who there is, and what each is executing, as of one moment.
 *
 * Nothing here runs Python code, so with the GIL held the threads stand still meanwhile. A state without a frame is one
 * that a native thread keeps for later, or our own sampler's. */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

#define EACH_STATE(state)                                                                                              \
    PyThreadState *state = vmscope_first_state(PyInterpreterState_Get());                                              \
    state != NULL;                                                                                                     \
    state = vmscope_next_state(state)

/* No collection may begin while the states are walked: it would run the program's finalizers. */
static int
stop_collecting(void)
{
    return PyGC_Disable();
}

static void
go_on_collecting(int collecting)
{
    if (collecting) {
        PyGC_Enable();
    }
}

/* A new list of what `describe` makes of each state, or of the one with this number where it is not 0; it gives NULL,
 * without an exception, for one to leave out. */
static PyObject *
of_each_state(PyObject *(*describe)(PyThreadState *, Py_ssize_t), Py_ssize_t limit, unsigned long long only)
{
    int collecting = stop_collecting();
    PyObject *list = PyList_New(0);
    for (EACH_STATE(state)) {
        if (only != 0 && PyThreadState_GetID(state) != only) {
            continue;
        }
        PyObject *row = list == NULL ? NULL : describe(state, limit);
        if (row != NULL && PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
        if (row == NULL && PyErr_Occurred()) {
            Py_CLEAR(list);
            break;
        }
    }
    go_on_collecting(collecting);
    if (list != NULL && PyList_Reverse(list) < 0) { /* the newest comes first */
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *
describe_state(PyThreadState *state, Py_ssize_t limit)
{
    (void)limit;
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    PyObject *row = Py_BuildValue("KkkN", (unsigned long long)PyThreadState_GetID(state),
                                  (unsigned long)state->thread_id, (unsigned long)state->native_thread_id,
                                  PyBool_FromLong(frame != NULL));
    Py_XDECREF(frame);
    return row;
}

/* The frames from the top, `limit` at most; takes the reference to `frame`. */
static PyObject *
describe_frames(PyFrameObject *frame, Py_ssize_t limit)
{
    PyObject *frames = PyList_New(0);
    while (frames != NULL && frame != NULL && PyList_GET_SIZE(frames) < limit) {
        PyObject *row = Py_BuildValue("Ni", PyFrame_GetCode(frame), PyFrame_GetLasti(frame));
        if (row == NULL || PyList_Append(frames, row) < 0) {
            Py_CLEAR(frames);
        }
        Py_XDECREF(row);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return frames;
}

static PyObject *
describe_stack(PyThreadState *state, Py_ssize_t limit)
{
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    if (frame == NULL) {
        return NULL;
    }
    PyObject *frames = describe_frames(frame, limit);
    return frames == NULL ? NULL : Py_BuildValue("KN", (unsigned long long)PyThreadState_GetID(state), frames);
}

static PyObject *
thread_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(PyThreadState_GetID(PyThreadState_Get()));
}

static PyObject *
thread_states(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return of_each_state(describe_state, 0, 0);
}

static PyObject *
thread_stacks(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t limit;
    unsigned long long only = 0;
    return PyArg_ParseTuple(args, "n|K", &limit, &only) ? of_each_state(describe_stack, limit, only) : NULL;
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

/* A lock of `_thread`, of either kind, and one of ours begin with the system's lock, up to 3.13: a semaphore, by whose
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
     "thread_stacks(limit, only=0, /)\n--\n\n(state, [(code, offset), ...]) of each thread that has a frame, or of one: "
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
vmscope_add_states(PyObject *module)
{
#ifdef Py_GIL_DISABLED /* other threads may come and go while the states are walked: the twin asks the interpreter */
    (void)functions;
    (void)module;
    return 0;
#else
    return PyModule_AddFunctions(module, functions);
#endif
}
