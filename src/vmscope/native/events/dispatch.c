/* One event's way to its listeners: what sys.monitoring calls, and what calls the environments' callbacks, in order.
 *
 * An event dispatcher has a list: who listens, on which threads. A list never changes; a new one takes its place. So a dispatch
 * that is under way goes on with the list that it began with, and asks the new one whether each listener is still there.
 *
 * Which thread this is stands in a thread_cache: the Thread object of the thread state that called last on this OS thread. It
 * is borrowed; the thread state's own storage has the reference, and empties the thread_cache before it gives that up. */
#include "events/dispatch.h"
#include "attributes.h"

#include <structmember.h>

typedef enum { ENTRY, RETURN, UNWIND, PLAIN } Shape;

static const char *const shapes[] = {"entry", "return", "unwind", "plain"};
static const size_t least[] = {1, 3, 1, 0}; /* arguments that each needs */

typedef struct {
    PyObject *environment; /* these are borrowed from the list's rows */
    PyObject *callback;
    vectorcallfunc call;
    PyObject *threads; /* a tuple, or NULL: every thread */
    int failing;       /* the last call raised */
} Listener;

typedef struct {
    Py_ssize_t references;
    PyObject *rows; /* what it was made of */
    Py_ssize_t count;
    int everywhere; /* one of them listens on every thread */
    Listener listeners[];
} ListenerList;

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    ListenerList *list; /* NULL: none listens */
    uint64_t serial;
    Shape shape;
    size_t least;
    PyObject *event;
    PyObject *current; /* gives the calling thread's Thread */
    Own own;
} EventDispatcher;

typedef struct {
    PyThreadState *state;
    uint64_t id;
    uint64_t serial;  /* of the dispatchers that filled it: those of one interpreter, with one `current` */
    PyObject *thread; /* NULL: this thread state has ended, and sends nothing any more */
} ThreadCache;

static VMSCOPE_THREAD_LOCAL ThreadCache thread_cache;

#if PY_VERSION_HEX >= 0x030D0000
#define LOCKED(self) Py_BEGIN_CRITICAL_SECTION(self)
#define UNLOCKED() Py_END_CRITICAL_SECTION()
#else
#define LOCKED(self) {
#define UNLOCKED() }
#endif

/* -- lists --------------------------------------------------------------------------------------- */

static __attribute__((cold, noinline)) void
list_free(ListenerList *list)
{
    Py_DECREF(list->rows);
    PyMem_Free(list);
}

static ListenerList *
list_take(EventDispatcher *self)
{
    ListenerList *list;
    LOCKED(self);
    list = self->list;
    if (list != NULL) {
        list->references++;
    }
    UNLOCKED();
    return list;
}

static void
list_release(EventDispatcher *self, ListenerList *list)
{
    int last;
    LOCKED(self);
    last = --list->references == 0;
    UNLOCKED();
    if (last) {
        list_free(list);
    }
    (void)self;
}

static int
listener_fill(Listener *listener, PyObject *row)
{
    PyObject *environment, *callback, *threads;
    int failing;
    if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "OOOp;a listener is (environment, callback, threads, failing)",
                                                 &environment, &callback, &threads, &failing)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a listener is a tuple (environment, callback, threads, failing)");
        }
        return -1;
    }
    if (threads != Py_None && !PyTuple_Check(threads)) {
        PyErr_SetString(PyExc_TypeError, "a listener's threads are a tuple, or None for every thread");
        return -1;
    }
    listener->environment = environment;
    listener->callback = callback;
    listener->call = PyVectorcall_Function(callback);
    if (listener->call == NULL) {
        listener->call = PyObject_Vectorcall;
    }
    listener->threads = threads == Py_None ? NULL : threads;
    listener->failing = failing;
    return 0;
}

static PyObject *
dispatcher_listen(PyObject *object, PyObject *rows)
{
    EventDispatcher *self = (EventDispatcher *)object;
    if (!PyTuple_Check(rows)) {
        return PyErr_Format(PyExc_TypeError, "an event dispatcher listens for a tuple of listeners, not %.100s",
                            Py_TYPE(rows)->tp_name);
    }
    Py_ssize_t count = PyTuple_GET_SIZE(rows);
    ListenerList *list = NULL;
    if (count > 0) {
        list = PyMem_Calloc(1, sizeof(ListenerList) + (size_t)count * sizeof(Listener));
        if (list == NULL) {
            return PyErr_NoMemory();
        }
        list->references = 1;
        list->rows = Py_NewRef(rows);
        list->count = count;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (listener_fill(&list->listeners[i], PyTuple_GET_ITEM(rows, i)) < 0) {
                list_free(list);
                return NULL;
            }
            list->everywhere |= list->listeners[i].threads == NULL;
        }
    }
    ListenerList *old;
    LOCKED(self);
    old = self->list;
    self->list = list;
    UNLOCKED();
    if (old == NULL) {
        return PyTuple_New(0);
    }
    PyObject *before = Py_NewRef(old->rows);
    list_release(self, old);
    return before;
}

