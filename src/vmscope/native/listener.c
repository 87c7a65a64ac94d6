/* The listener's object, the thread that runs commands, and the calls that it hands them as. */
#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOREVER (INT64_C(1) << 60) /* ns */
#define FIRST_ROOM 8192
#define ENOUGH 16384                /* bytes that are sent without waiting for more */

/* -- a call --------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Listener *listener;
    int place;
    uint64_t serial; /* of the request: the place has another one some time */
    int version;
    pid_t pid;
    uid_t uid;
    PyObject *operation, *options, *arguments;
} Call;

/* With the mutex held: its connection, or NULL: the client has gone, the reply is complete, or the listener closed. */
static Connection *
connection_of(Call *call)
{
    Connection *connection = &call->listener->connections[call->place];
    int open = connection->stage == SERVED && connection->serial == call->serial && !connection->gone;
    return open && !call->listener->closed ? connection : NULL;
}

static void
kick(Thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    vmscope_thread_kick(thread);
    pthread_mutex_unlock(&thread->mutex);
}

static PyObject *
raise_gone(Call *call)
{
    PyObject *error = PyErr_Format(PyExc_BrokenPipeError, "the client of the command (pid %d) has gone", (int)call->pid);
    return error;
}

/* With the mutex held: room for `wanted` more bytes behind what is queued. 0, or -1: no memory. */
static int
make_room(Connection *connection, size_t wanted)
{
    if (connection->sent > 0) {
        memmove(connection->reply, connection->reply + connection->sent, connection->written - connection->sent);
        connection->written -= connection->sent;
        connection->sent = 0;
    }
    size_t room = connection->reply_room == 0 ? FIRST_ROOM : connection->reply_room;
    while (room - connection->written < wanted) {
        room *= 2;
    }
    if (room > connection->reply_room) {
        char *reply = realloc(connection->reply, room);
        if (reply == NULL) {
            return -1;
        }
        connection->reply = reply;
        connection->reply_room = room;
    }
    return 0;
}

/* Queues as much as there is room for: how much that is, or -1: no memory. */
static Py_ssize_t
append(Listener *self, Connection *connection, const char *bytes, size_t length)
{
    size_t room = MAX_QUEUED - self->queued, count = length < room ? length : room;
    if (count > 0) {
        if (connection->reply_room - connection->written < count && make_room(connection, count) < 0) {
            return -1;
        }
        if (connection->sent == connection->written) {
            connection->since = vmscope_now(); /* it is the client's turn */
        }
        memcpy(connection->reply + connection->written, bytes, count);
        connection->begun = 1;
        connection->written += count;
        self->queued += count;
    }
    return (Py_ssize_t)count;
}

/* Without the GIL: until something is read by this client, or memory taken back from another. False: the client takes
 * too long. */
static int
wait_for_room(Call *call)
{
    Listener *self = call->listener;
    int alive = 1;
    pthread_mutex_lock(&self->mutex);
    Connection *connection = connection_of(call);
    vmscope_reclaim(self, vmscope_now());
    if (connection != NULL && self->queued >= MAX_QUEUED) {
        int64_t until = connection->since + READING_TIMEOUT;
        struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
        if (pthread_cond_timedwait(&self->changed, &self->mutex, &deadline) == ETIMEDOUT) {
            connection = connection_of(call);
            if (connection != NULL && vmscope_now() - connection->since >= READING_TIMEOUT) {
                vmscope_give_up(self, connection);
                alive = 0;
            }
        }
    }
    pthread_mutex_unlock(&self->mutex);
    kick(&self->talker);
    return alive;
}

