/* Objects as they are made: told by CPython's reference tracer (3.13), sent when they are whole.
 *
 * The tracer is called in the middle of an allocation, before the object has any contents. So it only notes the object,
 * with the instruction that was being executed, and asks for a call from the evaluation loop. By then an object is whole
 * if no C code is at work any more that made it: its frame has gone, or has gone on, or runs on top of the C stack. No
 * reference is held meanwhile: an object that goes before that is forgotten. The tracer does not hear of everything that
 * goes (floats that the interpreter's loop frees, tuples and strings that are moved as they grow), so the allocator of
 * objects is listened to as well; what it gives also says how large an object is.
 *
 * Nobody is told of a str: io.StringIO has one that it goes on filling, and moves as it grows without a look at who else
 * has it (unicodeobject.c: resize_compact for a _PyUnicodeWriter), and it cannot be told from one that is done.
 *
 * The evaluation loop makes such calls on one thread at a time, which need not be the one that asked: whoever is called
 * tells of the objects of all threads.
 *
 * All of it is of the main interpreter, under its GIL; what other interpreters do is passed over. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dispatch.h"

#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_GIL_DISABLED)

#include <dlfcn.h>

extern int _PyEval_AddPendingCall(PyInterpreterState *, int (*)(void *), void *, int) __attribute__((weak));

#define ROOM_FOR 65536 /* objects noted at a time, of one switch between threads; a power of two */
#define NONE (-1)
#define TRIES 16       /* in how many places an object is looked at again, before the next one is waited for */
#define HEADS 32       /* what may stand before an object in its memory: of the collector, and its dictionary */
#define EVERY 1        /* why it was noted: everything is, */
#define SAMPLED 2      /* or it was its turn */
#define SHOWN_FRAMES 8 /* that are compared when tracing starts */

typedef struct {
    PyObject *object;
    PyThreadState *state;
    uint64_t id; /* of the thread state */
    void *frame;
    int instruction;
    int reason;
    int tries;
    size_t size;
    int next, previous; /* in the order of their making */
    int chained;        /* the next one of the same bucket */
} Note;

static struct {
    int on;
    PyInterpreterState *interpreter;
    PyObject *callback;
    Own own;
    int every;
    int64_t interval; /* bytes between samples; below 0: none are taken */
    int64_t left;     /* until the next one */
    uint64_t random;
    int first, last, free;
    _Atomic int count;
    uint64_t lost; /* there was no room for them */
    uint64_t served; /* how often the loop has called */
    int *buckets; /* made once, and kept */
    Note *notes;
} all;

/* The allocator below ours; it stays there for good once it is, since others may have put theirs above. */
static PyMemAllocatorEx below;
static int listening;

typedef struct {
    void *memory; /* what the allocator gave last */
    size_t size;
    uint64_t asked; /* `served` when this thread asked for a call; plus one */
    void *frame;    /* where it was called last, */
    int instruction;
    int waiting; /* and whether something was not whole */
} Last;

static _Thread_local __attribute__((tls_model("initial-exec"))) Last last;

static inline PyThreadState *
own_state(void)
{
    PyThreadState *state = PyThreadState_GetUnchecked();
    return state != NULL && state->interp == all.interpreter ? state : NULL;
}

/* -- notes ---------------------------------------------------------------------------------------- */

static inline int *
bucket_of(const void *object)
{
    return &all.buckets[((uintptr_t)object >> 4) & (ROOM_FOR - 1)];
}

static int
notes_clear(void)
{
    if (all.notes == NULL) {
        all.buckets = PyMem_RawMalloc(ROOM_FOR * sizeof *all.buckets);
        all.notes = PyMem_RawMalloc(ROOM_FOR * sizeof *all.notes);
        if (all.buckets == NULL || all.notes == NULL) {
            PyMem_RawFree(all.buckets);
            PyMem_RawFree(all.notes);
            all.notes = NULL;
            PyErr_NoMemory();
            return -1;
        }
    }
    for (int i = 0; i < ROOM_FOR; i++) {
        all.buckets[i] = NONE;
        all.notes[i].next = i + 1 < ROOM_FOR ? i + 1 : NONE;
    }
    all.first = all.last = NONE;
    all.free = 0;
    all.count = 0;
    return 0;
}

