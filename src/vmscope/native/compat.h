/* What differs between the versions of CPython, and between C libraries, and is wanted in more than one place or follows
 * from their internals. */
#ifndef VMSCOPE_COMPAT_H
#define VMSCOPE_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sched.h>

/* Whether the C library is glibc, of this version or a later one. */
#ifdef __GLIBC__
#define VMSCOPE_GLIBC(major, minor) __GLIBC_PREREQ(major, minor)
#else
#define VMSCOPE_GLIBC(major, minor) 0
#endif

/* A variable that each thread has of its own. glibc keeps room for those of a few libraries that are loaded later. There
 * neither a call is needed to find it nor memory, as in a signal's handler. musl loads no library that asks for that, and
 * needs no memory either. */
#ifdef __GLIBC__
#define VMSCOPE_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define VMSCOPE_THREAD_LOCAL _Thread_local
#endif

/* An int so small that its value stands in its head: all that most updates are given. */
#if PY_VERSION_HEX >= 0x030C0000
#define VMSCOPE_IS_COMPACT(number) PyUnstable_Long_IsCompact((PyLongObject *)(number))
#define VMSCOPE_COMPACT_VALUE(number) PyUnstable_Long_CompactValue((PyLongObject *)(number))
#else
#define VMSCOPE_IS_COMPACT(number) ((size_t)(Py_SIZE(number) + 1) <= 2)
#define VMSCOPE_COMPACT_VALUE(number) (Py_SIZE(number) * (Py_ssize_t)((PyLongObject *)(number))->ob_digit[0])
#endif

/* How far behind the pointer to gc.callbacks, in words, the collector has its counts of old objects; 0: it has none, as
 * the incremental one of 3.14.0 to 3.14.4. */
static inline size_t
vmscope_old_objects(void)
{
#if PY_VERSION_HEX >= 0x030F0000
    return 2;
#elif PY_VERSION_HEX >= 0x030E0000
    return Py_Version >= 0x030E0500 ? 4 : 0;
#else
    return 1;
#endif
}

/* CPython 3.14 may run a signal's handler between `__enter__` and the block of a `with`; what that raises leaves
 * without `__exit__` (gh-148874). */
#if PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030F0000
#define VMSCOPE_WITH_IS_INTERRUPTED
#endif

/* Thread states, the newest first, with the GIL. CPython 3.11 has a new one in the list before it is filled in, which it
 * does without the GIL: so that is waited for. */
static inline PyThreadState *
vmscope_filled(PyThreadState *state)
{
#if PY_VERSION_HEX < 0x030C0000
    while (state != NULL && !__atomic_load_n(&state->_initialized, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
#endif
    return state;
}

static inline PyThreadState *
vmscope_first_state(PyInterpreterState *interpreter)
{
    return vmscope_filled(PyInterpreterState_ThreadHead(interpreter));
}

static inline PyThreadState *
vmscope_next_state(PyThreadState *state)
{
    return vmscope_filled(PyThreadState_Next(state));
}

/* Whether the calling thread may nest about 50 calls of C code and of Python before its limit of recursion (3.13 and
 * later). From 3.14 on the limit of C code is that of its stack, in steps of 16 KiB. */
#if PY_VERSION_HEX >= 0x030E0000
extern int _Py_ReachedRecursionLimitWithMargin(PyThreadState *, int) __attribute__((weak));
#endif

static inline int
vmscope_has_headroom(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030E0000
    return state->py_recursion_remaining > 50 &&
           (_Py_ReachedRecursionLimitWithMargin == NULL || !_Py_ReachedRecursionLimitWithMargin(state, 4));
#elif PY_VERSION_HEX >= 0x030D0000
    return state->py_recursion_remaining > 50 && state->c_recursion_remaining > 50;
#else
    (void)state;
    return 1;
#endif
}

/* What was raised, taken off the thread state. */
static inline PyObject *
raised(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

static inline void
raise_again(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
#endif
}

#endif
