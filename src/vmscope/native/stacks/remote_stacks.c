/* RemoteStacks: the stacks of another process's threads as Python sees them, once or as a profile. */
#define _GNU_SOURCE
#include "stacks/remote_stacks.h"

#ifdef HAS_REMOTE_STACKS

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_FRAMES 1024
#define MOST_PLACES ((size_t)64 << 20) /* of all stacks of a profile: 256 MiB */
#define MOST_LOOKS 64                  /* at threads that stand still, in one round */
#define PATIENCE 50                    /* rounds in a row in which the list of threads may be torn */

/* One stack of one thread, in one state. */
typedef struct {
    uint32_t thread, state; /* state: 1 has the GIL, 2 runs */
    uint64_t hash, count;
    size_t begin, size; /* its places */
} Row;

typedef struct {
    unsigned long native_id, ident;
} Known;

typedef struct {
    Row *rows;
    size_t row_count, row_size;
    uint32_t *index; /* by hash: one more than a row's number; 0: free */
    size_t mask;
    uint32_t *places;
    size_t place_count, place_size;
    Known *threads; /* by their numbers */
    size_t thread_size;
    uint64_t late, torn_lists;
} Profile;

typedef struct {
    PyObject_HEAD RemoteProcess process;
    int busy;
} RemoteStacks;

static int
grow(void *array, size_t *size, size_t wanted, size_t each)
{
    if (wanted <= *size) {
        return 1;
    }
    size_t larger = 2 * *size < wanted ? wanted : 2 * *size;
    void *moved = realloc(*(void **)array, larger * each);
    if (moved == NULL) {
        return 0;
    }
    *(void **)array = moved;
    *size = larger;
    return 1;
}

/* -- one object at a time ------------------------------------------------------------------------- */

static int
begin(RemoteStacks *self)
{
    if (self->busy || self->process.pid == 0) {
        PyErr_SetString(PyExc_RuntimeError, self->busy ? "another thread reads it" : "it is closed");
        return 0;
    }
    self->busy = 1;
    return 1;
}

static PyObject *
refuse(RoundOutcome outcome)
{
    if (outcome == ROUND_NO_MEMORY) {
        return PyErr_NoMemory();
    }
    PyErr_SetString(outcome == ROUND_GONE ? PyExc_ProcessLookupError : PyExc_BlockingIOError,
                    outcome == ROUND_GONE ? "it has ended" : "its threads changed whenever they were read");
    return NULL;
}

/* -- one look ------------------------------------------------------------------------------------- */

/* (qualname, filename, line) */
static PyObject *
frame_row(const Names *names, uint32_t place)
{
    const char *qualname = names->text + names->codes[names->places[place].code].qualname;
    const char *filename = names->text + names->codes[names->places[place].code].filename;
    PyObject *function = PyUnicode_DecodeUTF8(qualname, (Py_ssize_t)strlen(qualname), "surrogatepass");
    PyObject *file =
        function == NULL ? NULL : PyUnicode_DecodeUTF8(filename, (Py_ssize_t)strlen(filename), "surrogatepass");
    if (file == NULL) {
        Py_XDECREF(function);
        return NULL;
    }
    return Py_BuildValue("NNi", function, file, names->places[place].line);
}

static PyObject *
thread_row(RemoteProcess *process, RemoteThread *thread, char state)
{
    PyObject *frames = PyList_New((Py_ssize_t)thread->frame_count);
    PyObject *addresses = frames == NULL ? NULL : PyList_New((Py_ssize_t)thread->frame_count);
    for (size_t i = 0; addresses != NULL && i < thread->frame_count; i++) {
        PyObject *row = frame_row(&process->names, thread->frames[i].place);
        PyObject *address = Py_BuildValue("KK", (unsigned long long)thread->frames[i].frame,
                                          (unsigned long long)thread->frames[i].code);
        if (row == NULL || address == NULL) {
            Py_XDECREF(row);
            Py_XDECREF(address);
            Py_CLEAR(addresses);
            break;
        }
        PyList_SET_ITEM(frames, (Py_ssize_t)i, row);
        PyList_SET_ITEM(addresses, (Py_ssize_t)i, address);
    }
    if (addresses == NULL) {
        Py_XDECREF(frames);
        return NULL;
    }
    return Py_BuildValue("lkKNNNNNC", thread->task, thread->state.ident,
                         (unsigned long long)process->interpreters[thread->interpreter].address,
                         PyBool_FromLong(vmscope_holds_gil(process, thread)), frames, addresses,
                         PyBool_FromLong(thread->cut), PyBool_FromLong(!thread->known), state);
}