static void
note_drop(int number)
{
    Note *note = &all.notes[number];
    int *place = bucket_of(note->object);
    while (*place != number) {
        place = &all.notes[*place].chained;
    }
    *place = note->chained;
    *(note->previous == NONE ? &all.first : &all.notes[note->previous].next) = note->next;
    *(note->next == NONE ? &all.last : &all.notes[note->next].previous) = note->previous;
    note->next = all.free;
    all.free = number;
    all.count--;
}

static inline void
forget(const void *object)
{
    for (int at = *bucket_of(object); at != NONE; at = all.notes[at].chained) {
        if (all.notes[at].object == object) {
            note_drop(at);
            return;
        }
    }
}

/* What stands in this memory goes. */
static inline void
forget_memory(void *memory)
{
    if (all.count != 0 && own_state() != NULL) {
        for (uintptr_t head = 0; head <= HEADS; head += 16) {
            forget((const char *)memory + head);
        }
    }
}

static void
note_add(PyObject *object, PyThreadState *state, size_t size, int reason)
{
    int number = all.free;
    if (number == NONE) {
        all.lost++;
        return;
    }
    Note *note = &all.notes[number];
    all.free = note->next;
    int *place = bucket_of(object);
    *note = (Note){.object = object, .state = state, .id = state->id, .frame = state->current_frame, .reason = reason,
                   .instruction = PyUnstable_InterpreterFrame_GetLasti(state->current_frame), .size = size,
                   .next = NONE, .previous = all.last, .chained = *place};
    *(all.last == NONE ? &all.first : &all.notes[all.last].next) = number;
    all.last = *place = number;
    all.count++;
}

/* -- the allocator --------------------------------------------------------------------------------- */

static inline void *
given(void *memory, size_t size)
{
    last.memory = memory;
    last.size = size;
    return memory;
}

static void *
hook_malloc(void *context, size_t size)
{
    (void)context;
    return given(below.malloc(below.ctx, size), size);
}

static void *
hook_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    return given(below.calloc(below.ctx, count, size), count * size);
}

static void *
hook_realloc(void *context, void *memory, size_t size)
{
    (void)context;
    if (memory != NULL) {
        forget_memory(memory);
    }
    return given(below.realloc(below.ctx, memory, size), size);
}

static void
hook_free(void *context, void *memory)
{
    (void)context;
    if (memory != NULL) {
        forget_memory(memory);
    }
    below.free(below.ctx, memory);
}

static void
listen_to_allocator(void)
{
    if (!listening) {
        PyMemAllocatorEx ours = {NULL, hook_malloc, hook_calloc, hook_realloc, hook_free};
        PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &below);
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
        listening = 1;
    }
}

static void
leave_allocator(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    if (listening && now.malloc == hook_malloc) { /* else somebody's stands above, and calls ours */
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &below);
        listening = 0;
    }
}

/* -- the tracer ------------------------------------------------------------------------------------ */

/* Uniform from 0 to twice the interval: the interval on average, and no program's rhythm. */
static int64_t
next_sample(void)
{
    all.random ^= all.random << 13;
    all.random ^= all.random >> 7;
    all.random ^= all.random << 17;
    return all.interval == 0 ? 0 : (int64_t)(all.random % (2 * (uint64_t)all.interval + 1));
}

static int deliver(void *ignored);

static void
ask(PyThreadState *state)
{
    if (last.asked != all.served + 1 && _PyEval_AddPendingCall(state->interp, deliver, NULL, 0) == 0) {
        last.asked = all.served + 1;
    }
}

static inline int
runs_own_code(PyThreadState *state)
{
    PyObject *code = PyUnstable_InterpreterFrame_GetCode(state->current_frame);
    int own = code != NULL && is_own(&all.own, code);
    Py_XDECREF(code);
    return own;
}

