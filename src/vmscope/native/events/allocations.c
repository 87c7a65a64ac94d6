/* Objects as they are made: reported by CPython's reference tracer (3.13), sent when they are whole.
 *
 * The tracer is called in the middle of an allocation, before the object has any contents. So it only notes the object,
 * with the instruction that was being executed, and asks for a call from the evaluation loop. By then an object is whole
 * if no C code is at work any more that made it: its frame has gone, or has gone on, or runs on top of the C stack. No
 * reference is held meanwhile: an object that goes before that is forgotten. What one instruction of a frame has made
 * becomes whole together, and is looked at together; a thread that runs several greenlets has a stack for each. Not
 * everything that goes reaches the tracer: not the floats that the interpreter's loop frees, nor tuples and strings that
 * are moved as they grow. So the allocator of objects is hooked too; what it gives also says how large an object is.
 *
 * A str is not reported: io.StringIO has one that it goes on filling, and moves as it grows without a look at who else
 * has it (unicodeobject.c: resize_compact for a _PyUnicodeWriter), and it looks like one that is done.
 *
 * The evaluation loop makes such calls on one thread at a time, which need not be the one that asked: whoever is called
 * reports the objects of all threads. What is asked for within such a call it calls at once, up to a hundred times, and
 * again at the next jump. So the next call waits where something is not whole yet, or a callback runs, which is not the
 * program. It is asked for when another object comes or goes on that thread, or the callback is over.
 *
 * All of it is of the main interpreter, under its GIL; what other interpreters do is passed over. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "events/allocator.h"
#include "events/dispatch.h"

VMSCOPE_THREAD_LOCAL int vmscope_dispatching, vmscope_late;

#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_GIL_DISABLED)

#include <dlfcn.h>

extern int _PyEval_AddPendingCall(PyInterpreterState *, int (*)(void *), void *, int) __attribute__((weak));

#define ROOM_FOR 65536 /* objects noted at a time, of one switch between threads; a power of two */
#define NONE (-1)
#define WHOLE 0        /* the group of what can be reported */
#define TRIES 16       /* in how many places an object is looked at again, before the next one is waited for */
#define OTHERS 16      /* of this many calls one looks again at what other threads are making */
#define DEPTH 1000     /* frames that are looked through for one; under a deeper stack it may wait */
#define CODE_UNIT 2    /* bytes of an instruction */
#define HEADS 32       /* what may stand before an object in its memory: of the collector, and its dictionary */
#define EVERY 1        /* why it was noted: everything is, */
#define SAMPLED 2      /* or it was its turn */
#define SHOWN_FRAMES 8 /* that are compared when tracing starts */

typedef struct {
    PyObject *object;
    uint64_t id; /* of the thread state */
    size_t size;
    int reason;
    int group;
    int next, previous; /* of the same group, in the order of their making */
    int chained;        /* the next one of the same bucket */
} Note;

/* What one instruction of a frame has made; the first group has what is whole. */
typedef struct {
    PyThreadState *state;
    uint64_t id;
    void *stack; /* of the thread, or of a greenlet */
    void *frame;
    int instruction;
    int tries;
    int first, last;    /* notes */
    int next, previous; /* groups, in the order of their making */
    int chained;
} Group;

static struct {
    int on;
    PyInterpreterState *interpreter;
    PyObject *callback;
    Own own;
    int every;
    int64_t interval; /* bytes between samples; below 0: none are taken */
    int64_t left;     /* until the next one */
    uint64_t random;
    int first, last; /* groups */
    int free_note, free_group;
    _Atomic int count;
    uint64_t lost;   /* there was no room for them */
    uint64_t served; /* how often the loop has called */
    int *buckets;    /* made once, and kept */
    int *group_buckets;
    Note *notes;
    Group *groups;
} all;

static VMSCOPE_THREAD_LOCAL uint64_t asked; /* `served` at that time; plus one */

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

static inline int *
group_bucket_of(const void *frame)
{
    return &all.group_buckets[((uintptr_t)frame >> 4) & (ROOM_FOR - 1)];
}