static PyObject *
stacks_take(RemoteStacks *self, PyObject *Py_UNUSED(ignored))
{
    RemoteProcess *process = &self->process;
    RoundOutcome outcome;
    char *states = NULL;
    if (!begin(self)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    outcome = vmscope_read_round(process, 1);
    if (outcome == ROUND_READ) {
        states = malloc(process->thread_count + 1);
        for (size_t i = 0; states != NULL && i < process->thread_count; i++) {
            states[i] = vmscope_task_state(process, &process->threads[i]);
        }
        outcome = states == NULL ? ROUND_NO_MEMORY : outcome;
    }
    Py_END_ALLOW_THREADS
    PyObject *list = outcome == ROUND_READ ? PyList_New((Py_ssize_t)process->thread_count) : refuse(outcome);
    for (size_t i = 0; list != NULL && i < process->thread_count; i++) {
        PyObject *row = thread_row(process, &process->threads[i], states[i]);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    free(states);
    self->busy = 0;
    return list;
}

/* -- a profile ------------------------------------------------------------------------------------ */

static int64_t
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int
is_row(const Profile *profile, const Row *row, uint64_t hash, uint32_t thread, uint32_t state,
       const RemoteThread *found)
{
    if (row->hash != hash || row->thread != thread || row->state != state || row->size != found->frame_count) {
        return 0;
    }
    for (size_t i = 0; i < row->size; i++) {
        if (profile->places[row->begin + i] != found->frames[i].place) {
            return 0;
        }
    }
    return 1;
}

static int
reserve_index(Profile *profile)
{
    if (profile->index != NULL && 2 * (profile->row_count + 1) <= profile->mask + 1) {
        return 1;
    }
    size_t size = profile->index == NULL ? 1024 : 2 * (profile->mask + 1);
    uint32_t *larger = calloc(size, sizeof *larger);
    if (larger == NULL) {
        return 0;
    }
    for (size_t i = 0; i < profile->row_count; i++) {
        size_t at = profile->rows[i].hash;
        while (larger[at & (size - 1)] != 0) {
            at++;
        }
        larger[at & (size - 1)] = (uint32_t)i + 1;
    }
    free(profile->index);
    profile->index = larger;
    profile->mask = size - 1;
    return 1;
}

/* Where the stack of this thread is counted, one more than its number; 0 without room. */
static size_t
find_row(Profile *profile, const RemoteThread *thread, uint32_t state)
{
    uint64_t hash = (uint64_t)thread->number << 2 | state;
    for (size_t i = 0; i < thread->frame_count; i++) {
        hash = (hash ^ thread->frames[i].place) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
    }
    if (!reserve_index(profile)) {
        return 0;
    }
    size_t at = hash;
    for (; profile->index[at & profile->mask] != 0; at++) {
        size_t number = profile->index[at & profile->mask];
        if (is_row(profile, &profile->rows[number - 1], hash, thread->number, state, thread)) {
            return number;
        }
    }
    if (profile->place_count + thread->frame_count > MOST_PLACES || profile->row_count >= MOST_PLACES / 16 ||
        !grow(&profile->rows, &profile->row_size, profile->row_count + 1, sizeof *profile->rows) ||
        !grow(&profile->places, &profile->place_size, profile->place_count + thread->frame_count,
              sizeof *profile->places)) {
        return 0;
    }
    Row *row = &profile->rows[profile->row_count++];
    *row = (Row){thread->number, state, hash, 0, profile->place_count, thread->frame_count};
    for (size_t i = 0; i < thread->frame_count; i++) {
        profile->places[profile->place_count++] = thread->frames[i].place;
    }
    profile->index[at & profile->mask] = (uint32_t)profile->row_count;
    return profile->row_count;
}

/* Whether the thread runs: what stands still is not looked at in each round where there are many. */
static int
runs(RemoteProcess *process, RemoteThread *thread)
{
    uint64_t every = process->thread_count / MOST_LOOKS + 1;
    if (thread->fresh || (process->rounds + thread->number) % every == 0) {
        thread->runs = vmscope_task_runs(process, thread);
        thread->fresh = 0;
    }
    return thread->runs == 'R';
}

/* Counts each thread's stack once. */
static int
count_round(RemoteProcess *process, Profile *profile)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        RemoteThread *thread = &process->threads[i];
        size_t before = profile->thread_size;
        if (!grow(&profile->threads, &profile->thread_size, (size_t)thread->number + 1, sizeof *profile->threads)) {
            return 0;
        }
        memset(profile->threads + before, 0, (profile->thread_size - before) * sizeof *profile->threads);
        profile->threads[thread->number] = (Known){(unsigned long)thread->task, thread->state.ident};
        if (!thread->known || thread->frame_count == 0) {
            continue;
        }
        uint32_t state = vmscope_holds_gil(process, thread) ? 1 : 0;
        state |= runs(process, thread) ? 2 : 0;
        if (thread->row[state] == 0) {
            thread->row[state] = find_row(profile, thread, state);
        }
        if (thread->row[state] == 0) {
            process->lost++;
        } else {
            profile->rows[thread->row[state] - 1].count++;
        }
    }
    return 1;
}

