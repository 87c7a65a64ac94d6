/* The listener's object, and the thread that runs commands. */
#define _GNU_SOURCE
#include "attach/listener.h"
#include "attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOREVER (INT64_C(1) << 60) /* ns */
#define STOP_TIMEOUT 1000000000    /* ns */
#define DENIED                                                                                                         \
    "-1\nPermission denied: the process has changed its user, or its privileges, since the client connected\n"
#define OUTSIDE                                                                                                        \
    "-1\nPermission denied: threads of vmscope have rights that the main thread of the process does not have: the "    \
    "program "                                                                                                         \
    "has to call vmscope.stop() and start() once it has changed its rights\n"

/* -- the command thread ---------------------------------------------------------------------------------- */

/* Whose turn it is: the request that came first of those that wait, or the command under way whose next step has been
 * due for longest; NULL: there is nothing to do. `serial` is of the request. */
static Connection *
next_request(Listener *self, uint64_t *serial)
{
    Connection *first = NULL, *begun = NULL;
    pthread_mutex_lock(&self->mutex);
    for (int i = 0; i < MAX_CONNECTIONS && !self->closed; i++) {
        Connection *connection = &self->connections[i];
        Connection *next = &self->connections[(self->last + 1 + i) % MAX_CONNECTIONS];
        if (connection->stage == WAITING && (first == NULL || connection->serial < first->serial)) {
            first = connection;
        }
        if (begun == NULL && next->stage == SERVED) {
            begun = next;
        }
    }
    if (first != NULL) {
        first->stage = SERVED;
        first->since = vmscope_now();
        first->begun = 0;
        self->serving++;
    } else if (begun != NULL) {
        self->last = (int)(begun - self->connections);
    }
    Connection *next = first != NULL ? first : begun;
    *serial = next != NULL ? next->serial : 0;
    pthread_mutex_unlock(&self->mutex);
    return next;
}

/* One step: the whole of most commands. True where there are more. */
static int
take_step(Listener *self, Connection *connection)
{
    if (connection->call == NULL) {
        connection->call = vmscope_make_call(self, connection);
        if (connection->call == NULL) {
            return 0;
        }
        connection->steps = PyObject_CallOneArg(self->serve, connection->call);
        if (connection->steps == NULL) {
            vmscope_answer_failure(connection->call);
            return 0;
        }
    }
    PyObject *result = PyIter_Check(connection->steps) ? PyIter_Next(connection->steps) : NULL;
    if (result == NULL && PyErr_Occurred()) {
        vmscope_answer_failure(connection->call);
    }
    Py_XDECREF(result);
    return result != NULL;
}

/* Whether what is done here would be done with rights that the main thread has not, or has put aside since. */
static int
is_outside(Connection *connection)
{
    int64_t now = vmscope_now();
    if (!connection->outside && now - connection->looked > LOOK_TIMEOUT) {
        connection->outside = vmscope_exceeds_main(0);
        connection->looked = now;
    }
    return connection->outside;
}

/* Whether the client may still have its way, who could when it connected: the listener may have been closed while this
 * waited for the GIL, and the process have other ids. It gets the reason where it has got nothing yet. */
static int
is_allowed(Listener *self, Connection *connection)
{
    int outside = is_outside(connection);
    int allowed = !outside && vmscope_may_attach(connection->client.uid, connection->client.gid);
    pthread_mutex_lock(&self->mutex);
    if (outside) {
        vmscope_note_limit(self);
    }
    if (!allowed && !connection->begun && !connection->gone) {
        const char *reply = outside ? OUTSIDE : DENIED;
        (void)vmscope_append(self, connection, reply, strlen(reply));
    }
    allowed = allowed && !self->closed;
    pthread_mutex_unlock(&self->mutex);
    return allowed;
}

/* Whether the request still is the command thread's, which has the GIL now: its client may have been answered without. */
static int
claim(Listener *self, Connection *connection, uint64_t serial)
{
    pthread_mutex_lock(&self->mutex);
    int own = connection->serial == serial && connection->stage == SERVED;
    connection->claimed |= own;
    pthread_mutex_unlock(&self->mutex);
    return own;
}

