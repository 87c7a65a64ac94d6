/* Taking and giving away the GIL on threads that run an agent's code.
 *
 * A thread that asks for the GIL while the interpreter ends never gets it: CPython ends such a thread by pthread_exit,
 * which would unwind an agent's frames; those of C++ may end the process. So there it stays, until the process ends.
 * One that asks when the interpreter has gone would find nothing there: so before that the way in is closed. */
#ifndef VMSCOPE_JNI_GIL_H
#define VMSCOPE_JNI_GIL_H

#include "native.h"

#include <pthread.h>
#include <unistd.h>

/* PyGILState_Ensure, while the way in is open. */
PyGILState_STATE jni_ensure(void);

static inline void
jni_stay(void *Py_UNUSED(ignored))
{
    for (;;) {
        pause();
    }
}

/* The calling thread's state, where it has the GIL; NULL where it has not. PyGILState_Check says yes to all threads
 * once there has been a sub-interpreter. */
static inline PyThreadState *
jni_gil_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet();
#else
    PyThreadState *running = _PyThreadState_UncheckedGet(); /* any thread's */
    return running != NULL && running == PyGILState_GetThisThreadState() ? running : NULL;
#endif
}

/* Gives the GIL away, where this thread has it: what jni_take_gil then takes back, or NULL. */
static inline PyThreadState *
jni_release_gil(void)
{
    return jni_gil_state() == NULL ? NULL : PyEval_SaveThread();
}

static inline void
jni_take_gil(PyThreadState *state)
{
    if (state != NULL) {
        pthread_cleanup_push(jni_stay, NULL);
        PyEval_RestoreThread(state);
        pthread_cleanup_pop(0);
    }
}

/* What stands between these two has the GIL: on a thread that Python knows. Nothing there returns. */
#define JNI_WITH_GIL                                                                                                   \
    {                                                                                                                  \
        PyGILState_STATE gil;                                                                                          \
        pthread_cleanup_push(jni_stay, NULL);                                                                          \
        gil = jni_ensure();

#define JNI_WITHOUT_GIL                                                                                                \
    PyGILState_Release(gil);                                                                                           \
    pthread_cleanup_pop(0);                                                                                            \
    }

#endif