typedef enum { WAITED, STOPPED, INTERRUPTED } Wait;

/* Until then; before that where the descriptor can be read, or a signal has come. */
static Wait
wait_until(int64_t deadline, int stop)
{
    struct pollfd until = {.fd = stop, .events = POLLIN};
    int64_t left = deadline - now();
    struct timespec time = {0, 0};
    if (left > 0) {
        time = (struct timespec){left / 1000000000, left % 1000000000};
    }
    int ready = ppoll(&until, 1, &time, NULL);
    return ready > 0 ? STOPPED : ready < 0 && errno == EINTR ? INTERRUPTED : WAITED;
}

/* A number below this one, of a simple sequence. */
static int64_t
jitter(uint64_t *seed, int64_t below)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (int64_t)((*seed >> 33) % (uint64_t)below);
}

/* Rounds until the end, each at a moment of its own within its period. */
static Wait
run(RemoteProcess *process, Profile *profile, int64_t *next, int64_t start, int64_t duration, int64_t period, int stop,
    RoundOutcome *outcome)
{
    uint64_t seed = (uint64_t)start;
    int torn = 0;
    for (; *next < duration; *next += period) {
        int64_t span = duration - *next < period ? duration - *next : period;
        Wait wait = wait_until(start + *next + jitter(&seed, span), stop);
        if (wait != WAITED) {
            return wait;
        }
        *outcome = vmscope_read_round(process, 0);
        if (*outcome == ROUND_TORN && ++torn < PATIENCE) {
            profile->torn_lists++;
        } else if (*outcome != ROUND_READ || !count_round(process, profile)) {
            *outcome = *outcome == ROUND_READ ? ROUND_NO_MEMORY : *outcome;
            return STOPPED;
        } else {
            torn = 0;
        }
        while (now() - start > *next + 2 * period && *next + period < duration) {
            *next += period;
            profile->late++;
        }
    }
    return STOPPED;
}

