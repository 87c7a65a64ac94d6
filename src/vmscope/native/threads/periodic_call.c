/* Python code that is called now and then, on a thread of our own that has no thread state in between. */
#define _GNU_SOURCE
#include "threads/thread.h"

#define STOP_TIMEOUT 1000000000 /* ns: how long the end may have to wait for a call under way */

static struct {
    Thread thread;
    _Atomic(PyObject *) callback;
    _Atomic int64_t period; /* ns */
} periodic;

static void
call(void)
{
    OwnCode own = vmscope_begin_own_code();
    PyObject *callback = atomic_load(&periodic.callback);
    if (callback != NULL && !vmscope_thread_is_stopping(&periodic.thread)) {
        Py_INCREF(callback);
        PyObject *result = PyObject_CallNoArgs(callback);
        PyErr_Clear(); /* it reports its own failures; a host is never troubled */
        Py_XDECREF(result);
        Py_DECREF(callback);
    }
    vmscope_end_own_code(own);
}

static void
call_until_told(PyObject *Py_UNUSED(owner))
{
    vmscope_thread_unshare_files();
    int64_t deadline = vmscope_now();
    do {
        int64_t now = vmscope_now(), period = atomic_load(&periodic.period);
        if (now >= deadline) {
            call();
            now = vmscope_now();
            deadline = deadline + period > now ? deadline + period : now + period; /* what was missed is left out */
        }
        (void)vmscope_thread_wait(&periodic.thread, deadline > now ? deadline - now : 0);
    } while (!vmscope_thread_leave(&periodic.thread));
}

static PyObject *
call_periodically(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long period;
    PyObject *callback;
    if (!PyArg_ParseTuple(args, "LO:call_periodically", &period, &callback)) {
        return NULL;
    }
    if (period <= 0) {
        PyErr_SetString(PyExc_ValueError, "the period is at least 1 ns");
        return NULL;
    }
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "only the main interpreter makes periodic calls");
        return NULL;
    }
    atomic_store(&periodic.period, period);
    Py_XDECREF(atomic_exchange(&periodic.callback, Py_NewRef(callback)));
    if (vmscope_thread_start(&periodic.thread) < 0) {
        Py_XDECREF(atomic_exchange(&periodic.callback, NULL));
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
stop_periodic_calls(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int ended = 1;
    if (vmscope_in_main_interpreter()) {
        Py_XDECREF(atomic_exchange(&periodic.callback, NULL));
        ended = vmscope_thread_stop(&periodic.thread, STOP_TIMEOUT);
    }
    return PyBool_FromLong(ended);
}

static PyMethodDef functions[] = {
    {"call_periodically", call_periodically, METH_VARARGS,
     "call_periodically(period, callback, /)\n--\n\nCalls it now and every so many ns on a thread of our own, not in a "
     "forked child; in place of what was\ncalled before. OSError where no thread can be started, RuntimeError in a "
     "sub-interpreter."},
    {"stop_periodic_calls", stop_periodic_calls, METH_NOARGS, "Ends that; False if a call under way took too long."},
    {NULL},
};

static void
init_thread(void)
{
    vmscope_thread_init(&periodic.thread, Py_None, PERIODIC_THREAD, call_until_told);
}

int
vmscope_add_periodic_call(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* sub-interpreters import at once */
    pthread_once(&once, init_thread);
    return PyModule_AddFunctions(module, functions);
}
