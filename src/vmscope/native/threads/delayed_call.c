/* One call, a moment from now, on a thread of our own: what a process does that wants to be visible and
 * must not pay for it before it has lived for a while. */
#define _GNU_SOURCE
#include "threads/thread.h" /* first: Python says which interfaces of the system are wanted */
#include "attach/handover.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_TIMEOUT 1000000000 /* ns: how long the end of the process may have to wait for a call under way */

static struct {
    Thread thread;
    _Atomic(PyObject *) callback;
    int64_t deadline; /* CLOCK_MONOTONIC, ns */
    int calling;      /* or about to; under the thread's mutex */
} delayed;

/* A descriptor table of the thread's own: what is opened on it the program neither sees nor closes, and nothing
 * said there is heard. False where the kernel cannot do that. */
static int
unshare_descriptors(void)
{
#ifdef SYS_close_range
    if (!vmscope_handover_unshare()) {
        return 0;
    }
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; fd++) {
        (void)dup2(null, fd);
    }
    return 1;
#else
    return 0;
#endif
}

/* True when that is over; false when a stop came while this waited for the GIL, which a fork takes back. */
static int
call(void)
{
    OwnCode own = vmscope_begin_own_code();
    int due = !vmscope_thread_is_stopping(&delayed.thread);
    if (due) {
        PyObject *callback = atomic_exchange(&delayed.callback, NULL);
        PyObject *result = callback == NULL ? NULL : PyObject_CallNoArgs(callback);
        PyErr_Clear(); /* it reports its own failures; a host is never troubled */
        Py_XDECREF(result);
        Py_XDECREF(callback);
    }
    vmscope_end_own_code(own);
    return due;
}

static int
begin(void)
{
    pthread_mutex_lock(&delayed.thread.mutex);
    int calling = delayed.calling = !delayed.thread.stopping;
    pthread_mutex_unlock(&delayed.thread.mutex);
    return calling;
}

static void
wait_and_call(PyObject *Py_UNUSED(owner))
{
    do {
        int64_t left;
        int stopping = 0;
        while (!stopping && (left = delayed.deadline - vmscope_now()) > 0) {
            stopping = vmscope_thread_wait(&delayed.thread, left); /* which a kick may end early */
        }
        if (!stopping && begin()) {
            vmscope_thread_make_spare();
            int own = unshare_descriptors();
            if (call()) {
                vmscope_thread_finish(&delayed.thread);
            }
            vmscope_thread_dismiss_spare();
            if (own) { /* else the thread would be counted for a moment longer */
                vmscope_thread_unshare_files();
            }
        }
    } while (!vmscope_thread_leave(&delayed.thread));
}

static PyObject *
call_later(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long delay;
    PyObject *callback;
    if (!PyArg_ParseTuple(args, "LO:call_later", &delay, &callback)) {
        return NULL;
    }
    if (delay < 0) {
        PyErr_SetString(PyExc_ValueError, "the delay is at least 0 ns");
        return NULL;
    }
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "a process has one region: only its main interpreter makes it");
        return NULL;
    }
    if (!vmscope_thread_stop(&delayed.thread, STOP_TIMEOUT)) {
        PyErr_SetString(PyExc_RuntimeError, "an earlier call is still under way");
        return NULL;
    }
    delayed.deadline = vmscope_now() + delay;
    delayed.calling = 0;
    Py_XDECREF(atomic_exchange(&delayed.callback, Py_NewRef(callback)));
    if (vmscope_thread_start(&delayed.thread) < 0) {
        Py_XDECREF(atomic_exchange(&delayed.callback, NULL));
        return NULL;
    }
    Py_RETURN_NONE;
}

/* True when the thread, asked to end, will do so without another look at Python. */
static int
only_sleeps(void)
{
    pthread_mutex_lock(&delayed.thread.mutex);
    int sleeps = !delayed.calling;
    delayed.thread.stopping = STOP;
    vmscope_thread_kick(&delayed.thread);
    pthread_mutex_unlock(&delayed.thread.mutex);
    return sleeps;
}

static PyObject *
cancel(PyObject *Py_UNUSED(module), PyObject *args)
{
    int wait = 1;
    if (!PyArg_ParseTuple(args, "|p:cancel_call", &wait)) {
        return NULL;
    }
    if (!vmscope_in_main_interpreter()) { /* it has made none */
        Py_RETURN_TRUE;
    }
    int ended = (!wait && only_sleeps()) || vmscope_thread_stop(&delayed.thread, STOP_TIMEOUT);
    Py_XDECREF(atomic_exchange(&delayed.callback, NULL));
    return PyBool_FromLong(ended);
}

static PyObject *
prepare_listener(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    (void)vmscope_handover_prepare();
    Py_RETURN_NONE;
}

/* The program's code on a thread of vmscope's is the program's: its tools see it. */
static PyObject *
enter_programs_code(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyThreadState_LeaveTracing(PyThreadState_Get());
    Py_RETURN_NONE;
}

static PyObject *
leave_programs_code(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyThreadState_EnterTracing(PyThreadState_Get());
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"enter_programs_code", enter_programs_code, METH_NOARGS,
     "On a thread of vmscope's: sys.monitoring, sys.settrace and sys.setprofile see what follows."},
    {"leave_programs_code", leave_programs_code, METH_NOARGS, "Ends that."},
    {"call_later", call_later, METH_VARARGS,
     "call_later(delay, callback): calls it once, on a thread of our own, in this many ns; not in a forked child. "
     "Takes "
     "the\n"
     "place of a call that still waits. OSError where no thread can be started, RuntimeError in a sub-interpreter."},
    {"cancel_call", cancel, METH_VARARGS,
     "cancel_call(wait=True): no call comes any more; one under way is waited for. False if that took too long.\n"
     "With wait=False, for the end of the process, a thread that only sleeps is not waited for."},
    {"prepare_listener", prepare_listener, METH_NOARGS,
     "Makes the one descriptor of a Listener that the program's table has: for a call to come, which has no such "
     "table."},
    {NULL},
};

static void
init_thread(void)
{
    vmscope_thread_init(&delayed.thread, Py_None, DELAYED_CALL_THREAD, wait_and_call);
}

int
vmscope_add_delayed_call(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* sub-interpreters import at once */
    pthread_once(&once, init_thread);
    return PyModule_AddFunctions(module, functions);
}