/* [(thread, has the GIL, runs, count, frames)...]; frames are lists of numbers of rows in `names`. */
static PyObject *
profile_rows(const RemoteProcess *process, const Profile *profile)
{
    PyObject *list = PyList_New((Py_ssize_t)profile->row_count);
    PyObject **frames = calloc(process->names.place_count + 1, sizeof *frames);
    int made = list != NULL && frames != NULL;
    for (size_t i = 0; made && i < profile->row_count; i++) {
        const Row *row = &profile->rows[i];
        PyObject *stack = PyTuple_New((Py_ssize_t)row->size);
        for (size_t j = 0; stack != NULL && j < row->size; j++) {
            uint32_t place = profile->places[row->begin + j];
            if (frames[place] == NULL && (frames[place] = frame_row(&process->names, place)) == NULL) {
                Py_CLEAR(stack);
                break;
            }
            PyTuple_SET_ITEM(stack, (Py_ssize_t)j, Py_NewRef(frames[place]));
        }
        PyObject *item = stack == NULL ? NULL
                                       : Py_BuildValue("INNKN", row->thread, PyBool_FromLong(row->state & 1),
                                                       PyBool_FromLong(row->state & 2), row->count, stack);
        made = item != NULL;
        if (made) {
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        }
    }
    for (size_t i = 0; frames != NULL && i < process->names.place_count; i++) {
        Py_XDECREF(frames[i]);
    }
    free(frames);
    if (!made) {
        Py_CLEAR(list);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return list;
}

static PyObject *
profile_result(const RemoteProcess *process, const Profile *profile, const char *end, uint64_t rounds)
{
    PyObject *rows = profile_rows(process, profile);
    size_t count = process->numbers < profile->thread_size ? process->numbers : profile->thread_size;
    PyObject *threads = rows == NULL ? NULL : PyList_New((Py_ssize_t)count);
    for (size_t i = 0; threads != NULL && i < count; i++) {
        PyObject *thread = Py_BuildValue("kk", profile->threads[i].native_id, profile->threads[i].ident);
        if (thread == NULL) {
            Py_CLEAR(threads);
        } else {
            PyList_SET_ITEM(threads, (Py_ssize_t)i, thread);
        }
    }
    if (threads == NULL) {
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("NN{s:s,s:K,s:K,s:K,s:K,s:K,s:K}", threads, rows, "end", end, "rounds", rounds, "reads",
                         process->reads, "torn", process->torn, "lost", process->lost, "late", profile->late,
                         "torn_lists", profile->torn_lists);
}

static PyObject *
stacks_profile(RemoteStacks *self, PyObject *args)
{
    long long duration, period;
    int stop;
    RemoteProcess *process = &self->process;
    Profile profile = {0};
    PyObject *result = NULL;
    RoundOutcome outcome = ROUND_READ;
    const char *end = "time";
    if (!PyArg_ParseTuple(args, "LLi:profile", &duration, &period, &stop) || !begin(self)) {
        return NULL;
    }
    if (duration <= 0 || period < 100000 || period > duration) {
        self->busy = 0;
        PyErr_SetString(PyExc_ValueError, "a profile has a duration and a period of 100 us or more within it");
        return NULL;
    }
    int64_t start = now(), next = 0;
    Wait wait = INTERRUPTED;
    for (size_t i = 0; i < process->thread_count; i++) {
        memset(process->threads[i].row, 0, sizeof process->threads[i].row);
    }
    process->reads = process->torn = process->lost = process->rounds = 0;
    while (wait == INTERRUPTED) {
        Py_BEGIN_ALLOW_THREADS
        wait = run(process, &profile, &next, start, duration, period, stop, &outcome);
        Py_END_ALLOW_THREADS
        if (wait == INTERRUPTED && PyErr_CheckSignals() < 0) {
            goto done;
        }
    }
    if (outcome == ROUND_NO_MEMORY || (outcome != ROUND_READ && profile.row_count == 0)) {
        (void)refuse(outcome);
        goto done;
    }
    if (next < duration) {
        end = outcome == ROUND_GONE ? "process" : outcome == ROUND_TORN ? "torn" : "stop";
    }
    result = profile_result(process, &profile, end, process->rounds);
done:
    free(profile.rows);
    free(profile.index);
    free(profile.places);
    free(profile.threads);
    self->busy = 0;
    return result;
}

/* -- the object ----------------------------------------------------------------------------------- */

static PyObject *
stacks_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    int pid;
    PyObject *layout;
    char path[64];
    if (!PyArg_ParseTuple(args, "iO!:RemoteStacks", &pid, &PyDict_Type, &layout)) {
        return NULL;
    }
    if (pid <= 0) {
        PyErr_SetString(PyExc_ValueError, "a pid is a positive number");
        return NULL;
    }
    RemoteStacks *self = (RemoteStacks *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    RemoteProcess *process = &self->process;
    process->proc = process->ended = -1;
    if (!vmscope_read_layout(&process->layout, layout)) {
        Py_DECREF(self);
        return NULL;
    }
    PyObject *inside = PyDict_GetItemString(layout, "namespaced");
    process->namespaced = inside != NULL && PyObject_IsTrue(inside) > 0;
    process->pid = pid;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    process->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    process->ended = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->proc < 0) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
        Py_DECREF(self);
        return NULL;
    }
    if (!vmscope_open_process(process, MOST_FRAMES)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyObject *
stacks_close(RemoteStacks *self, PyObject *Py_UNUSED(ignored))
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread reads it");
        return NULL;
    }
    if (self->process.pid != 0) {
        int proc = self->process.proc, ended = self->process.ended;
        vmscope_close_process(&self->process);
        self->process.proc = self->process.ended = -1;
        if (proc >= 0) {
            close(proc);
        }
        if (ended >= 0) {
            close(ended);
        }
    }
    Py_RETURN_NONE;
}

