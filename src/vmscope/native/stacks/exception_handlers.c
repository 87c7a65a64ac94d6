/* Which of the running functions may catch an exception: those with a handler for where they are. */
#include "events/dispatch.h"

/* The next number of an exception table: six bits a byte, the highest first. */
static int
read_number(const unsigned char **at)
{
    int value = **at & 0x3F;
    while (*(*at)++ & 0x40) {
        value = value << 6 | (**at & 0x3F);
    }
    return value;
}

static int
has_handler(const PyCodeObject *code, int offset)
{
    const unsigned char *at = (unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
    while (at < end) {
        int start = read_number(&at) * 2, length = read_number(&at) * 2;
        read_number(&at); /* the handler, */
        read_number(&at); /* and what it finds on the stack */
        if (offset >= start && offset < start + length) {
            return 1;
        }
    }
    return 0;
}

static PyObject *
handling_frame(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyFrameObject *frame;
    PyObject *folder;
    Own own = {.name = NULL};
    int offset;
    if (!PyArg_ParseTuple(arguments, "O!iU", &PyFrame_Type, &frame, &offset, &folder) || own_fill(&own, folder) < 0) {
        return NULL;
    }
    Py_INCREF(frame);
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int ours = is_own(&own, (PyObject *)code), found = !ours && has_handler(code, offset);
        Py_DECREF(code);
        if (found) {
            break;
        }
        PyFrameObject *back = ours ? NULL : PyFrame_GetBack(frame);
        Py_SETREF(frame, back);
        offset = frame == NULL ? 0 : PyFrame_GetLasti(frame);
    }
    Py_DECREF(own.name);
    return Py_BuildValue("(Ni)", frame == NULL ? Py_NewRef(Py_None) : (PyObject *)frame, offset);
}

static PyMethodDef functions[] = {
    {"handling_frame", handling_frame, METH_VARARGS,
     "handling_frame(frame, offset, folder): the first frame, from this one at this offset outwards, that has a "
     "handler\n"
     "for where it is, and its offset; None and 0 where code of this folder comes before, or there is none."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_exception_handlers(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