typedef enum { COMPLETE, UNFINISHED, ANSWERED } Progress;

/* With the GIL: a step of the command, or, where it is not allowed any more, its end. */
static Progress
run(Listener *self, Connection *connection, uint64_t serial)
{
    Progress progress = ANSWERED;
    OwnCode own = vmscope_begin_own_code();
    if (claim(self, connection, serial)) {
        int allowed = is_allowed(self, connection);
        progress = allowed && take_step(self, connection) ? UNFINISHED : COMPLETE;
        PyErr_Clear(); /* a host is never troubled */
        if (progress == COMPLETE) {
            PyObject *ended = !allowed && connection->steps != NULL && PyIter_Check(connection->steps)
                                  ? vmscope_call_method(connection->steps, "close", NULL)
                                  : NULL;
            PyErr_Clear();
            Py_XDECREF(ended);
            Py_CLEAR(connection->steps);
            Py_CLEAR(connection->call);
        }
    }
    vmscope_end_own_code(own);
    return progress;
}

/* `answered`: by the I/O thread, so that the connection may be another client's. */
static void
complete(Listener *self, Connection *connection, int answered)
{
    atomic_store(&self->command_thread.late, 0);
    pthread_mutex_lock(&self->mutex);
    self->serving--;
    if (answered) {
        pthread_mutex_unlock(&self->mutex);
        return;
    }
    if (connection->socket.fd < 0) { /* the client went before */
        vmscope_forget_connection(self, connection);
    } else {
        connection->stage = ENDING;
        connection->since = vmscope_now();
    }
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    vmscope_kick(&self->io_thread);
}

/* A step, and what follows the last one. */
static void
proceed(Listener *self, Connection *connection, uint64_t serial, pid_t pid)
{
    Progress progress = run(self, connection, serial);
    if (getpid() != pid) { /* what ran has forked, and this is the child, whose only thread this was */
        vmscope_end_region();
        vmscope_unlink_socket();
        exit(0);
    }
    if (progress != UNFINISHED) {
        complete(self, connection, progress == ANSWERED);
    }
}

/* The listener has been closed: what is under way ends between two of its steps. */
static void
abandon(Listener *self, pid_t pid)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (self->connections[i].call != NULL) {
            proceed(self, &self->connections[i], self->connections[i].serial, pid);
        }
    }
}

/* Reports to the program's side, once, that a client was denied by the rights of threads. */
static void
report_limit(Listener *self)
{
    pthread_mutex_lock(&self->mutex);
    int due = self->limited == 1;
    self->limited += due;
    pthread_mutex_unlock(&self->mutex);
    if (due && self->denied != NULL) {
        OwnCode own = vmscope_begin_own_code();
        char text[MAX_LIMIT];
        vmscope_describe_limit(self->command_thread.tid, text, sizeof text);
        PyObject *result = text[0] != '\0' ? PyObject_CallFunction(self->denied, "s", text) : NULL;
        PyErr_Clear(); /* a host is never troubled */
        Py_XDECREF(result);
        vmscope_end_own_code(own);
    }
}

static void
serve(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    pid_t pid = getpid();
    uint64_t serial;
    int order;
    atomic_store(&self->command_thread.error, 0);
    do {
        while ((order = vmscope_thread_is_stopping(&self->command_thread)) == 0) {
            Connection *connection = next_request(self, &serial);
            report_limit(self);
            if (connection == NULL) {
                (void)vmscope_thread_wait(&self->command_thread, FOREVER);
            } else {
                proceed(self, connection, serial, pid);
            }
        }
        if (order == STOP) {
            abandon(self, pid);
        }
    } while (!vmscope_thread_leave(&self->command_thread));
}

/* -- the listener --------------------------------------------------------------------------------- */

void
vmscope_init_lock(Listener *self)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&self->mutex, NULL);
}

