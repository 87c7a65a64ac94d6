/* What dispatchers and chains share: code that is not reported, what callbacks raise, and room for them to run in. */
#ifndef VMSCOPE_DISPATCH_H
#define VMSCOPE_DISPATCH_H

#include "native.h"

#include <structmember.h>

#define MOST_ARGUMENTS 6 /* arguments of an event, after the thread */

/* New objects (allocations.c): within how many dispatches this thread is, that no trace function of CPython's hides; what
 * it makes there is not reported. And whether the time to report others came then, or while it was being traced. */
extern VMSCOPE_THREAD_LOCAL int vmscope_dispatching, vmscope_late;
void vmscope_ask_late(void);

/* What traced this thread is over, or about to be. */
static inline void
was_late(void)
{
    if (__builtin_expect(vmscope_late, 0)) {
        vmscope_ask_late();
    }
}

static inline PyObject *
call_apart(PyObject *function, PyObject *const *args, size_t given)
{
    vmscope_dispatching++;
    PyObject *result = PyObject_Vectorcall(function, args, given, NULL);
    vmscope_dispatching--;
    was_late();
    return result;
}

/* How the file names of code begin that is not reported: that of the tool interface itself. */
typedef struct {
    PyObject *name;
    const char *prefix; /* the same, where it is ASCII */
    Py_ssize_t length;
} Own;

static inline int
own_fill(Own *own, PyObject *name)
{
    if (PyUnicode_GET_LENGTH(name) == 0) {
        PyErr_SetString(PyExc_ValueError, "own code has a folder");
        return -1;
    }
    own->name = Py_NewRef(name);
    own->length = PyUnicode_GET_LENGTH(name);
    own->prefix = PyUnicode_IS_COMPACT_ASCII(name) ? (const char *)PyUnicode_DATA(name) : NULL;
    return 0;
}

static inline int
is_own(const Own *own, PyObject *code)
{
    if (!PyCode_Check(code)) {
        return 0;
    }
    PyObject *name = ((PyCodeObject *)code)->co_filename;
    if (own->prefix != NULL && PyUnicode_IS_COMPACT_ASCII(name)) {
        const char *text = (const char *)((PyASCIIObject *)name + 1);
        Py_ssize_t last = own->length - 1; /* a separator, which seldom stands just there in another name */
        return PyUnicode_GET_LENGTH(name) > last && text[last] == own->prefix[last] &&
               memcmp(text, own->prefix, (size_t)last) == 0;
    }
    return PyUnicode_Tailmatch(name, own->name, 0, PY_SSIZE_T_MAX, -1) == 1;
}

/* The interrupt that was kept is raised now: 0, or -1 where there was one. */
static inline int
let_go(PyObject *interrupt)
{
    if (interrupt == NULL) {
        return 0;
    }
    raise_again(interrupt);
    return -1;
}

/* Frames that a callback may use when the program has come near the limit of its recursion, which it must not notice. */
#define ROOM 200

/* How many were lent: to be taken back afterwards. */
static inline int
lend_room(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030C0000
    int lent = state->py_recursion_remaining < ROOM ? ROOM : 0;
    state->py_recursion_remaining += lent;
#else
    int lent = state->recursion_remaining < ROOM ? ROOM : 0;
    state->recursion_remaining += lent;
#endif
    return lent;
}

static inline void
take_room_back(PyThreadState *state, int lent)
{
    if (lent != 0) {
#if PY_VERSION_HEX >= 0x030C0000
        state->py_recursion_remaining -= lent;
#else
        state->recursion_remaining -= lent;
#endif
    }
}

#endif