static PyObject *
call_write(PyObject *object, PyObject *data)
{
    Call *call = (Call *)object;
    Listener *self = call->listener;
    Py_buffer bytes;
    if (PyObject_GetBuffer(data, &bytes, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    Py_ssize_t done = 0, count = 0;
    int alive = 1, much = 0;
    for (;;) {
        pthread_mutex_lock(&self->mutex);
        Connection *connection = connection_of(call);
        alive = alive && connection != NULL;
        if (alive) {
            count = append(self, connection, (char *)bytes.buf + done, (size_t)(bytes.len - done));
            much = connection->written - connection->sent >= ENOUGH;
        }
        pthread_mutex_unlock(&self->mutex);
        if (!alive || count < 0) {
            break;
        }
        if (much) {
            kick(&self->talker);
        }
        done += count;
        if (done == bytes.len) {
            break;
        }
        Py_BEGIN_ALLOW_THREADS
        alive = wait_for_room(call);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bytes);
    if (!alive) {
        return raise_gone(call);
    }
    if (count < 0) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

void
vmscope_tell_client(PyObject *object, const char *text)
{
    Call *call = (Call *)object;
    Listener *self = call->listener;
    char line[128];
    int length = snprintf(line, sizeof line, "#%s\n", text);
    pthread_mutex_lock(&self->mutex);
    Connection *connection = connection_of(call);
    if (connection != NULL && MAX_QUEUED - self->queued >= sizeof line) {
        (void)append(self, connection, line, (size_t)length);
    }
    pthread_mutex_unlock(&self->mutex);
    kick(&self->talker);
}

static PyObject *
call_flush(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Call *call = (Call *)object;
    pthread_mutex_lock(&call->listener->mutex);
    int alive = connection_of(call) != NULL;
    pthread_mutex_unlock(&call->listener->mutex);
    if (!alive) {
        return raise_gone(call);
    }
    kick(&call->listener->talker);
    Py_RETURN_NONE;
}

static void
call_dealloc(PyObject *object)
{
    Call *self = (Call *)object;
    Py_XDECREF(self->operation);
    Py_XDECREF(self->options);
    Py_XDECREF(self->arguments);
    Py_XDECREF(self->listener);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
get_object(PyObject *object, void *offset)
{
    return Py_NewRef(*(PyObject **)((char *)object + (intptr_t)offset));
}

static PyObject *
get_version(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((Call *)object)->version);
}

static PyObject *
get_pid(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((Call *)object)->pid);
}

static PyObject *
get_uid(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(((Call *)object)->uid);
}

static PyGetSetDef call_getset[] = {
    {"operation", get_object, NULL, "The operation's name.", (void *)offsetof(Call, operation)},
    {"options", get_object, NULL, "What stands behind the name in version 2, as `streaming=1`.",
     (void *)offsetof(Call, options)},
    {"arguments", get_object, NULL, "The arguments without empty ones at the end.", (void *)offsetof(Call, arguments)},
    {"version", get_version, NULL, "The protocol's, 1 or 2.", NULL},
    {"pid", get_pid, NULL, "The client's process; 0 where it is of another pid namespace.", NULL},
    {"uid", get_uid, NULL, "The client's effective user id.", NULL},
    {NULL},
};

static PyMethodDef call_methods[] = {
    {"write", call_write, METH_O,
     "Queues bytes of the reply. BrokenPipeError where the client has gone, or leaves too much unread for 10 s."},
    {"flush", call_flush, METH_NOARGS, "Sends what is queued. BrokenPipeError where the client has gone."},
    {NULL},
};

static PyType_Slot call_slots[] = {
    {Py_tp_doc, "One request, and the reply to it."},
    {Py_tp_dealloc, call_dealloc},
    {Py_tp_methods, call_methods},
    {Py_tp_getset, call_getset},
    {0, NULL},
};

static PyType_Spec call_spec = {"vmscope.native.Call", sizeof(Call), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, call_slots};

static PyObject *
decode(const char *begin, const char *end)
{
    return PyUnicode_DecodeUTF8(begin, end - begin, "surrogateescape");
}

/* The strings of the request, each of which ends with NUL: "operation[ options]", then the arguments. */
static int
parse(Call *call, const char *begin, const char *end)
{
    const char *stop = begin + strlen(begin), *blank = memchr(begin, ' ', (size_t)(stop - begin));
    call->operation = decode(begin, blank == NULL ? stop : blank);
    call->options = blank == NULL ? PyUnicode_FromString("") : decode(blank + 1, stop);
    PyObject *arguments = PyList_New(0);
    Py_ssize_t used = 0;
    int failed = call->operation == NULL || call->options == NULL || arguments == NULL;
    while (!failed && ++stop < end) {
        const char *first = stop;
        stop += strlen(stop);
        PyObject *argument = decode(first, stop);
        failed = argument == NULL || PyList_Append(arguments, argument) < 0;
        Py_XDECREF(argument);
        used = stop > first && !failed ? PyList_GET_SIZE(arguments) : used;
    }
    failed = failed || PyList_SetSlice(arguments, used, PyList_GET_SIZE(arguments), NULL) < 0;
    call->arguments = failed ? NULL : PyList_AsTuple(arguments);
    Py_XDECREF(arguments);
    return call->arguments == NULL ? -1 : 0;
}

/* The request stays where it is while it is served: the talker reads no more of this connection. */
static Call *
make_call(Listener *self, Connection *connection)
{
    Call *call = (Call *)self->call_type->tp_alloc(self->call_type, 0);
    if (call == NULL) {
        return NULL;
    }
    size_t begin, end;
    call->listener = (Listener *)Py_NewRef((PyObject *)self);
    call->place = (int)(connection - self->connections);
    call->serial = connection->serial;
    call->pid = connection->pid;
    call->uid = connection->uid;
    (void)vmscope_frame(connection->request, connection->length, &call->version, &begin, &end);
    if (parse(call, connection->request + begin, connection->request + end) < 0) {
        Py_DECREF(call);
        return NULL;
    }
    return call;
}

/* -- the servant ---------------------------------------------------------------------------------- */

/* Whose turn it is: the request that came first of those that wait, or the command under way whose next step has been
 * due for longest; NULL: there is nothing to do. */
static Connection *
next_request(Listener *self)
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
    pthread_mutex_unlock(&self->mutex);
    return first != NULL ? first : begun;
}

/* Tells the client what was raised before anything could answer it, as where a module cannot be imported. */
static void
answer_failure(Call *call)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = PyUnicode_FromFormat("-1\n%S failed: %S\n", call->operation, value == NULL ? Py_None : value);
    PyObject *bytes = text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    pthread_mutex_lock(&call->listener->mutex);
    Connection *connection = connection_of(call);
    int silent = connection != NULL && !connection->begun;
    pthread_mutex_unlock(&call->listener->mutex);
    Py_XDECREF(silent && bytes != NULL ? call_write((PyObject *)call, bytes) : NULL);
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* One step: the whole of most commands. True where there are more. */
static int
take_step(Listener *self, Connection *connection)
{
    if (connection->call == NULL) {
        connection->call = (PyObject *)make_call(self, connection);
        if (connection->call == NULL) {
            return 0;
        }
        connection->steps = PyObject_CallOneArg(self->serve, connection->call);
        if (connection->steps == NULL) {
            answer_failure((Call *)connection->call);
            return 0;
        }
    }
    PyObject *result = PyIter_Check(connection->steps) ? PyIter_Next(connection->steps) : NULL;
    if (result == NULL && PyErr_Occurred()) {
        answer_failure((Call *)connection->call);
    }
    Py_XDECREF(result);
    return result != NULL;
}

/* With the GIL: a step of the command, or, where the listener has been closed, its end. True where there are more. */
static int
run(Listener *self, Connection *connection)
{
    atomic_fetch_add(&vmscope_own_states, 1);
    PyGILState_STATE gil = PyGILState_Ensure();
    pthread_mutex_lock(&self->mutex);
    int closed = self->closed; /* while this waited for the GIL */
    pthread_mutex_unlock(&self->mutex);
    int more = !closed && take_step(self, connection);
    PyErr_Clear(); /* a host is never troubled */
    if (!more) {
        PyObject *ended = closed && connection->steps != NULL && PyIter_Check(connection->steps)
                              ? PyObject_CallMethod(connection->steps, "close", NULL)
                              : NULL;
        PyErr_Clear();
        Py_XDECREF(ended);
        Py_CLEAR(connection->steps);
        Py_CLEAR(connection->call);
    }
    PyGILState_Release(gil);
    return more;
}

static void
complete(Listener *self, Connection *connection)
{
    atomic_store(&self->servant.late, 0);
    pthread_mutex_lock(&self->mutex);
    self->serving--;
    if (connection->fd < 0) { /* the client went before */
        vmscope_forget_connection(self, connection);
    } else {
        connection->stage = ENDING;
        connection->since = vmscope_now();
    }
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    kick(&self->talker);
}

/* A step, and what follows the last one. */
static void
proceed(Listener *self, Connection *connection, pid_t pid)
{
    int more = run(self, connection);
    if (getpid() != pid) { /* what ran has forked, and this is the child, whose only thread this was */
        vmscope_end_region();
        vmscope_unlink_socket();
        exit(0);
    }
    if (!more) {
        complete(self, connection);
    }
}

/* The listener has been closed: what is under way ends between two of its steps. */
static void
abandon(Listener *self, pid_t pid)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (self->connections[i].call != NULL) {
            proceed(self, &self->connections[i], pid);
        }
    }
}

