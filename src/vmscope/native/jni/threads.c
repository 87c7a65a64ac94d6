/* What each OS thread has as its JNIEnv, and the frames of its local references. */
#include "attributes.h"
#include "jni/interface.h"
#include "jni/gil.h"

#include <pthread.h>

#define NATIVE_MAGIC UINT64_C(0x766d73636f70654e)

VMSCOPE_THREAD_LOCAL Native *jni_here;
PyInterpreterState *jni_interpreter;
static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int have_key;
static _Atomic uint16_t last_number;
static _Atomic int living;           /* threads that have a JNIEnv */
static _Atomic int entering, closed; /* threads that are about to have the GIL; whether more may come */
static pthread_t closer;             /* which still may */

/* Threads that ended with something of Python's: whoever has the GIL next lets go of it. */
static _Atomic(Native *) orphans;

static void
native_free(Native *native)
{
    free(native->locals);
    free(native->serials);
    free(native->frames);
    free(native->postponed);
    free(native);
}

static __attribute__((cold, noinline)) void
free_orphans(void)
{
    Native *native = atomic_exchange(&orphans, NULL);
    while (native != NULL) {
        Native *next = native->next;
        while (native->count > 0) {
            Py_XDECREF(native->locals[--native->count]);
        }
        jni_drop_pending(native, NULL, IN_THREAD);
        Py_XDECREF(native->aside);
        if (native->state != NULL) {
            PyThreadState_Clear(native->state);
#if PY_VERSION_HEX >= 0x030C0000
            native->state->_status.bound_gilstate = 0; /* else this thread would be unbound from its own */
#endif
            PyThreadState_Delete(native->state);
        }
        native_free(native);
        native = next;
    }
}

void
jni_tidy(void)
{
    if (atomic_load_explicit(&orphans, memory_order_relaxed) != NULL) {
        free_orphans();
    }
}

#if PY_VERSION_HEX >= 0x030C0000 /* before, this could not be asked for by a thread that Python does not know */
static int
tidy_later(void *Py_UNUSED(ignored))
{
    jni_tidy();
    return 0;
}
#endif

/* At the thread's end. Python's objects need the GIL, which a thread that ends does not wait for: an agent may be
 * waiting for its end, with the GIL. */
static void
thread_ends(void *pointer)
{
    Native *native = pointer;
    jni_here = NULL;
    atomic_fetch_sub(&living, 1);
    if (native->count == 0 && native->pending == NULL && native->aside == NULL && native->state == NULL) {
        native_free(native);
    } else if (Py_IsInitialized()) {
        native->next = atomic_load(&orphans);
        while (!atomic_compare_exchange_weak(&orphans, &native->next, native)) {
        }
#if PY_VERSION_HEX >= 0x030C0000
        (void)Py_AddPendingCall(tidy_later, NULL);
#endif
    }
}

/* Their states went with the threads that there are not in a child. */
static void
after_fork(void)
{
    atomic_store(&orphans, NULL);
    atomic_store(&entering, 0);
    atomic_store(&living, jni_here != NULL);
}

static void
make_key(void)
{
    have_key = pthread_key_create(&ending, thread_ends) == 0;
    pthread_atfork(NULL, NULL, after_fork);
}

__attribute__((cold, noinline)) Native *
jni_new_native(void)
{
    pthread_once(&once, make_key);
    Native *native = calloc(1, sizeof *native);
    if (native == NULL || !have_key || pthread_setspecific(ending, native) != 0) {
        free(native);
        return NULL;
    }
    native->functions = jni_functions;
    native->magic = NATIVE_MAGIC;
    native->number = atomic_fetch_add(&last_number, 1) + 1;
    atomic_fetch_add(&living, 1);
    return jni_here = native;
}

/* Everything here is the main interpreter's: a thread that runs another one is not attached. */
static int
is_main(const PyThreadState *state)
{
    return state != NULL && state->interp == jni_interpreter;
}

int
jni_closed(void)
{
    return atomic_load(&closed) && !pthread_equal(closer, pthread_self());
}

int
jni_attached(void)
{
    if (jni_closed() || (jni_here != NULL && jni_here->without_python) || !Py_IsInitialized() ||
        !is_main(PyGILState_GetThisThreadState())) {
        return 0;
    }
#if PY_VERSION_HEX < 0x030C0000 /* later that is the state that runs, or ran last, on this thread */
    const PyThreadState *running = _PyThreadState_UncheckedGet(); /* any thread's */
    if (running != NULL && running->thread_id == PyThread_get_thread_ident() && !is_main(running)) {
        return 0;
    }
#endif
    return 1;
}

