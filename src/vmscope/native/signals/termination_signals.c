/* SIGTERM and SIGHUP at their default action, where a VM is to end in order before they end its process.
 *
 * Python does not notice that they are taken: signal.getsignal says SIG_DFL as before. While there is no more to end
 * than the region, the handler does that itself, at once, whatever the main thread is at. Once agents may want to hear
 * of the end, Python code has to run: then the handler trips another signal, the forward_to, which has a handler in
 * Python. That waits for the main thread; where that is in C code that does not return, whoever asks again, later, is not
 * kept waiting. */
#define _GNU_SOURCE
#include "native.h"
#include "threads/thread.h"

#include <errno.h>
#include <signal.h>

static const int taken[] = {SIGTERM, SIGHUP};
#define TAKEN (sizeof taken / sizeof *taken)

#define PATIENCE INT64_C(1000000000) /* ns after the first: a service manager may send both signals in one go */

static volatile sig_atomic_t forward_to, received;
static _Atomic int64_t asked; /* when the forward_to was tripped first; 0: it was not */

static void
on_end(int signum)
{
    int saved_errno = errno;
    received = signum;
    int64_t now = vmscope_now(), first = 0;
    if (forward_to != 0 && (atomic_compare_exchange_strong(&asked, &first, now) || now - first < PATIENCE)) {
        (void)PyErr_SetInterruptEx(forward_to);
    } else {
        vmscope_end_region();
        (void)signal(signum, SIG_DFL);
        (void)raise(signum); /* held back until this handler has returned */
    }
    errno = saved_errno;
}

static PyObject *
take(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    struct sigaction action = {.sa_handler = on_end, .sa_flags = SA_ONSTACK}; /* no SA_RESTART, as Python's own */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TAKEN; i++) {
        sigaddset(&action.sa_mask, taken[i]);
    }
    for (size_t i = 0; i < TAKEN; i++) {
        struct sigaction found;
        if (sigaction(taken[i], NULL, &found) == 0 && !(found.sa_flags & SA_SIGINFO) && found.sa_handler == SIG_DFL) {
            (void)sigaction(taken[i], &action, NULL);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *
forward(PyObject *Py_UNUSED(module), PyObject *argument)
{
    long number = PyLong_AsLong(argument);
    if (number == -1 && PyErr_Occurred()) {
        return NULL;
    }
    forward_to = (sig_atomic_t)number;
    Py_RETURN_NONE;
}

static PyObject *
leave(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (size_t i = 0; i < TAKEN; i++) {
        struct sigaction found;
        if (sigaction(taken[i], NULL, &found) == 0 && !(found.sa_flags & SA_SIGINFO) && found.sa_handler == on_end) {
            (void)signal(taken[i], SIG_DFL);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *
end_signal(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(received);
}

static PyMethodDef ends_functions[] = {
    {"take_end_signals", take, METH_NOARGS,
     "take_end_signals(): SIGTERM and SIGHUP, where their action is the default, end the region and the process."},
    {"forward_end_signals", forward, METH_O,
     "forward_end_signals(forward_to): from now on they call the Python handler of this signal instead, which has to "
     "end the\n"
     "process; 0: they do not."},
    {"leave_end_signals", leave, METH_NOARGS,
     "Puts back the default action where it was taken and no handler came since."},
    {"end_signal", end_signal, METH_NOARGS, "The one of them that came last; 0: none did."},
    {NULL},
};

int
vmscope_add_termination_signals(PyObject *module)
{
    return PyModule_AddFunctions(module, ends_functions);
}