static int
notes_clear(void)
{
    if (all.notes == NULL) {
        all.buckets = PyMem_RawMalloc(ROOM_FOR * sizeof *all.buckets);
        all.group_buckets = PyMem_RawMalloc(ROOM_FOR * sizeof *all.group_buckets);
        all.groups = PyMem_RawMalloc((ROOM_FOR + 1) * sizeof *all.groups);
        all.notes = PyMem_RawMalloc(ROOM_FOR * sizeof *all.notes);
        if (all.buckets == NULL || all.group_buckets == NULL || all.groups == NULL || all.notes == NULL) {
            PyMem_RawFree(all.buckets);
            PyMem_RawFree(all.group_buckets);
            PyMem_RawFree(all.groups);
            PyMem_RawFree(all.notes);
            all.notes = NULL;
            PyErr_NoMemory();
            return -1;
        }
    }
    for (int i = 0; i < ROOM_FOR; i++) {
        all.buckets[i] = all.group_buckets[i] = NONE;
        all.notes[i].next = i + 1 < ROOM_FOR ? i + 1 : NONE;
        all.groups[i + 1].next = i + 1 < ROOM_FOR ? i + 2 : NONE; /* one a note, at most */
    }
    all.groups[WHOLE] = (Group){.first = NONE, .last = NONE};
    all.first = all.last = NONE;
    all.free_note = 0;
    all.free_group = WHOLE + 1;
    all.count = 0;
    return 0;
}

static void
unchain(int *place, int number, int *(*chained)(int))
{
    while (*place != number) {
        place = chained(*place);
    }
    *place = *chained(number);
}

static int *
note_chained(int number)
{
    return &all.notes[number].chained;
}

static int *
group_chained(int number)
{
    return &all.groups[number].chained;
}

/* The root of the thread's stack of frames, which greenlets change as they switch, and each of them keeps. */
static void *
stack_of(PyThreadState *state)
{
    _PyStackChunk *chunk = state->datastack_chunk;
    while (chunk != NULL && chunk->previous != NULL) {
        chunk = chunk->previous;
    }
    return chunk;
}

/* The group of what the thread is making now. */
static int
group_now(PyThreadState *state)
{
    void *frame = state->current_frame, *stack = stack_of(state);
    int instruction = PyUnstable_InterpreterFrame_GetLasti(frame), *place = group_bucket_of(frame);
    for (int at = *place; at != NONE; at = all.groups[at].chained) {
        Group *group = &all.groups[at];
        if (group->frame == frame && group->instruction == instruction && group->state == state &&
            group->id == state->id && group->stack == stack) {
            return at;
        }
    }
    int number = all.free_group;
    Group *group = &all.groups[number];
    all.free_group = group->next;
    *group = (Group){.state = state,
                     .id = state->id,
                     .stack = stack,
                     .frame = frame,
                     .instruction = instruction,
                     .first = NONE,
                     .last = NONE,
                     .next = NONE,
                     .previous = all.last,
                     .chained = *place};
    *(all.last == NONE ? &all.first : &all.groups[all.last].next) = number;
    all.last = *place = number;
    return number;
}

static void
group_drop(int number)
{
    Group *group = &all.groups[number];
    unchain(group_bucket_of(group->frame), number, group_chained);
    *(group->previous == NONE ? &all.first : &all.groups[group->previous].next) = group->next;
    *(group->next == NONE ? &all.last : &all.groups[group->next].previous) = group->previous;
    group->next = all.free_group;
    all.free_group = number;
}

static void
note_drop(int number)
{
    Note *note = &all.notes[number];
    Group *group = &all.groups[note->group];
    unchain(bucket_of(note->object), number, note_chained);
    *(note->previous == NONE ? &group->first : &all.notes[note->previous].next) = note->next;
    *(note->next == NONE ? &group->last : &all.notes[note->next].previous) = note->previous;
    if (group->first == NONE && note->group != WHOLE) {
        group_drop(note->group);
    }
    note->next = all.free_note;
    all.free_note = number;
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
static void
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
    if (all.free_note == NONE) { /* the oldest makes room: C code keeps it, or a greenlet that has ended */
        all.lost++;
        note_drop(all.groups[all.first == NONE ? WHOLE : all.first].first);
    }
    int number = all.free_note, *place = bucket_of(object);
    Note *note = &all.notes[number];
    all.free_note = note->next;
    int at = group_now(state);
    Group *group = &all.groups[at];
    *note = (Note){.object = object,
                   .id = state->id,
                   .size = size,
                   .reason = reason,
                   .group = at,
                   .next = NONE,
                   .previous = group->last,
                   .chained = *place};
    *(group->last == NONE ? &group->first : &all.notes[group->last].next) = number;
    group->last = *place = number;
    all.count++;
}