/* -- threads ------------------------------------------------------------------------------------- */

/* Gives the calling thread its thread_cache; NULL with a KeyboardInterrupt set, or without, when its Thread cannot be made. */
static __attribute__((cold, noinline)) PyObject *
fill_thread_cache(EventDispatcher *self, PyThreadState *state)
{
    PyObject *thread = PyObject_CallNoArgs(self->current);
    if (thread == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        return NULL;
    }
    thread_cache = (ThreadCache){state, state->id, self->serial, thread};
    Py_DECREF(thread); /* the thread state's own storage keeps it */
    return thread;
}

/* The calling thread's Thread: borrowed. NULL when it has ended, or as above. */
static inline PyObject *
cached_thread(EventDispatcher *self, PyThreadState *state)
{
    if (thread_cache.state == state && thread_cache.id == state->id && thread_cache.serial == self->serial) {
        return thread_cache.thread;
    }
    return fill_thread_cache(self, state);
}

/* leave_thread(thread, reference): called as what the thread's own storage keeps goes; from now on the thread sends
 * nothing. What it runs is not traced: a debugger, to which the thread has ended, would take it for another. */
static PyObject *
leave_thread(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "leave_thread needs a thread");
        return NULL;
    }
    PyThreadState *state = PyThreadState_Get();
    PyThreadState_EnterTracing(state);
    PyObject *ended = vmscope_call_method(args[0], "end", NULL);
    PyThreadState_LeaveTracing(state);
    if (thread_cache.thread == args[0]) {
        thread_cache.thread = NULL;
    }
    return ended;
}

/* enter_thread(thread): what the calling thread sends is this Thread's from now on, which its own storage keeps. */
static PyObject *
enter_thread(PyObject *module, PyObject *thread)
{
    (void)module;
    if (thread_cache.thread != NULL) {
        thread_cache.thread = thread;
    }
    Py_RETURN_NONE;
}

static inline int
hears(const Listener *listener, PyObject *thread)
{
    if (listener->threads == NULL) {
        return 1;
    }
    for (Py_ssize_t i = PyTuple_GET_SIZE(listener->threads); i-- > 0;) {
        if (PyTuple_GET_ITEM(listener->threads, i) == thread) {
            return 1;
        }
    }
    return 0;
}

/* -- dispatch ------------------------------------------------------------------------------------ */

/* A callback raised: a KeyboardInterrupt is kept for the program, the first of them; all else is the environment's,
 * which raises it again when it is not for it. */
static __attribute__((cold)) void
callback_failed(EventDispatcher *self, Listener *listener, PyObject **interrupt)
{
    PyObject *reported = NULL; /* what the environment has had reported: raised again, it is the program's */
    while (PyErr_Occurred()) {
        PyObject *error = raised();
        if (error == reported || PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)) {
            if (*interrupt == NULL) {
                *interrupt = Py_NewRef(error);
            }
        } else if (reported != NULL) { /* the environment could not even log it */
            raise_again(Py_NewRef(error));
            PyErr_WriteUnraisable((PyObject *)self);
        } else {
            listener->failing = 1;
            reported = Py_NewRef(error);
            PyObject *done = vmscope_call_method(listener->environment, "failed", "(OO)", self->event, error);
            Py_XDECREF(done);
        }
        Py_DECREF(error);
    }
    Py_XDECREF(reported);
}

/* It went well: earlier failures do not count any more. */
static __attribute__((cold)) void
callback_recovered(EventDispatcher *self, Listener *listener)
{
    listener->failing = 0;
    PyObject *failures = vmscope_attribute(listener->environment, "failures");
    PyObject *count = failures == NULL ? NULL : vmscope_call_method(failures, "pop", "(OO)", self->event, Py_None);
    Py_XDECREF(count);
    Py_XDECREF(failures);
    if (count == NULL) {
        PyErr_WriteUnraisable((PyObject *)self);
    }
}

