/* A thread of our own on which Python code serves clients. It waits here, without a thread state: while there is nothing to
 * do, neither the program nor its tools see it, and no garbage collection runs on it. What the code opens is in a table of
 * descriptors that the program does not see. */
#define _GNU_SOURCE
#include "threads/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_WATCHED 64
#define STOP_TIMEOUT 1000000000 /* ns: how long the end of the process may have to wait for a call under way */

static struct {
    Thread thread;
    PyObject *callback; /* under the thread's mutex: without a GIL it may be replaced while it is about to be called */
} serving;

/* A new reference, or NULL. */
static PyObject *
current_callback(void)
{
    pthread_mutex_lock(&serving.thread.mutex);
    PyObject *callback = Py_XNewRef(serving.callback);
    pthread_mutex_unlock(&serving.thread.mutex);
    return callback;
}

static void
replace_callback(PyObject *callback)
{
    pthread_mutex_lock(&serving.thread.mutex);
    PyObject *old = serving.callback;
    serving.callback = Py_XNewRef(callback);
    pthread_mutex_unlock(&serving.thread.mutex);
    Py_XDECREF(old);
}

/* True where the thread has a table of its own now. */
static int
unshare_descriptors(void)
{
    int own = 0;
#ifdef SYS_close_range
    own = syscall(SYS_close_range, 0U, ~0U, 2U) == 0; /* 2: CLOSE_RANGE_UNSHARE */
    for (int fd = 0; own && fd < 3; fd++) {           /* nothing that is said there is heard */
        (void)open("/dev/null", O_RDWR | O_CLOEXEC);
    }
#endif
    return own;
}

/* What the code waits for, a list of pairs. False where it is something else. */
static int
read_watched(PyObject *list, struct pollfd *polls, nfds_t *count)
{
    Py_ssize_t length = PyList_Size(list);
    for (Py_ssize_t i = 0; i < length && i < MOST_WATCHED; i++) {
        int fd, events;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "ii", &fd, &events)) {
            return 0;
        }
        polls[(*count)++] = (struct pollfd){.fd = fd, .events = (short)events};
    }
    return 1;
}

/* False where the code has nothing to serve any more. */
static int
call(int begins, struct pollfd *polls, nfds_t *count, int *milliseconds)
{
    OwnCode own = vmscope_begin_own_code();
    int goes_on = 0;
    PyObject *callback = current_callback();
    if (callback != NULL && !vmscope_thread_is_stopping(&serving.thread)) {
        PyObject *result = PyObject_CallOneArg(callback, begins ? Py_True : Py_False);
        PyObject *watched;
        goes_on = result != NULL && PyTuple_Check(result) &&
                  PyArg_ParseTuple(result, "O!i", &PyList_Type, &watched, milliseconds) &&
                  read_watched(watched, polls, count);
        PyErr_Clear(); /* it reports its own failures; a host is never troubled */
        Py_XDECREF(result);
    } else {
        goes_on = callback != NULL; /* it may have been asked to stop meanwhile */
        *milliseconds = 0;
    }
    Py_XDECREF(callback);
    vmscope_end_own_code(own);
    return goes_on;
}

static void
serve_until_told(PyObject *Py_UNUSED(owner))
{
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, VMSCOPE_WAKE_SIGNAL);
    (void)unshare_descriptors();
    int wake_fd = signalfd(-1, &wake, SFD_NONBLOCK | SFD_CLOEXEC), begins = 1, goes_on = 1;
    do {
        while (goes_on && vmscope_thread_hear(&serving.thread) == 0) {
            struct pollfd polls[1 + MOST_WATCHED] = {{.fd = wake_fd, .events = POLLIN}};
            nfds_t count = 1;
            int milliseconds = 0;
            goes_on = call(begins, polls, &count, &milliseconds);
            begins = 0;
            if (!goes_on) {
                vmscope_thread_finish(&serving.thread);
                break;
            }
            (void)poll(polls, count, milliseconds);
            struct signalfd_siginfo ignored;
            while (wake_fd >= 0 && read(wake_fd, &ignored, sizeof ignored) > 0) {
            }
            vmscope_thread_account(&serving.thread);
        }
    } while (!vmscope_thread_leave(&serving.thread));
    if (wake_fd >= 0) {
        close(wake_fd);
    }
}

static PyObject *
serve(PyObject *Py_UNUSED(module), PyObject *callback)
{
    if (!vmscope_in_main_interpreter()) {
        PyErr_SetString(PyExc_RuntimeError, "only the main interpreter serves");
        return NULL;
    }
    replace_callback(callback);
    if (vmscope_thread_start(&serving.thread) < 0) {
        replace_callback(NULL);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
stop_serving(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int ended = 1;
    if (vmscope_in_main_interpreter()) {
        replace_callback(NULL);
        ended = vmscope_thread_stop(&serving.thread, STOP_TIMEOUT);
    }
    return PyBool_FromLong(ended);
}

static PyMethodDef functions[] = {
    {"serve", serve, METH_O,
     "serve(callback, /)\n--\n\nCalls it again and again on a thread of our own, not in a forked child. It is told "
     "whether "
     "the\ndescriptors have gone that it opened, as after a fork, and returns what it waits for, as a list of "
     "descriptors "
     "and\nevents of poll(2), and for how many ms. OSError where no thread can be started, RuntimeError in a "
     "sub-interpreter."},
    {"stop_serving", stop_serving, METH_NOARGS, "Ends that; False if a call under way took too long."},
    {NULL},
};

static void
init_thread(void)
{
    vmscope_thread_init(&serving.thread, Py_None, SERVING_THREAD, serve_until_told);
    serving.thread.wake_signal = VMSCOPE_WAKE_SIGNAL;
}

int
vmscope_add_serving(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* sub-interpreters import at once */
    pthread_once(&once, init_thread);
    return PyModule_AddFunctions(module, functions);
}