static void
stacks_dealloc(RemoteStacks *self)
{
    PyTypeObject *type = Py_TYPE(self);
    self->busy = 0;
    Py_XDECREF(stacks_close(self, NULL));
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
stacks_statistics(RemoteStacks *self, void *Py_UNUSED(closure))
{
    const RemoteProcess *process = &self->process;
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "reads", process->reads, "torn", process->torn, "lost", process->lost,
                         "calls", process->memory.calls);
}

static PyMethodDef stacks_methods[] = {
    {"take", (PyCFunction)stacks_take, METH_NOARGS,
     "take($self, /)\n--\n\nAll threads, the newest first: (native id, ident, interpreter, has the GIL, frames, "
     "addresses, cut, lost, state).\nProcessLookupError where it has ended, BlockingIOError where its threads changed "
     "all the time."},
    {"profile", (PyCFunction)stacks_profile, METH_VARARGS,
     "profile($self, duration, period, stop, /)\n--\n\nReads all stacks once in each period, for so many ns, until the "
     "descriptor `stop` can be read or Ctrl-C:\n(threads, stacks, statistics)."},
    {"close", (PyCFunction)stacks_close, METH_NOARGS, "close($self, /)\n--\n\nNothing more is read."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stacks_attributes[] = {
    {"statistics", (getter)stacks_statistics, NULL, "Stacks that were read, torn, lost; calls of the kernel's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stacks_slots[] = {
    {Py_tp_doc, "RemoteStacks(pid, layout, /)\n--\n\nThe stacks of another process's threads, read from outside."},
    {Py_tp_new, stacks_new},
    {Py_tp_dealloc, stacks_dealloc},
    {Py_tp_methods, stacks_methods},
    {Py_tp_getset, stacks_attributes},
    {0, NULL},
};

static PyType_Spec stacks_spec = {
    .name = "vmscope.native.RemoteStacks",
    .basicsize = sizeof(RemoteStacks),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stacks_slots,
};

int
vmscope_add_remote_stacks(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &stacks_spec, NULL);
    if (type == NULL || PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return 0;
}

#else

int
vmscope_add_remote_stacks(PyObject *module)
{
    (void)module;
    return 0;
}

#endif