static PyObject *
listener_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"serve", "denied", NULL};
    PyObject *serve_function, *denied = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Listener", names, &serve_function, &denied)) {
        return NULL;
    }
    Listener *self = (Listener *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    vmscope_thread_init(&self->io_thread, (PyObject *)self, IO_THREAD, vmscope_talk);
    vmscope_thread_init(&self->command_thread, (PyObject *)self, COMMAND_THREAD, serve);
    self->io_thread.starting = vmscope_prepare_io_thread;
    self->io_thread.forked = vmscope_forget_io_thread;
    self->io_thread.wake_signal = VMSCOPE_WAKE_SIGNAL;
    self->command_thread.shares_files = 1;
    vmscope_init_lock(self);
    self->serve = Py_NewRef(serve_function);
    self->denied = Py_XNewRef(denied);
    self->call_type = (PyTypeObject *)Py_NewRef((PyObject *)state->call);
    self->socket.fd = self->wake_fd = -1;
    self->closed = 1;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        self->connections[i].socket.fd = -1;
    }
    return (PyObject *)self;
}

static void
listener_dealloc(PyObject *object)
{
    Listener *self = (Listener *)object; /* no thread runs: a running one holds a reference */
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        free(self->connections[i].request);
        free(self->connections[i].reply);
    }
    free(self->children);
    Py_XDECREF(self->serve);
    Py_XDECREF(self->denied);
    Py_XDECREF((PyObject *)self->call_type);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* True when both threads have ended, or only sleep. */
static int
close_listener(Listener *self, int64_t timeout, int last, int unlinks)
{
    pthread_mutex_lock(&self->mutex);
    int was_closed = self->closed, serving = self->serving, opening = self->opening;
    self->closed = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    if (was_closed) {
        return 1;
    }
    int ended = (last && !opening) || vmscope_thread_stop(&self->io_thread, timeout);
    if (unlinks) {
        Py_BEGIN_ALLOW_THREADS
        vmscope_unlink_socket();
        Py_END_ALLOW_THREADS
    }
    if (!last) {
        vmscope_close_own(&vmscope_handover_end);
    } else if (!serving) {
        return 1;
    }
    return vmscope_thread_stop(&self->command_thread, timeout) && ended;
}

static PyObject *
listener_open(PyObject *object, PyObject *args)
{
    Listener *self = (Listener *)object;
    const char *path, *temporary;
    if (!PyArg_ParseTuple(args, "yy:open", &path, &temporary)) {
        return NULL;
    }
    if (!self->closed) {
        PyErr_SetString(PyExc_RuntimeError, "the listener is open");
        return NULL;
    }
    if (!vmscope_name_socket(path, temporary)) {
        PyErr_SetString(PyExc_ValueError, "a path that is too long for a socket");
        return NULL;
    }
    self->closed = self->limited = 0;
    self->error = EINPROGRESS;
    self->stale_check_at = vmscope_now() + STALE_CHECK_DELAY;
    vmscope_ask_for_socket();
    if (vmscope_thread_start(&self->io_thread) < 0 || vmscope_thread_start(&self->command_thread) < 0) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        (void)close_listener(self, STOP_TIMEOUT, 0, 1);
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
listener_settle(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Listener *self = (Listener *)object;
    int error;
    Py_BEGIN_ALLOW_THREADS /* the disk may be frozen */
    pthread_mutex_lock(&self->mutex);
    while (self->error == EINPROGRESS && !self->closed) {
        pthread_cond_wait(&self->changed, &self->mutex);
    }
    error = self->error;
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
    if (error == 0) {
        Py_RETURN_NONE;
    }
    (void)close_listener(self, STOP_TIMEOUT, 0, 0);
    errno = error;
    return PyErr_SetFromErrnoWithFilename(PyExc_OSError, vmscope_socket_path());
}

static PyObject *
listener_check(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Listener *self = (Listener *)object;
    int error = atomic_load(&self->io_thread.error) != 0 ? self->io_thread.error : self->command_thread.error;
    if (error != 0) {
        vmscope_thread_resume();
    }
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->mutex);
    error = error != 0 ? error : self->error;
    int closed = self->shared_files && !vmscope_owns(&self->socket);
    pthread_mutex_unlock(&self->mutex);
    if (error == 0 && (closed || vmscope_has_lost_socket())) {
        error = ENOENT;
    }
    if (error != 0) {
        vmscope_ask_for_socket();
    }
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(error);
}

