/* A request as the command sees it that answers it, and what is queued of the reply. */
#define _GNU_SOURCE
#include "attach/listener.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8192
#define ENOUGH 16384 /* bytes that are sent without waiting for more */

typedef struct {
    PyObject_HEAD Listener *listener;
    int place;
    uint64_t serial; /* of the request: the place has another one some time */
    int version;
    pid_t pid;
    uid_t uid;
    PyObject *operation, *options, *arguments;
    PyObject *snapshot; /* of the threads, as of the request; None: it does not ask for them */
} Call;

/* With the mutex held: its connection, or NULL: the client has gone, the reply is complete, or the listener closed. */
static Connection *
connection_of(Call *call)
{
    Connection *connection = &call->listener->connections[call->place];
    int open = connection->stage == SERVED && connection->serial == call->serial && !connection->gone;
    return open && !call->listener->closed ? connection : NULL;
}

void
vmscope_kick(Thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    vmscope_thread_kick(thread);
    pthread_mutex_unlock(&thread->mutex);
}

static PyObject *
raise_gone(Call *call)
{
    PyObject *error =
        PyErr_Format(PyExc_BrokenPipeError, "the client of the command (pid %d) has gone", (int)call->pid);
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

Py_ssize_t
vmscope_append(Listener *self, Connection *connection, const char *bytes, size_t length)
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
    vmscope_kick(&self->io_thread);
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
            count = vmscope_append(self, connection, (char *)bytes.buf + done, (size_t)(bytes.len - done));
            much = connection->written - connection->sent >= ENOUGH;
        }
        pthread_mutex_unlock(&self->mutex);
        if (!alive || count < 0) {
            break;
        }
        if (much) {
            vmscope_kick(&self->io_thread);
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
        (void)vmscope_append(self, connection, line, (size_t)length);
    }
    pthread_mutex_unlock(&self->mutex);
    vmscope_kick(&self->io_thread);
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
    vmscope_kick(&call->listener->io_thread);
    Py_RETURN_NONE;
}

static void
call_dealloc(PyObject *object)
{
    Call *self = (Call *)object;
    Py_XDECREF(self->operation);
    Py_XDECREF(self->options);
    Py_XDECREF(self->arguments);
    Py_XDECREF(self->snapshot);
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
    {"snapshot", get_object, NULL, "A StackSnapshot as of the moment when a thread dump was asked for; else None.",
     (void *)offsetof(Call, snapshot)},
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

/* The request stays where it is while it is served: the I/O thread reads no more of this connection. */
PyObject *
vmscope_make_call(Listener *self, Connection *connection)
{
    Call *call = (Call *)self->call_type->tp_alloc(self->call_type, 0);
    if (call == NULL) {
        return NULL;
    }
    size_t begin, end;
    call->listener = (Listener *)Py_NewRef((PyObject *)self);
    call->place = (int)(connection - self->connections);
    call->serial = connection->serial;
    call->pid = connection->client.pid;
    call->uid = connection->client.uid;
    (void)vmscope_frame(connection->request, connection->length, &call->version, &begin, &end);
    ThreadDump *dump = connection->dump;
    connection->dump = NULL;
    call->snapshot = dump == NULL ? Py_NewRef(Py_None)
                                  : vmscope_stack_snapshot_of(vmscope_state_of((PyObject *)self)->snapshot, dump);
    if (call->snapshot == NULL || parse(call, connection->request + begin, connection->request + end) < 0) {
        Py_DECREF(call);
        return NULL;
    }
    return (PyObject *)call;
}

void
vmscope_answer_failure(PyObject *object)
{
    Call *call = (Call *)object;

    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = PyUnicode_FromFormat("-1\n%S failed: %S\n", call->operation, value == NULL ? Py_None : value);
    PyObject *bytes = text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    pthread_mutex_lock(&call->listener->mutex);
    Connection *connection = connection_of(call);
    int silent = connection != NULL && !connection->begun;
    pthread_mutex_unlock(&call->listener->mutex);
    Py_XDECREF(silent && bytes != NULL ? call_write(object, bytes) : NULL);
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

int
vmscope_add_call(PyObject *module)
{
    NativeState *state = vmscope_state(module);
    state->call = vmscope_add_type(module, &call_spec, NULL);
    return state->call == NULL ? -1 : 0;
}