/* -- the end ------------------------------------------------------------------------------------------ */

#define SHORTEST_WAIT 5  /* ms, where there are other threads: one may be looking at its state, which goes */
#define LONGEST_WAIT 100 /* ms, for threads that are just coming in */

PyGILState_STATE
jni_ensure(void)
{
    atomic_fetch_add(&entering, 1);
    if (jni_closed()) { /* since it was asked whether it is attached */
        atomic_fetch_sub(&entering, 1);
        jni_stay(NULL);
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    atomic_fetch_sub(&entering, 1);
    return gil;
}

static PyObject *
py_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    closer = pthread_self();
    atomic_store(&closed, 1);
    int shortest = atomic_load(&living) > (jni_here != NULL) ? SHORTEST_WAIT : 0;
    for (int waited = 0; waited < LONGEST_WAIT && (waited < shortest || atomic_load(&entering) > 0); waited++) {
        Py_BEGIN_ALLOW_THREADS
        usleep(1000);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"end", py_end, METH_NOARGS, "end(): Python is about to go: other threads of agents' come into it no more."},
    {NULL, NULL, 0, NULL},
};

int
jni_add_threads(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

/* -- exceptions --------------------------------------------------------------------------------------- */

PyObject *
jni_fetch(void)
{
    return raised();
}

/* Whether a signal's handler has raised it. */
static int
from_signal(PyObject *error)
{
    if (PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) {
        return 1;
    }
    PyObject *answer = vmscope_call_method(jni_bridge, "from_signal", "(O)", error);
    int is = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is;
}

/* Takes over an exception, where it is to be put aside; the first one counts. */
static int
put_aside(PyObject *error)
{
    Native *native = jni_native();
    if (native == NULL || !from_signal(error)) {
        return 0;
    }
    if (native->aside == NULL) {
        native->aside = error;
    } else {
        Py_DECREF(error);
    }
    return 1;
}

void
jni_swallow(void)
{
    PyObject *error = jni_fetch();
    if (error != NULL && !put_aside(error)) {
        Py_DECREF(error);
    }
}

int
jni_raise_aside(Native *native)
{
    PyObject *error = native->aside;
    if (error == NULL) {
        return 0;
    }
    native->aside = NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return -1;
}

void
jni_drop_pending(Native *native, const void *environment, int place)
{
    PyObject *error = native->pending;
    if (error == NULL) {
        return;
    }
    native->pending = NULL;
    if (put_aside(error)) {
        return;
    }
    PyObject *whose = environment == NULL ? Py_None : ((const Environment *)environment)->environment;
    PyObject *done = vmscope_call_method(jni_bridge, "left_pending", "(OiO)", whose, place, error);
    if (done == NULL) {
        jni_swallow();
    }
    Py_XDECREF(done);
    Py_DECREF(error);
}

/* -- frames --------------------------------------------------------------------------------------------- */

static int
push(Native *native, uint32_t own)
{
    if (native->depth == native->room) {
        uint32_t room = native->room ? 2 * native->room : 16;
        uint32_t *frames = realloc(native->frames, room * sizeof *frames);
        if (frames == NULL) {
            return -1;
        }
        native->frames = frames;
        native->room = room;
    }
    native->frames[native->depth++] = native->count | own;
    return 0;
}

uint32_t
jni_frame_begin(const Native *native)
{
    return native->depth ? native->frames[native->depth - 1] & ~OWN_FRAME : 0;
}

static void
pop(Native *native)
{
    uint32_t begin = jni_frame_begin(native);
    native->depth--;
    while (native->count > begin) {
        uint32_t place = --native->count;
        PyObject *object = native->locals[place];
        native->serials[place]++;
        native->locals[place] = NULL;
        Py_XDECREF(object); /* may run code that makes references, above this place, and drops them */
    }
}

static int
in_own_frame(const Native *native)
{
    return native->depth && native->frames[native->depth - 1] & OWN_FRAME;
}

int
jni_push_frame(Native *native)
{
    return push(native, 0);
}

void
jni_pop_frame(Native *native)
{
    while (in_own_frame(native)) {
        pop(native);
    }
    pop(native);
}

uint32_t
jni_calls(const Native *native)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < native->depth; i++) {
        calls += !(native->frames[i] & OWN_FRAME);
    }
    return calls;
}

int
jni_push_own_frame(Native *native)
{
    return push(native, OWN_FRAME);
}

int
jni_pop_own_frame(Native *native)
{
    if (!in_own_frame(native)) {
        return 0;
    }
    pop(native);
    return 1;
}