static void
serve(PyObject *owner)
{
    Listener *self = (Listener *)owner;
    pid_t pid = getpid();
    int order;
    do {
        while ((order = vmscope_thread_is_stopping(&self->servant)) == 0) {
            Connection *connection = next_request(self);
            if (connection == NULL) {
                (void)vmscope_thread_wait(&self->servant, FOREVER);
            } else {
                proceed(self, connection, pid);
            }
        }
        if (order == STOP) {
            abandon(self, pid);
        }
    } while (!vmscope_thread_leave(&self->servant));
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
    static char *names[] = {"serve", NULL};
    PyObject *serve_function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Listener", names, &serve_function)) {
        return NULL;
    }
    Listener *self = (Listener *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    vmscope_thread_init(&self->talker, (PyObject *)self, TALKER_THREAD, vmscope_talk);
    vmscope_thread_init(&self->servant, (PyObject *)self, SERVANT_THREAD, serve);
    self->talker.hooks = &vmscope_talker_hooks;
    self->talker.wake_signal = VMSCOPE_WAKE_SIGNAL;
    self->servant.shares_files = 1;
    vmscope_init_lock(self);
    self->serve = Py_NewRef(serve_function);
    self->call_type = (PyTypeObject *)Py_NewRef((PyObject *)state->call);
    self->fd = self->hatch_fd = -1;
    self->closed = 1;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        self->connections[i].fd = -1;
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
    Py_XDECREF(self->serve);
    Py_XDECREF((PyObject *)self->call_type);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
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
    Py_BEGIN_ALLOW_THREADS /* the disk may be frozen */
    self->fd = vmscope_open_socket();
    Py_END_ALLOW_THREADS
    if (self->fd < 0) {
        return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
    }
    self->closed = 0;
    self->held[0] = self->fd;
    self->held_count = 1;
    self->sweep_at = vmscope_now() + SWEEP_DELAY;
    self->unsettled = 1;
    int failed = vmscope_thread_start(&self->talker) < 0 || vmscope_thread_start(&self->servant) < 0;
    self->unsettled = 0;
    if (failed) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        self->closed = 1;
        (void)vmscope_thread_stop(&self->talker, FOREVER);
        vmscope_unlink_socket();
        close(self->held[0]);
        self->held_count = 0;
        self->fd = -1;
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
listener_settle(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    vmscope_settle((Listener *)object);
    Py_RETURN_NONE;
}

static PyObject *
listener_close(PyObject *object, PyObject *args)
{
    Listener *self = (Listener *)object;
    long long timeout;
    int last = 0, unlinks = 1;
    if (!PyArg_ParseTuple(args, "L|pp:close", &timeout, &last, &unlinks)) {
        return NULL;
    }
    pthread_mutex_lock(&self->mutex);
    int was_closed = self->closed, serving = self->serving;
    self->closed = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    if (was_closed) {
        Py_RETURN_TRUE;
    }
    if (unlinks) {
        Py_BEGIN_ALLOW_THREADS
        vmscope_unlink_socket();
        Py_END_ALLOW_THREADS
    }
    if (last && !serving) {
        Py_RETURN_TRUE;
    }
    int ended = vmscope_thread_stop(&self->servant, timeout);
    return PyBool_FromLong((last || vmscope_thread_stop(&self->talker, timeout)) && ended);
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
     "open(path, temporary): makes the socket and starts to serve it. OSError where that cannot be."},
    {"settle", listener_settle, METH_NOARGS, "After open: takes the socket out of the program's descriptors."},
    {"close", listener_close, METH_VARARGS,
     "close(timeout, last=False, unlink=True): takes the socket away; False where a command has not ended in so many ns.\n"
     "At the `last` moment of the process a thread that only sleeps is not waited for. Where the disk is stuck, `unlink`\n"
     "would be too."},
    {NULL},
};

static PyGetSetDef listener_getset[] = {
    {"connections", listener_connections, NULL, "How many clients are connected.", NULL},
    {NULL},
};

static PyType_Slot listener_slots[] = {
    {Py_tp_doc, "Listener(serve)\n--\n\nAnswers the attach protocol: calls `serve(call)` for each request. Where that returns an iterator,\n"
                "each `next` is a step of the command: others, forks and the end of the process come between two of them."},
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
    NativeState *state = vmscope_state(module);
    state->call = vmscope_add_type(module, &call_spec, NULL);
    PyTypeObject *type = state->call == NULL ? NULL : vmscope_add_type(module, &listener_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}