static inline __attribute__((always_inline)) void
call(EventDispatcher *self, Listener *listener, PyObject **values, size_t count, PyObject **interrupt)
{
    values[1] = listener->environment;
    PyObject *result = listener->call(listener->callback, values + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (__builtin_expect(result == NULL, 0)) {
        callback_failed(self, listener, interrupt);
        return;
    }
    Py_DECREF(result);
    if (__builtin_expect(listener->failing, 0)) {
        callback_recovered(self, listener);
    }
}

/* The same environment's listener in the list that took the place of the one a dispatch began with. */
static Listener *
still_there(ListenerList *list, PyObject *environment, PyObject *thread)
{
    for (Py_ssize_t i = 0; i < list->count; i++) {
        Listener *listener = &list->listeners[i];
        if (listener->environment == environment) {
            return hears(listener, thread) ? listener : NULL;
        }
    }
    return NULL;
}

static __attribute__((cold, noinline)) void
call_if_there(EventDispatcher *self, PyObject *environment, PyObject *thread, PyObject **values, size_t count,
              PyObject **interrupt)
{
    ListenerList *now = list_take(self);
    if (now != NULL) {
        Listener *listener = still_there(now, environment, thread);
        if (listener != NULL) {
            call(self, listener, values, count, interrupt);
        }
        list_release(self, now);
    }
}

/* Calls each listener. 0, or -1 with a KeyboardInterrupt set. `values`: a place for a bound method's self, one for the
 * environment, the thread, then the event's own; `count` is without the first. */
static inline __attribute__((always_inline)) int
tell(EventDispatcher *self, ListenerList *list, PyThreadState *state, PyObject **values, size_t count)
{
    PyObject *interrupt = NULL, *thread = values[2];
    int lent = lend_room(state);
    for (Py_ssize_t i = 0; i < list->count; i++) {
        Listener *listener = &list->listeners[i];
        if (!hears(listener, thread)) {
            continue;
        }
        if (__builtin_expect(self->list != list, 0)) {
            call_if_there(self, listener->environment, thread, values, count, &interrupt);
            continue;
        }
        call(self, listener, values, count, &interrupt);
    }
    take_room_back(state, lent);
    was_late();
    return let_go(interrupt);
}

static int
dispatch(EventDispatcher *self, ListenerList *list, PyThreadState *state, PyObject *thread, PyObject *const *args,
         size_t given)
{
    PyObject *values[3 + MOST_ARGUMENTS];
    size_t count = 2 + given;
    values[2] = thread;
    switch (self->shape) {
    case ENTRY:
        values[3] = args[0];
        count = 3;
        break;
    case RETURN:
    case UNWIND:
        values[3] = args[0];
        values[4] = self->shape == UNWIND ? Py_True : Py_False;
        values[5] = self->shape == UNWIND ? Py_None : args[2];
        count = 5;
        break;
    case PLAIN:
        for (size_t i = 0; i < given; i++) {
            values[3 + i] = args[i];
        }
        break;
    }
    return tell(self, list, state, values, count);
}

/* Whether an environment listens on this thread: all that a thread pays where none does. */
static inline int
heard(const ListenerList *list, PyObject *thread)
{
    if (list->everywhere) {
        return 1;
    }
    for (Py_ssize_t i = 0; i < list->count; i++) {
        if (hears(&list->listeners[i], thread)) {
            return 1;
        }
    }
    return 0;
}

static PyObject *
dispatcher_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    EventDispatcher *self = (EventDispatcher *)object;
    size_t given = (size_t)PyVectorcall_NARGS(flags);
    if (names != NULL || given < self->least || given > MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError,
                        "an event dispatcher is called as sys.monitoring calls, or with its event's arguments");
        return NULL;
    }
    int status = 0;
    ListenerList *list = list_take(self);
    if (list != NULL) {
        PyThreadState *state = PyThreadState_Get();
        PyObject *thread = cached_thread(self, state);
        if (thread == NULL) {
            status = PyErr_Occurred() == NULL ? 0 : -1;
        } else if (heard(list, thread) && (self->shape == PLAIN || !is_own(&self->own, args[0]))) {
            status = dispatch(self, list, state, thread, args, given);
        }
        list_release(self, list);
    }
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* The same for a method's entry, which comes most often. */
static PyObject *
entry_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    EventDispatcher *self = (EventDispatcher *)object;
    ListenerList *list;
    if (__builtin_expect(names != NULL || PyVectorcall_NARGS(flags) == 0, 0)) {
        return dispatcher_call(object, args, flags, names);
    }
    if (__builtin_expect((list = list_take(self)) == NULL, 0)) {
        Py_RETURN_NONE;
    }
    PyThreadState *state = PyThreadState_Get();
    PyObject *values[] = {NULL, NULL, cached_thread(self, state), args[0]};
    int status;
    if (__builtin_expect(values[2] == NULL, 0)) {
        status = PyErr_Occurred() == NULL ? 0 : -1;
    } else if (!heard(list, values[2]) || is_own(&self->own, args[0])) {
        status = 0;
    } else {
        status = tell(self, list, state, values, 3);
    }
    list_release(self, list);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* -- the type ------------------------------------------------------------------------------------ */