static PyObject *
listener_limit(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    char text[MAX_LIMIT];
    pid_t tid = ((Listener *)object)->command_thread.tid;
    Py_BEGIN_ALLOW_THREADS
    vmscope_describe_limit(tid, text, sizeof text);
    Py_END_ALLOW_THREADS
    return PyUnicode_FromString(text);
}

static PyObject *
listener_close(PyObject *object, PyObject *args)
{
    long long timeout;
    int last = 0, unlinks = 1;
    if (!PyArg_ParseTuple(args, "L|pp:close", &timeout, &last, &unlinks)) {
        return NULL;
    }
    return PyBool_FromLong(close_listener((Listener *)object, timeout, last, unlinks));
}

static PyObject *
listener_watch_children(PyObject *object, PyObject *path)
{
    Listener *self = (Listener *)object;
    const char *regions = PyBytes_AsString(path);
    if (regions == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&self->mutex);
    if (strlen(regions) < sizeof self->regions) {
        strcpy(self->regions, regions);
    }
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *
listener_connections(PyObject *object, void *Py_UNUSED(closure))
{
    Listener *self = (Listener *)object;
    long count = 0;
    pthread_mutex_lock(&self->mutex);
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        count += self->connections[i].stage != FREE;
    }
    pthread_mutex_unlock(&self->mutex);
    return PyLong_FromLong(count);
}

static PyMethodDef listener_methods[] = {
    {"open", listener_open, METH_VARARGS,
     "open(path, temporary): begins to make the socket and to serve it. OSError where no thread can be started."},
    {"settle", listener_settle, METH_NOARGS,
     "After open: waits until clients can connect. OSError where they cannot, and then it is closed."},
    {"check", listener_check, METH_NOARGS,
     "check(): 0, or the errno for which no client can connect now; what can be done about it is done at once. ENOENT: "
     "the\n"
     "socket's name is gone, or another's."},
    {"watch_children", listener_watch_children, METH_O,
     "watch_children(directory): what children leave that are VMs and are killed is removed from now on: the socket, "
     "and the\n"
     "region's file in this directory."},
    {"limit", listener_limit, METH_NOARGS,
     "limit(): who cannot attach because threads of the process differ in their rights, for people; '': all can."},
    {"close", listener_close, METH_VARARGS,
     "close(timeout, last=False, unlink=True): takes the socket away; False where a command has not ended in this many "
     "ns.\n"
     "At the `last` moment of the process a thread that only sleeps is not waited for. Where the disk is stuck, "
     "`unlink`\n"
     "would be too."},
    {NULL},
};

static PyGetSetDef listener_getset[] = {
    {"connections", listener_connections, NULL, "How many clients are connected.", NULL},
    {NULL},
};

static PyType_Slot listener_slots[] = {
    {Py_tp_doc,
     "Listener(serve, denied=None)\n--\n\nAnswers the attach protocol: calls `serve(call)` for each request. Where "
     "that returns an iterator,\n"
     "each `next` is a step of the command: others, forks and the end of the process come between two of them.\n"
     "The first time that a client is denied because threads differ in their rights, `denied(limit)` is called."},
    {Py_tp_new, listener_new},
    {Py_tp_dealloc, listener_dealloc},
    {Py_tp_methods, listener_methods},
    {Py_tp_getset, listener_getset},
    {0, NULL},
};

static PyType_Spec listener_spec = {"vmscope.native.Listener", sizeof(Listener), 0, Py_TPFLAGS_DEFAULT, listener_slots};

int
vmscope_add_listener(PyObject *module)
{
    PyTypeObject *type = vmscope_add_call(module) < 0 ? NULL : vmscope_add_type(module, &listener_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
