/* The framing of the attach protocol, on bytes that anybody may have sent.
 *
 * Version 1: "1", the operation and three arguments, each with its NUL. Version 2: "2", the number of bytes that
 * follow, and in these the operation and any number of arguments. */
#define _GNU_SOURCE
#include "attach/listener.h"

#include <string.h>

#define VERSION_DIGITS 8
#define LENGTH_DIGITS 8
#define STRINGS_1 4

static Frame
incomplete_up_to(size_t length, size_t most)
{
    return length < most ? FRAME_INCOMPLETE : FRAME_MALFORMED;
}

static Frame
frame_1(const char *bytes, size_t length, size_t *end)
{
    size_t at = *end;
    for (int i = 0; i < STRINGS_1; i++) {
        const char *nul = memchr(bytes + at, 0, length - at);
        if (nul == NULL) {
            return incomplete_up_to(length, MAX_REQUEST_1);
        }
        at = (size_t)(nul - bytes) + 1;
    }
    *end = at;
    return at <= MAX_REQUEST_1 ? FRAME_WHOLE : FRAME_MALFORMED;
}

static Frame
frame_2(const char *bytes, size_t length, size_t *begin, size_t *end)
{
    size_t at = *begin, size = 0, digits = 0;
    while (at < length && bytes[at] >= '0' && bytes[at] <= '9' && digits < LENGTH_DIGITS) {
        size = size * 10 + (size_t)(bytes[at] - '0');
        at++;
        digits++;
    }
    if (at == length) {
        return FRAME_INCOMPLETE;
    }
    if (digits == 0 || bytes[at] != '\0' || size == 0 || size > MAX_REQUEST_2) {
        return FRAME_MALFORMED;
    }
    *begin = at + 1;
    if (length - *begin < size) {
        return FRAME_INCOMPLETE;
    }
    *end = *begin + size;
    return bytes[*end - 1] == '\0' ? FRAME_WHOLE : FRAME_MALFORMED;
}

Frame
vmscope_frame(const char *bytes, size_t length, int *version, size_t *begin, size_t *end)
{
    const char *nul = memchr(bytes, 0, length);
    if (nul == NULL) {
        return length <= VERSION_DIGITS ? FRAME_INCOMPLETE : FRAME_VERSION;
    }
    *version = strcmp(bytes, "1") == 0 ? 1 : strcmp(bytes, "2") == 0 ? 2 : 0;
    *begin = *end = (size_t)(nul - bytes) + 1;
    if (*version == 0) {
        return FRAME_VERSION;
    }
    return *version == 1 ? frame_1(bytes, length, end) : frame_2(bytes, length, begin, end);
}

static PyObject *
frame(PyObject *Py_UNUSED(module), PyObject *data)
{
    int version = 0;
    size_t begin = 0, end = 0;
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "a request is bytes");
        return NULL;
    }
    Frame found = vmscope_frame(PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data), &version, &begin, &end);
    return found == FRAME_WHOLE ? Py_BuildValue("iinn", found, version, (Py_ssize_t)begin, (Py_ssize_t)end)
                                : Py_BuildValue("iiii", found, 0, 0, 0);
}

static PyMethodDef frames_functions[] = {
    {"frame", frame, METH_O,
     "What the first bytes of a connection are: 0 too few, 1 a request, 2 of an unknown version, 3 malformed. Then, of "
     "a\n"
     "request, its version, and where its strings, each with its NUL, begin and end."},
    {NULL},
};

int
vmscope_add_protocol(PyObject *module)
{
    return PyModule_AddFunctions(module, frames_functions);
}