static PyObject *
dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", "", "", NULL};
    PyObject *event, *current, *own;
    const char *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsOU:EventDispatcher", names, &event, &name, &current, &own)) {
        return NULL;
    }
    int shape = PLAIN;
    while (shape >= 0 && strcmp(name, shapes[shape]) != 0) {
        shape--;
    }
    if (shape < 0) {
        return PyErr_Format(PyExc_ValueError, "'%s' is not a shape of an event dispatcher", name);
    }
    EventDispatcher *self = (EventDispatcher *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    NativeState *state = vmscope_state_of((PyObject *)self);
    if (state == NULL || own_fill(&self->own, own) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (state->current != current) {
        static _Atomic uint64_t serials = 0;
        Py_XSETREF(state->current, Py_NewRef(current));
        state->serial = atomic_fetch_add(&serials, 1) + 1;
    }
    self->vectorcall = shape == ENTRY ? entry_call : dispatcher_call;
    self->serial = state->serial;
    self->shape = (Shape)shape;
    self->event = Py_NewRef(event);
    self->current = Py_NewRef(current);
    self->least = least[shape];
    return (PyObject *)self;
}

static int
dispatcher_traverse(PyObject *object, visitproc visit, void *arg)
{
    EventDispatcher *self = (EventDispatcher *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->event);
    Py_VISIT(self->current);
    if (self->list != NULL && self->list->references == 1) { /* else a dispatch holds it too */
        Py_VISIT(self->list->rows);
    }
    return 0;
}

static int
dispatcher_clear(PyObject *object)
{
    EventDispatcher *self = (EventDispatcher *)object;
    ListenerList *list = self->list;
    self->list = NULL;
    if (list != NULL) {
        list_release(self, list);
    }
    Py_CLEAR(self->event);
    Py_CLEAR(self->current);
    Py_CLEAR(self->own.name);
    return 0;
}

static void
dispatcher_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    dispatcher_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef dispatcher_methods[] = {
    {"listen", dispatcher_listen, METH_O,
     "listen($self, listeners, /)\n--\n\nFrom now on these are called, in this order: a tuple of tuples (environment, "
     "callback, threads or None for every thread, whether its last call failed). Gives back those of before."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef dispatcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EventDispatcher, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot dispatcher_type_slots[] = {
    {Py_tp_doc, "EventDispatcher(event, shape, current, own, /)\n--\n\nCalled as sys.monitoring calls; calls each "
                "listener with its "
                "environment, the thread, which current() gives, and what the shape makes of the arguments: \"entry\" "
                "(method), \"return\" and \"unwind\" (method, popped by exception, value), \"plain\" (as they are). "
                "Methods whose file name begins with `own` are passed over, other than in \"plain\". What a callback "
                "raises goes to its environment's failed(event, error), a KeyboardInterrupt to the program."},
    {Py_tp_new, dispatcher_new},
    {Py_tp_dealloc, dispatcher_dealloc},
    {Py_tp_traverse, dispatcher_traverse},
    {Py_tp_clear, dispatcher_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_methods, dispatcher_methods},
    {Py_tp_members, dispatcher_members},
    {0, NULL},
};

static PyType_Spec dispatcher_spec = {"vmscope.native.EventDispatcher", sizeof(EventDispatcher), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                      dispatcher_type_slots};

static PyMethodDef dispatch_functions[] = {
    {"enter_thread", enter_thread, METH_O,
     "enter_thread(thread, /)\n--\n\nWhat the calling thread sends is this Thread's from now on, whatever it was "
     "before."},
    {"leave_thread", (PyCFunction)(void (*)(void))leave_thread, METH_FASTCALL,
     "leave_thread(thread, reference=None, /)\n--\n\nThis Thread has ended: calls its end(), which no tool traces; if "
     "it is the calling one, it sends nothing any more."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_dispatch(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &dispatcher_spec, NULL);
    Py_XDECREF(type);
    return type == NULL ? -1 : PyModule_AddFunctions(module, dispatch_functions);
}