static void
listen_to_allocator(void)
{
    if (vmscope_listen_to_allocator(forget_memory) != 0) { /* what has gone meanwhile was not heard of */
        all.lost += (uint64_t)all.count;
        notes_clear();
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
    if (asked != all.served + 1 && _PyEval_AddPendingCall(state->interp, deliver, NULL, 0) == 0) {
        asked = all.served + 1;
    }
}

void
vmscope_ask_late(void)
{
    PyThreadState *state = own_state();
    vmscope_late = 0;
    if (state != NULL && all.on) {
        ask(state);
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

/* Whether this is what traces the program, or a callback, and not the program. */
static inline int
hidden(PyThreadState *state)
{
    return state->tracing || vmscope_dispatching;
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
    if (hidden(state)) {
        return 0;
    }
    was_late();
    if (event != PyRefTracer_CREATE || !all.on || state->current_frame == NULL || PyUnicode_CheckExact(object)) {
        return 0;
    }
    uintptr_t head = (uintptr_t)object - (uintptr_t)vmscope_given.memory;
    int fits = vmscope_given.memory != NULL && head <= HEADS;
    size_t size = fits ? vmscope_given.size : (size_t)Py_TYPE(object)->tp_basicsize;
    vmscope_given.memory = NULL;
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

/* Whether no C code is at work any more that made them. `running`: it is the calling thread's, in the evaluation loop. */
static int
is_whole(const Group *group, int running)
{
    int of_c = !running, depth = 0;
    PyThreadState *state = group->state;
    if (group->stack != stack_of(state)) {
        return 0; /* another greenlet's, whose C code waits */
    }
    uintptr_t place = (uintptr_t)group->frame;
    if (place >= (uintptr_t)state->datastack_top && place < (uintptr_t)state->datastack_limit) {
        return 1; /* there is no frame there now */
    }
    for (void *frame = state->current_frame; frame != NULL; frame = frame_below(frame)) {
        if (frame == group->frame) {
            return !of_c || PyUnstable_InterpreterFrame_GetLasti(frame) != group->instruction;
        }
        if (++depth == DEPTH) {
            return 0;
        }
        of_c = of_c || is_entry(frame);
    }
    return 1;
}

static int
has_ended(const Group *group)
{
    PyThreadState *state = vmscope_first_state(all.interpreter);
    while (state != NULL && (state != group->state || state->id != group->id)) {
        state = vmscope_next_state(state);
    }
    return state == NULL;
}

/* A group's notes, before those that are `then`. */
static int
group_release(int number, int then)
{
    Group *group = &all.groups[number];
    for (int at = group->first; at != NONE; at = all.notes[at].next) {
        all.notes[at].group = WHOLE;
    }
    all.notes[group->last].next = then;
    if (then != NONE) {
        all.notes[then].previous = group->last;
    }
    then = group->first;
    group_drop(number);
    return then;
}

/* What has become whole goes to the group of that. True if something of the calling thread's may be soon.
 *
 * What C code is making lies on the stack in the order of its making. So once something that was not whole before is
 * still not, nothing older can be. */
static int
gather(PyThreadState *state)
{
    int waiting = 0, settled = 0, whole = NONE;
    for (int at = all.last, previous; at != NONE; at = previous) {
        Group *group = &all.groups[at];
        int running = group->state == state && group->id == state->id;
        previous = group->previous;
        if (group->tries > 0 && (running ? settled : all.served % OTHERS != 0)) {
            continue;
        }
        if ((!running && has_ended(group)) || is_whole(group, running)) {
            whole = group_release(at, whole);
            continue;
        }
        if (running) {
            settled |= group->tries > 0;
            waiting |= group->tries < TRIES;
        }
        group->tries += group->tries < TRIES;
    }
    if (whole != NONE) {
        Group *told = &all.groups[WHOLE];
        *(told->last == NONE ? &told->first : &all.notes[told->last].next) = whole;
        all.notes[whole].previous = told->last;
        while (all.notes[whole].next != NONE) {
            whole = all.notes[whole].next;
        }
        told->last = whole;
    }
    return waiting;
}

/* Reports one. -1 with a KeyboardInterrupt set. */
static int
tell(PyThreadState *state, PyObject *callback, int at)
{
    Note note = all.notes[at];
    int status = 0;
    if (Py_REFCNT(note.object) <= 0) { /* kept for the next one of its class */
        note_drop(at);
        return 0;
    }
    Py_INCREF(note.object);
    note_drop(at);
    PyThreadState_EnterTracing(state);
    PyObject *done = PyObject_CallFunction(callback, "OniK", note.object, (Py_ssize_t)note.size, note.reason,
                                           (unsigned long long)note.id);
    PyThreadState_LeaveTracing(state);
    if (done == NULL && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        status = -1;
    } else if (done == NULL) {
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
    if (hidden(state)) {
        vmscope_late = 1;
        return 0;
    }
    int status = 0, at;
    if (vmscope_has_headroom(state)) {
        PyObject *callback = Py_NewRef(all.callback);
        listen_to_allocator();
        vmscope_late = gather(state); /* asked for now, it would be called a hundred times before the loop goes on */
        while (status == 0 && all.on && (at = all.groups[WHOLE].first) != NONE) {
            status = tell(state, callback, at);
        }
        Py_DECREF(callback);
    }
    return status;
}

/* -- functions ------------------------------------------------------------------------------------- */

/* Whether Python shows this frame, of that code: not while it is being set up, as the one around a specialized call of a
 * class is until `__init__` is over. */
static int
is_shown(void *frame, PyObject *code)
{
    return code != NULL && PyCode_Check(code) &&
           PyUnstable_InterpreterFrame_GetLasti(frame) / CODE_UNIT >= ((PyCodeObject *)code)->_co_firsttraceable;
}

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
        if (is_shown(frame, code)) {
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
    vmscope_leave_allocator();
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
    if (all.random == 0) { /* where it would stay */
        all.random = 0x9E3779B97F4A7C15ULL ^ (uint64_t)(uintptr_t)&own;
    }
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
    union {
        PyRefTracer function;
        void *address;
    } held = {now};
    union {
        int (*function)(PyRefTracer, void *);
        void *address;
    } set = {PyRefTracer_SetTracer};
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

static PyObject *
allocations_served(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(all.served);
}

static PyObject *
without_allocation_events(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "without_allocation_events needs a function");
        return NULL;
    }
    return call_apart(args[0], args + 1, (size_t)count - 1);
}

static PyMethodDef functions[] = {
    {"trace_allocations", trace_allocations, METH_VARARGS,
     "trace_allocations(callback, own, every, interval, /)\n--\n\nFrom now on callback(object, size, reason, state) is "
     "called for new objects, when they are whole; the last is the number of the thread state that made it. For every "
     "one (reason & 1), and for one in this many bytes (reason & 2; an interval below 0: never). Nothing is reported "
     "of what "
     "code makes whose file name begins with `own`, nor of what a callback does. RuntimeError."},
    {"traces_allocations", traces_allocations, METH_NOARGS, "Whether this interpreter can."},
    {"stop_tracing", stop_tracing, METH_NOARGS, "No callback is called any more."},
    {"tracer_holder", tracer_holder, METH_NOARGS,
     "Who has, or had, the slot for the tracer: \"\", \"tracemalloc\", or a library's file name."},
    {"allocations_lost", allocations_lost, METH_NOARGS, "Objects that were not reported: too many were being made."},
    {"allocations_served", allocations_served, METH_NOARGS,
     "How often the evaluation loop has called, to have them reported."},
    {"without_allocation_events", (PyCFunction)(void (*)(void))without_allocation_events, METH_FASTCALL,
     "without_allocation_events(function, /, *arguments)\n--\n\nCalls it; nothing is reported of what it makes on this "
     "thread."},
    {NULL, NULL, 0, NULL},
};

int
vmscope_add_allocations(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

void
vmscope_ask_late(void)
{
}

int
vmscope_add_allocations(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