static int
tracer(PyObject *object, PyRefTracerEvent event, void *data)
{
    (void)data;
    PyThreadState *state = own_state();
    if (state == NULL || object == NULL) {
        return 0;
    }
    if (all.count != 0) {
        forget(object); /* it goes, or stands where another one was */
    }
    if (event != PyRefTracer_CREATE || !all.on || state->tracing || state->current_frame == NULL ||
        PyUnicode_CheckExact(object)) {
        return 0;
    }
    uintptr_t head = (uintptr_t)object - (uintptr_t)last.memory;
    size_t size = last.memory != NULL && head <= HEADS ? last.size : (size_t)Py_TYPE(object)->tp_basicsize;
    last.memory = NULL;
    int reason = all.every ? EVERY : 0;
    if (all.interval >= 0 && (all.left -= (int64_t)size) <= 0) {
        all.left = next_sample();
        reason |= SAMPLED;
    }
    if (reason != 0 && !runs_own_code(state)) {
        note_add(object, state, size, reason);
        ask(state);
    }
    return 0;
}

static void *
frame_below(void *frame)
{
    return ((void **)frame)[1];
}

/* Whether a frame stands for a call of the evaluation loop by C code. */
static int
is_entry(void *frame)
{
    PyObject *code = PyUnstable_InterpreterFrame_GetCode(frame);
    int entry = code == NULL || !PyCode_Check(code);
    Py_XDECREF(code);
    return entry;
}

/* Whether no C code is at work any more that made it. `running`: it is the calling thread's, in the evaluation loop. */
static int
is_whole(const Note *note, int running)
{
    int of_c = !running;
    for (void *frame = note->state->current_frame; frame != NULL; frame = frame_below(frame)) {
        if (frame == note->frame) {
            return !of_c || PyUnstable_InterpreterFrame_GetLasti(frame) != note->instruction;
        }
        of_c = of_c || is_entry(frame);
    }
    return 1;
}

static int
has_ended(const Note *note)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(all.interpreter);
    while (state != NULL && (state != note->state || state->id != note->id)) {
        state = PyThreadState_Next(state);
    }
    return state == NULL;
}

/* The first that can be told; NONE where there is none. `waiting`: one of the calling thread's may be soon. */
static int
next_whole(PyThreadState *state, int *waiting)
{
    for (int at = all.count == 0 ? NONE : all.first, next; at != NONE; at = next) {
        Note *note = &all.notes[at];
        int running = note->state == state && note->id == state->id;
        next = note->next;
        if (Py_REFCNT(note->object) <= 0) {
            note_drop(at);
        }
        else if ((!running && has_ended(note)) || is_whole(note, running)) {
            return at;
        }
        else if (running) {
            *waiting |= note->tries++ < TRIES;
        }
    }
    return NONE;
}

/* Tells of one. -1 with a KeyboardInterrupt set. */
static int
tell(PyThreadState *state, PyObject *callback, int at)
{
    Note note = all.notes[at];
    int status = 0;
    Py_INCREF(note.object);
    note_drop(at);
    PyThreadState_EnterTracing(state);
    PyObject *done = PyObject_CallFunction(callback, "OniK", note.object, (Py_ssize_t)note.size, note.reason,
                                           (unsigned long long)note.id);
    PyThreadState_LeaveTracing(state);
    if (done == NULL && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        status = -1;
    }
    else if (done == NULL) {
        PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(done);
    Py_DECREF(note.object);
    return status;
}

/* Called by the evaluation loop. -1 with a KeyboardInterrupt set. */
static int
deliver(void *ignored)
{
    (void)ignored;
    all.served++;
    PyThreadState *state = own_state();
    if (!all.on || state == NULL || state->current_frame == NULL) {
        return 0;
    }
    int instruction = PyUnstable_InterpreterFrame_GetLasti(state->current_frame), status = 0, at;
    if (last.waiting && last.frame == state->current_frame && last.instruction == instruction) {
        ask(state); /* the loop calls what is asked for while it calls, too, up to a hundred times */
        return 0;
    }
    last.frame = state->current_frame;
    last.instruction = instruction;
    last.waiting = state->tracing != 0;
    if (!state->tracing) {
        PyObject *callback = Py_NewRef(all.callback);
        while (status == 0 && all.on && (at = next_whole(state, &last.waiting)) != NONE) {
            status = tell(state, callback, at);
        }
        Py_DECREF(callback);
    }
    if (last.waiting && all.on) {
        ask(state);
    }
    return status;
}

/* -- functions ------------------------------------------------------------------------------------- */

/* Whether frames are as frame_below takes them, and the loop can be asked for calls. */
static int
can_trace(void)
{
    if (_PyEval_AddPendingCall == NULL) {
        return 0;
    }
    PyThreadState *state = PyThreadState_Get();
    PyFrameObject *shown = PyThreadState_GetFrame(state);
    void *frame = state->current_frame;
    int same = shown != NULL;
    for (int i = 0; same && shown != NULL && i < SHOWN_FRAMES && frame != NULL; frame = frame_below(frame)) {
        PyObject *code = PyUnstable_InterpreterFrame_GetCode(frame);
        if (code != NULL && PyCode_Check(code)) {
            PyCodeObject *expected = PyFrame_GetCode(shown);
            same = (PyObject *)expected == code;
            Py_DECREF(expected);
            PyFrameObject *back = PyFrame_GetBack(shown);
            Py_SETREF(shown, back);
            i++;
        }
        Py_XDECREF(code);
    }
    Py_XDECREF(shown);
    return same;
}

/* Where it is asked for: in the main interpreter, at a place where frames can be looked at. */
static PyObject *
traces_allocations(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main() && can_trace());
}

