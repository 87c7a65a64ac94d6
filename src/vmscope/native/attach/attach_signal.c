/* SIGQUIT where the program leaves it at its default: a client that finds no socket makes a file `.attach_pidN` and
 * sends it. With that file there the I/O thread is asked to make the socket anew; without it the signal does what it always
 * does. Python does not notice: signal.getsignal says SIG_DFL as before, and whoever sets a handler has the signal. */
#define _GNU_SOURCE
#include "attach/listener.h"
#include "files/shared_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFIX ".attach_pid"
#define ECHO                                                                                                           \
    10000000000 /* ns after a request in which another client's may come, whose file has gone with the first's */

_Atomic pid_t vmscope_attach_signal_thread;
static _Atomic int asked;
static _Atomic int64_t last_asked; /* CLOCK_MONOTONIC, ns; 0: never */

int
vmscope_attach_signal_asked(void)
{
    return atomic_exchange(&asked, 0);
}

void
vmscope_ask_for_socket(void)
{
    atomic_store(&asked, 1);
    pid_t thread = atomic_load(&vmscope_attach_signal_thread);
    if (thread != 0) { /* else it is about to start, and will look */
        (void)syscall(SYS_tgkill, getpid(), thread, VMSCOPE_WAKE_SIGNAL);
    }
}

/* Whether a client who may attach has left the file that says so. */
static int
has_request(const char *folder)
{
    char path[64];
    struct stat found;
    strcpy(path, folder);
    strcat(path, PREFIX);
    vmscope_append_number(path, getpid());
    return vmscope_stat_named(path, &found) == 0 && (found.st_uid == geteuid() || found.st_uid == 0);
}

static int
is_echo(void)
{
    int64_t last = atomic_load(&last_asked);
    return last != 0 && vmscope_now() - last < ECHO;
}

static void
on_quit(int signum)
{
    int saved_errno = errno;
    if (has_request("") || has_request("/tmp/")) {
        atomic_store(&last_asked, vmscope_now());
        vmscope_ask_for_socket();
    } else if (!is_echo()) {
        vmscope_end_region();
        vmscope_unlink_socket();
        (void)signal(signum, SIG_DFL);
        (void)raise(signum); /* held back until this handler has returned */
    }
    errno = saved_errno;
}

static PyObject *
take(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    struct sigaction action = {.sa_handler = on_quit, .sa_flags = SA_ONSTACK | SA_RESTART}, found;
    sigemptyset(&action.sa_mask);
    int taken = 0;
    if (sigaction(SIGQUIT, NULL, &found) == 0 && !(found.sa_flags & SA_SIGINFO)) {
        taken = found.sa_handler == on_quit || (found.sa_handler == SIG_DFL && sigaction(SIGQUIT, &action, NULL) == 0);
    }
    return PyBool_FromLong(taken);
}

static PyObject *
leave(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    struct sigaction found;
    if (sigaction(SIGQUIT, NULL, &found) == 0 && !(found.sa_flags & SA_SIGINFO) && found.sa_handler == on_quit) {
        (void)signal(SIGQUIT, SIG_DFL);
    }
    Py_RETURN_NONE;
}

static int
is_over(pid_t Py_UNUSED(pid))
{
    return 1;
}

static PyObject *
remove_socket(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *folder;
    int pid;
    if (!PyArg_ParseTuple(args, "yi:remove_left_socket", &folder, &pid)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    vmscope_remove_stale_socket(folder, pid, is_over);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef attach_signal_functions[] = {
    {"take_attach_signal", take, METH_NOARGS,
     "SIGQUIT, where its action is the default, asks for the socket when a client has left its file. False: it has "
     "another."},
    {"leave_attach_signal", leave, METH_NOARGS,
     "Puts back the default action where it was taken and no handler came since."},
    {"remove_left_socket", remove_socket, METH_VARARGS,
     "remove_left_socket(folder, pid, /)\n--\n\nUnlinks the socket that a VM of this user's left, unless a process "
     "listens."},
    {NULL},
};

int
vmscope_add_attach_signal(PyObject *module)
{
    return PyModule_AddFunctions(module, attach_signal_functions);
}
