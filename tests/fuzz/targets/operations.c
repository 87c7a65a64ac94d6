/* What the I/O thread does for a request itself, held against what the command thread would read in it. */
#include "attach/answers.c"
#include "python.h"

/* What belongs to the threads, the sockets and the children, of which there are none here. */
int
vmscope_exceeds_main(int Py_UNUSED(unknown))
{
    return 0;
}

int
vmscope_may_attach(uid_t uid, gid_t Py_UNUSED(gid))
{
    return uid == 0;
}

int64_t
vmscope_now(void)
{
    return 0;
}

void
vmscope_kick(Thread *Py_UNUSED(thread))
{
}

void
vmscope_reply(Listener *Py_UNUSED(self), Connection *connection, const char *reply)
{
    connection->stage = ENDING;
    connection->reply = (char *)reply;
}

void
vmscope_watch_child(Listener *Py_UNUSED(self), pid_t Py_UNUSED(pid))
{
}

ThreadDump *
vmscope_take_dump(void)
{
    return NULL;
}

int
vmscope_dump_is_late(ThreadDump *Py_UNUSED(self), int64_t Py_UNUSED(now), int64_t *Py_UNUSED(wait))
{
    return 0;
}

char *
vmscope_write_dump(const ThreadDump *Py_UNUSED(self), size_t *Py_UNUSED(length))
{
    return NULL;
}

void
vmscope_give_up(Listener *Py_UNUSED(self), Connection *Py_UNUSED(connection))
{
}

Py_ssize_t
vmscope_append(Listener *Py_UNUSED(self), Connection *Py_UNUSED(connection), const char *Py_UNUSED(bytes),
               size_t length)
{
    return (Py_ssize_t)length;
}

/* take_up(uid, strings): the reply or None, whether threads are to be looked at, and whether that is all. */
static PyObject *
take_up(PyObject *Py_UNUSED(self), PyObject *arguments)
{
    static Listener listener;
    unsigned int uid;
    const char *bytes;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "Iy#", &uid, &bytes, &length)) {
        return NULL;
    }
    char *strings = malloc((size_t)length); /* so that the sanitizer sees what lies behind it */
    if (strings == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(strings, bytes, (size_t)length);
    Connection connection = {.stage = ARRIVING, .client = {.uid = uid}};
    vmscope_take_up(&listener, &connection, strings, strings + length);
    free(strings);
    PyObject *looking = connection.stage == LOOKING ? Py_True : Py_False;
    return Py_BuildValue("zOi", connection.reply, looking, connection.plain);
}

static PyMethodDef take_up_function = {"take_up", take_up, METH_VARARGS, NULL};

static int
add_take_up(PyObject *part)
{
    return PyModule_AddObjectRef(part, "take_up", PyCFunction_New(&take_up_function, NULL));
}

const Fuzzed fuzzed = {.check = "operations", .add = add_take_up};