static PyObject *
stop_tracing(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    void *data;
    PyObject *callback = all.callback;
    all.on = 0;
    all.callback = NULL;
    if (PyRefTracer_GetTracer(&data) == tracer) {
        PyRefTracer_SetTracer(NULL, NULL);
    }
    all.count = 0;
    leave_allocator();
    Py_CLEAR(all.own.name);
    Py_XDECREF(callback);
    Py_RETURN_NONE;
}

static PyObject *
trace_allocations(PyObject *module, PyObject *args)
{
    PyObject *callback, *own;
    int every;
    long long interval;
    if (!PyArg_ParseTuple(args, "OUpL:trace_allocations", &callback, &own, &every, &interval)) {
        return NULL;
    }
    if (!can_trace()) {
        PyErr_SetString(PyExc_RuntimeError, "this interpreter's frames are not as they are expected to be");
        return NULL;
    }
    Py_XDECREF(stop_tracing(module, NULL));
    if (own_fill(&all.own, own) < 0 || notes_clear() < 0) {
        return NULL;
    }
    all.interpreter = PyInterpreterState_Get();
    all.callback = Py_NewRef(callback);
    all.every = every;
    all.interval = interval;
    all.random ^= 0x9E3779B97F4A7C15ULL ^ (uint64_t)(uintptr_t)callback;
    all.left = interval < 0 ? 0 : next_sample();
    listen_to_allocator();
    all.on = 1;
    PyRefTracer_SetTracer(tracer, NULL);
    Py_RETURN_NONE;
}

static PyObject *
tracer_holder(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    Dl_info theirs, python;
    if (now == NULL || now == tracer) {
        return PyUnicode_FromString("");
    }
    union { PyRefTracer function; void *address; } held = {now};
    union { int (*function)(PyRefTracer, void *); void *address; } set = {PyRefTracer_SetTracer};
    if (!dladdr(held.address, &theirs) || !dladdr(set.address, &python)) {
        return PyUnicode_FromString("?");
    }
    if (theirs.dli_fbase == python.dli_fbase) {
        return PyUnicode_FromString("tracemalloc");
    }
    const char *slash = strrchr(theirs.dli_fname, '/');
    return PyUnicode_DecodeFSDefault(slash == NULL ? theirs.dli_fname : slash + 1);
}

static PyObject *
allocations_lost(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(all.lost);
}

static PyMethodDef functions[] = {
    {"trace_allocations", trace_allocations, METH_VARARGS,
     "trace_allocations(callback, own, every, interval, /)\n--\n\nFrom now on callback(object, size, reason, state) is "
     "called for new objects, when they are whole; the last is the number of the thread state that made it. For every "
     "one (reason & 1), and for one in so many bytes (reason & 2; an interval below 0: never). Nothing is told of what code makes whose file name begins with "
     "`own`, nor of what a callback does. RuntimeError."},
    {"traces_allocations", traces_allocations, METH_NOARGS, "Whether this interpreter can."},
    {"stop_tracing", stop_tracing, METH_NOARGS, "No callback is called any more."},
    {"tracer_holder", tracer_holder, METH_NOARGS,
     "Who has, or had, the slot for the tracer: \"\", \"tracemalloc\", or a library's file name."},
    {"allocations_lost", allocations_lost, METH_NOARGS, "Objects of which nothing was told: too many were being made."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_allocations(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_allocations(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
