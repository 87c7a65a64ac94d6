/* The recorder: a thread that samples stacks, carries events into files, and ends one chunk and begins the next. */
#define _GNU_SOURCE
#include "flight/recorder.h"

#ifdef HAS_STACKS

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND 1000000000             /* ns */
#define FLUSH_PERIOD SECOND           /* from memory to the file */
#define WAIT_PERIOD (10LL * SECOND)   /* a wait that lasts is written so often */
#define CHUNK_PERIOD (900LL * SECOND) /* a chunk has this much at most, */
#define ROTATE_TIMEOUT (10LL * SECOND)
#define STOP_TIMEOUT SECOND
#define DEFAULT_DEPTH 64 /* frames */

static int64_t
wall_time(void)
{
    return vmscope_clock(CLOCK_REALTIME);
}

/* -- the thread ----------------------------------------------------------------------------------- */

/* What the sampler has to say of itself; with the mutex. */
static void
put_statistics(Recorder *self, int64_t now)
{
    Snapshot *snapshot = self->sampled.snapshot;
    Bytes *events = &self->chunk.events;
    if (self->types[OF_SAMPLER_STATISTICS] != 0 && snapshot->reads > 0) {
        size_t at = begin_event(events, self->types[OF_SAMPLER_STATISTICS]);
        put_number(events, (uint64_t)now);
        put_number(events, snapshot->reads);
        put_number(events, snapshot->torn);
        put_number(events, self->sampler.stacks_lost);
        put_number(events, self->sampler.late);
        end_event(events, at);
    }
}

static void
put_data_loss(Recorder *self, int64_t now)
{
    Repository *repository = &self->repository;
    if (repository->lost > 0 && self->types[OF_DATA_LOSS] != 0) {
        size_t at = begin_event(&self->chunk.events, self->types[OF_DATA_LOSS]);
        put_number(&self->chunk.events, (uint64_t)now);
        put_number(&self->chunk.events, repository->lost);
        put_number(&self->chunk.events, repository->lost_total);
        end_event(&self->chunk.events, at);
    }
    repository->lost = 0;
}

/* From memory to the file. */
static void
flush(Recorder *self)
{
    if (self->repository.path == NULL || self->chunk.events.size == 0) {
        return;
    }
    pthread_mutex_lock(&self->mutex);
    Bytes events = self->chunk.events;
    self->chunk.events = self->spare;
    self->spare = events;
    pthread_mutex_unlock(&self->mutex);
    vmscope_repository_append(&self->repository, &self->chunk, &self->spare);
}

/* Ends the chunk, and begins the next. */
static void
rotate(Recorder *self)
{
    Bytes tail = {0};
    FinishedChunk finished;
    int64_t now = vmscope_now(), time = wall_time();
    flush(self);
    pthread_mutex_lock(&self->mutex);
    vmscope_flight_end_waits(self, now, 0);
    put_statistics(self, now);
    vmscope_put_checkpoint(&self->chunk, self->types, &tail);
    size_t metadata = tail.size;
    put_bytes(&tail, self->metadata.data, self->metadata.size);
    Chunk ended = self->chunk;
    Bytes next = self->spare; /* new events do not wait for the file */
    next.size = 0;
    self->spare = (Bytes){0};
    self->chunk.events = next;
    vmscope_chunk_clear(&self->chunk, now, time);
    self->chunk_number++;
    put_data_loss(self, now);
    pthread_mutex_unlock(&self->mutex);

    if (self->repository.path != NULL) {
        vmscope_repository_append(&self->repository, &ended, &ended.events);
    }
    if (vmscope_repository_finish(&self->repository, &ended, &tail, metadata, now, time, &finished) &&
        !vmscope_repository_add(&self->repository, finished)) {
        free(finished.data);
    }
    bytes_free(&tail);
    if (self->repository.path == NULL) {
        bytes_free(&ended.events);
    } else {
        self->spare = ended.events;
        self->spare.size = 0;
    }
    vmscope_repository_expire(&self->repository, time);
}

/* Whether a rotation is due; `answer`: the number of the last one that was asked for. */
static int
must_rotate(Recorder *self, int64_t now, int *answer)
{
    pthread_mutex_lock(&self->mutex);
    *answer = self->wanted;
    int due = self->wanted != self->done || vmscope_chunk_size(&self->chunk) >= self->chunk_size ||
              now - self->chunk.start >= CHUNK_PERIOD;
    pthread_mutex_unlock(&self->mutex);
    return due;
}

static void
rotate_if_due(Recorder *self, int64_t now)
{
    int answer;
    if (must_rotate(self, now, &answer)) {
        rotate(self);
        pthread_mutex_lock(&self->mutex);
        self->done = answer;
        pthread_cond_broadcast(&self->rotated);
        pthread_mutex_unlock(&self->mutex);
    }
}

/* The next deadline: each period one, at a random moment of it, so that nothing in the program keeps step with it. */
static int64_t
next_deadline(Recorder *self, int64_t now, int64_t period)
{
    StackSampler *sampler = &self->sampler;
    sampler->base += period;
    if (sampler->base + period <= now) {
        sampler->late += (uint64_t)((now - sampler->base) / period);
        sampler->base = now;
    }
    sampler->seed = sampler->seed * 6364136223846793005ull + 1442695040888963407ull;
    return sampler->base + (int64_t)((sampler->seed >> 33) % (uint64_t)period);
}

static void
run(PyObject *owner)
{
    Recorder *self = (Recorder *)owner;
    vmscope_thread_unshare_files();
    vmscope_repository_open(&self->repository);
    prctl(PR_SET_TIMERSLACK, 1);
    int64_t deadline = 0, period = 0, flush_at = vmscope_now() + FLUSH_PERIOD, waits_at = flush_at + WAIT_PERIOD;
    self->sampler.base = vmscope_now();
    self->sampler.seed ^= (uint64_t)self->sampler.base;
    do {
        int64_t now = vmscope_now(), wanted = __atomic_load_n(&self->period, __ATOMIC_RELAXED);
        if (wanted != period) {
            period = wanted;
            self->sampler.base = now;
            deadline = period == 0 ? 0 : next_deadline(self, now, period);
        }
        if (period != 0 && now >= deadline) {
            vmscope_flight_sample(self, now);
            now = vmscope_now();
            deadline = next_deadline(self, now, period);
        }
        if (now >= flush_at) {
            flush(self);
            flush_at = now + FLUSH_PERIOD;
        }
        if (now >= waits_at) {
            pthread_mutex_lock(&self->mutex);
            vmscope_flight_end_waits(self, now, WAIT_PERIOD);
            pthread_mutex_unlock(&self->mutex);
            vmscope_repository_expire(&self->repository, wall_time());
            waits_at = now + WAIT_PERIOD;
        }
        rotate_if_due(self, now);
        int64_t until = period != 0 && deadline < flush_at ? deadline : flush_at;
        now = vmscope_now();
        (void)vmscope_thread_wait(&self->thread, until > now ? until - now : 0);
    } while (!vmscope_thread_leave(&self->thread));
    if (self->thread.stopping == STOP) {
        rotate(self);
    }
    vmscope_repository_close(&self->repository);
}

/* A child records nothing: the recording, its folder and its chunks are the parent's. */
static void
forked(PyObject *owner)
{
    Recorder *self = (Recorder *)owner;
    self->recording = 0;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_mutex_init(&self->repository.mutex, NULL);
    self->repository.folder = self->repository.file = -1;
    atomic_store(&self->thread.finished, 1);
    vmscope_flight_forked_allocations(self);
}

/* -- the object ----------------------------------------------------------------------------------- */

static int
read_numbers(Recorder *self, PyObject *numbers)
{
    static const char *const names[] = {
#define FLIGHT_NAME(identifier, name) name,
        FLIGHT_TYPES(FLIGHT_NAME)};
    for (int i = 0; i < FLIGHT_TYPE_COUNT; i++) {
        PyObject *number = PyDict_GetItemString(numbers, names[i]);
        unsigned long value = number == NULL ? 0 : PyLong_AsUnsignedLong(number);
        if (value == (unsigned long)-1 && PyErr_Occurred()) {
            return -1;
        }
        self->types[i] = (uint32_t)value;
    }
    return 0;
}

static int
flight_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    Recorder *self = (Recorder *)object;
    static char *names[] = {"metadata", "numbers", "own_folder", NULL};
    Py_buffer metadata;
    PyObject *numbers;
    const char *own_folder;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "y*O!s", names, &metadata, &PyDict_Type, &numbers, &own_folder)) {
        return -1;
    }
    self->own_folder = strdup(own_folder);
    put_bytes(&self->metadata, metadata.buf, (size_t)metadata.len);
    PyBuffer_Release(&metadata);
    self->sampled.snapshot = vmscope_new_snapshot();
    self->current.snapshot = vmscope_new_snapshot();
    if (self->own_folder == NULL || self->metadata.failed || self->sampled.snapshot == NULL ||
        self->current.snapshot == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return read_numbers(self, numbers);
}

static PyObject *
flight_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(keywords))
{
    Recorder *self = (Recorder *)type->tp_alloc(type, 0);
    if (self != NULL) {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&self->rotated, &attributes);
        pthread_condattr_destroy(&attributes);
        pthread_mutex_init(&self->mutex, NULL);
        pthread_mutex_init(&self->repository.mutex, NULL);
        self->repository.folder = self->repository.file = -1;
        self->depth = DEFAULT_DEPTH;
        memset(self->thresholds, 0xFF, sizeof self->thresholds); /* -1 */
        vmscope_thread_init(&self->thread, (PyObject *)self, FLIGHT_THREAD, run);
        self->thread.forked = forked;
    }
    return (PyObject *)self;
}

static void
free_path(SearchPath *path)
{
    for (size_t i = 0; i < path->count; i++) {
        free(path->folders[i]);
    }
    free(path->folders);
    *path = (SearchPath){0};
}

static void
free_source(StackSource *source)
{
    vmscope_free_snapshot(source->snapshot);
    free(source->methods);
}

static void
flight_dealloc(PyObject *object)
{
    Recorder *self = (Recorder *)object;
    PyTypeObject *type = Py_TYPE(object);
    vmscope_flight_stop_allocations(self);
    vmscope_chunk_free(&self->chunk);
    vmscope_repository_free(&self->repository);
    bytes_free(&self->metadata);
    bytes_free(&self->spare);
    free_path(&self->path);
    free(self->own_folder);
    free_source(&self->sampled);
    free_source(&self->current);
    vmscope_flight_sampler_free(&self->sampler);
    pthread_cond_destroy(&self->rotated);
    pthread_mutex_destroy(&self->mutex);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
start(PyObject *object, PyObject *args, PyObject *keywords)
{
    Recorder *self = (Recorder *)object;
    static char *names[] = {"directory", "chunk_size", NULL};
    const char *directory;
    Py_ssize_t chunk_size = 12 << 20;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "z|n", names, &directory, &chunk_size)) {
        return NULL;
    }
    if (self->recording) {
        PyErr_SetString(PyExc_RuntimeError, "the recorder runs already");
        return NULL;
    }
    free(self->repository.path);
    self->repository.path = directory == NULL ? NULL : strdup(directory);
    if (directory != NULL && self->repository.path == NULL) {
        return PyErr_NoMemory();
    }
    self->chunk_size = (uint64_t)chunk_size;
    vmscope_chunk_clear(&self->chunk, vmscope_now(), wall_time());
    self->chunk_number++;
    self->done = self->wanted;
    if (vmscope_thread_start(&self->thread) < 0) {
        return NULL;
    }
    self->recording = 1;
    Py_RETURN_NONE;
}

static PyObject *
stop(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Recorder *self = (Recorder *)object;
    int ended = !self->recording || vmscope_thread_stop(&self->thread, STOP_TIMEOUT);
    self->recording = 0;
    return PyBool_FromLong(ended);
}

static PyObject *
rotate_now(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Recorder *self = (Recorder *)object;
    int64_t until = vmscope_now() + ROTATE_TIMEOUT;
    struct timespec deadline = {.tv_sec = (time_t)(until / SECOND), .tv_nsec = (long)(until % SECOND)};
    int wanted = 0, status = 0;
    if (!self->recording) {
        PyErr_SetString(PyExc_RuntimeError, "the recorder does not run");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->mutex);
    wanted = ++self->wanted;
    pthread_mutex_unlock(&self->mutex);
    pthread_mutex_lock(&self->thread.mutex);
    vmscope_thread_kick(&self->thread);
    pthread_mutex_unlock(&self->thread.mutex);
    pthread_mutex_lock(&self->mutex);
    while (self->done - wanted < 0 && status != ETIMEDOUT) {
        status = pthread_cond_timedwait(&self->rotated, &self->mutex, &deadline);
    }
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(status != ETIMEDOUT);
}

static PyObject *
chunks(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Recorder *self = (Recorder *)object;
    Repository *repository = &self->repository;
    PyObject *list = PyList_New(0);
    pthread_mutex_lock(&repository->mutex);
    for (size_t i = 0; list != NULL && i < repository->count; i++) {
        FinishedChunk *chunk = &repository->finished[i];
        PyObject *row = chunk->data == NULL
                            ? Py_BuildValue("(sLLKO)", chunk->name, (long long)chunk->begin, (long long)chunk->end,
                                            (unsigned long long)chunk->size, Py_None)
                            : Py_BuildValue("(OLLKy#)", Py_None, (long long)chunk->begin, (long long)chunk->end,
                                            (unsigned long long)chunk->size, chunk->data, (Py_ssize_t)chunk->size);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    pthread_mutex_unlock(&repository->mutex);
    return list;
}

static PyObject *
remove_chunks(PyObject *object, PyObject *number)
{
    Py_ssize_t count = PyLong_AsSsize_t(number);
    if (count < 0) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "%zd chunks", count);
    }
    vmscope_repository_remove(&((Recorder *)object)->repository, (size_t)count);
    Py_RETURN_NONE;
}

static PyObject *
retain(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"age", "size", NULL};
    long long age;
    unsigned long long size;
    Recorder *self = (Recorder *)object;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LK", names, &age, &size)) {
        return NULL;
    }
    pthread_mutex_lock(&self->repository.mutex);
    self->repository.max_age = age;
    self->repository.max_size = size;
    pthread_mutex_unlock(&self->repository.mutex);
    Py_RETURN_NONE;
}

/* The shortest period of those that are on becomes the sampler's. */
static PyObject *
set_sampling(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        FlightType type;
    } sampled[] = {{"jdk.ExecutionSample", OF_EXECUTION_SAMPLE},
                   {"jdk.NativeMethodSample", OF_NATIVE_METHOD_SAMPLE},
                   {"vmscope.WaitSample", OF_WAIT_SAMPLE},
                   {"vmscope.GILWait", OF_GIL_WAIT}};
    Recorder *self = (Recorder *)object;
    const char *name;
    long long period;
    int64_t shortest = 0;
    if (!PyArg_ParseTuple(args, "sL", &name, &period)) {
        return NULL;
    }
    int known = 0;
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < sizeof sampled / sizeof *sampled; i++) {
        int64_t *each = &self->periods[sampled[i].type];
        if (strcmp(name, sampled[i].name) == 0) {
            known = 1;
            *each = period < 0 ? 0 : period;
        }
        shortest = *each != 0 && (shortest == 0 || *each < shortest) ? *each : shortest;
    }
    __atomic_store_n(&self->period, shortest, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&self->mutex);
    if (!known) {
        return PyErr_Format(PyExc_ValueError, "%s is not sampled", name);
    }
    pthread_mutex_lock(&self->thread.mutex);
    vmscope_thread_kick(&self->thread);
    pthread_mutex_unlock(&self->thread.mutex);
    Py_RETURN_NONE;
}

static PyObject *
set_threshold(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        FlightType type;
    } waits[] = {{"jdk.ThreadSleep", OF_THREAD_SLEEP},     {"jdk.JavaMonitorEnter", OF_MONITOR_ENTER},
                 {"jdk.JavaMonitorWait", OF_MONITOR_WAIT}, {"jdk.SocketRead", OF_SOCKET_READ},
                 {"jdk.SocketWrite", OF_SOCKET_WRITE},     {"jdk.FileRead", OF_FILE_READ},
                 {"jdk.FileWrite", OF_FILE_WRITE}};
    Recorder *self = (Recorder *)object;
    const char *name;
    long long threshold;
    if (!PyArg_ParseTuple(args, "sL", &name, &threshold)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (strcmp(name, waits[i].name) == 0) {
            pthread_mutex_lock(&self->mutex);
            self->thresholds[waits[i].type] = threshold;
            pthread_mutex_unlock(&self->mutex);
            Py_RETURN_NONE;
        }
    }
    return PyErr_Format(PyExc_ValueError, "%s is not a wait", name);
}

static PyObject *
set_metadata(PyObject *object, PyObject *args)
{
    Recorder *self = (Recorder *)object;
    Py_buffer metadata;
    PyObject *numbers;
    if (!PyArg_ParseTuple(args, "y*O!", &metadata, &PyDict_Type, &numbers)) {
        return NULL;
    }
    pthread_mutex_lock(&self->mutex);
    self->metadata.size = 0;
    put_bytes(&self->metadata, metadata.buf, (size_t)metadata.len);
    int failed = self->metadata.failed;
    self->metadata.failed = 0;
    pthread_mutex_unlock(&self->mutex);
    PyBuffer_Release(&metadata);
    if (failed) {
        return PyErr_NoMemory();
    }
    if (read_numbers(self, numbers) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
set_depth(PyObject *object, PyObject *number)
{
    Py_ssize_t depth = PyLong_AsSsize_t(number);
    if (depth < 1 || depth > 2048) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a depth of %zd frames: 1 to 2048", depth);
    }
    ((Recorder *)object)->depth = (size_t)depth;
    Py_RETURN_NONE;
}

static int
by_length(const void *one, const void *other)
{
    size_t first = strlen(*(char *const *)one), second = strlen(*(char *const *)other);
    return first > second ? -1 : first < second;
}

static PyObject *
set_path(PyObject *object, PyObject *list)
{
    Recorder *self = (Recorder *)object;
    PyObject *folders = PySequence_Fast(list, "a sequence of folders");
    SearchPath path = {0}, before;
    if (folders == NULL) {
        return NULL;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(folders);
    path.folders = calloc((size_t)count + 1, sizeof *path.folders);
    for (Py_ssize_t i = 0; path.folders != NULL && i < count; i++) {
        PyObject *folder = PySequence_Fast_GET_ITEM(folders, i);
        const char *text = PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : NULL;
        char *copy = text == NULL || *text == '\0' ? NULL : strdup(text);
        PyErr_Clear(); /* a name that is not valid UTF-8 is left out */
        if (copy != NULL) {
            path.folders[path.count++] = copy;
        }
    }
    Py_DECREF(folders);
    if (path.folders == NULL) {
        return PyErr_NoMemory();
    }
    qsort(path.folders, path.count, sizeof *path.folders, by_length);
    pthread_mutex_lock(&self->mutex);
    before = self->path;
    self->path = path;
    pthread_mutex_unlock(&self->mutex);
    free_path(&before);
    Py_RETURN_NONE;
}

static PyObject *
name_threads(PyObject *object, PyObject *names)
{
    Recorder *self = (Recorder *)object;
    if (!PyDict_Check(names)) {
        return PyErr_Format(PyExc_TypeError, "a dict of names by ident");
    }
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->chunk.thread_count; i++) {
        FlightThread *thread = &self->chunk.threads[i];
        PyObject *ident = PyLong_FromUnsignedLong(thread->ident);
        PyObject *name = ident == NULL || thread->ended ? NULL : PyDict_GetItemWithError(names, ident);
        const char *text = name == NULL || !PyUnicode_Check(name) ? NULL : PyUnicode_AsUTF8(name);
        Py_XDECREF(ident);
        if (text != NULL && (thread->name == NULL || strcmp(text, thread->name) != 0)) {
            free(thread->name);
            thread->name = strdup(text);
        }
    }
    pthread_mutex_unlock(&self->mutex);
    PyErr_Clear(); /* names that are not UTF-8 */
    Py_RETURN_NONE;
}

static PyObject *
statistics(PyObject *object, void *Py_UNUSED(closure))
{
    Recorder *self = (Recorder *)object;
    pthread_mutex_lock(&self->mutex);
    unsigned long long samples = self->samples, size = vmscope_chunk_size(&self->chunk), chunk = self->chunk_number;
    pthread_mutex_unlock(&self->mutex);
    Snapshot *snapshot = self->sampled.snapshot;
    return Py_BuildValue("{sK sK sK sK sK sK sK sK sK sK si}", "samples", samples, "reads",
                         (unsigned long long)snapshot->reads, "torn", (unsigned long long)snapshot->torn, "faults",
                         (unsigned long long)snapshot->faults, "lost", (unsigned long long)self->sampler.stacks_lost,
                         "late", (unsigned long long)self->sampler.late, "rounds",
                         (unsigned long long)self->sampler.round, "chunk", chunk, "chunk_size", size, "lost_bytes",
                         (unsigned long long)self->repository.lost_total, "error", self->repository.error);
}

#define DOC(name, text) PyDoc_STR(name "\n--\n\n" text)

static PyMethodDef methods[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
     DOC("start($self, directory, chunk_size=12582912)",
         "Begins a chunk, in a file of the directory or, where that is None, in memory, and the recorder's thread.\n"
         "RuntimeError where a recorder runs already; OSError where no thread can be started.")},
    {"stop", stop, METH_NOARGS, DOC("stop($self)", "Ends the chunk and the thread; False where that takes too long.")},
    {"rotate", rotate_now, METH_NOARGS,
     DOC("rotate($self)", "Ends the chunk and begins the next; False where that takes too long.")},
    {"chunks", chunks, METH_NOARGS,
     DOC("chunks($self)", "The finished chunks, the oldest first: name or None, begin and end in ns since 1970, bytes, "
                          "data or None.")},
    {"remove", remove_chunks, METH_O, DOC("remove($self, count, /)", "Removes so many of the oldest finished chunks.")},
    {"retain", (PyCFunction)(void (*)(void))retain, METH_VARARGS | METH_KEYWORDS,
     DOC("retain($self, age, size)", "How long finished chunks are kept, in ns, and how many bytes; 0: no limit.")},
    {"set_sampling", set_sampling, METH_VARARGS,
     DOC("set_sampling($self, event, period, /)", "The ns between two samples of an event; 0: none are taken.")},
    {"set_threshold", set_threshold, METH_VARARGS,
     DOC("set_threshold($self, event, threshold, /)",
         "The ns that a wait has to last to be an event of this type; -1: none is written. Waits are seen by the "
         "sampler.")},
    {"sample_allocations", vmscope_flight_sample_allocations, METH_VARARGS,
     DOC("sample_allocations($self, rate, stack, /)",
         "So many allocations a second are events, with their stacks where that is true; 0: one each 64 KiB; -1: "
         "none.\n"
         "Again with the same: the hook comes back where another has taken it out.")},
    {"set_metadata", set_metadata, METH_VARARGS,
     DOC("set_metadata($self, metadata, numbers, /)", "Takes the place of the metadata from the current chunk on.")},
    {"set_depth", set_depth, METH_O, DOC("set_depth($self, frames, /)", "How many frames of a stack are recorded.")},
    {"set_path", set_path, METH_O,
     DOC("set_path($self, folders, /)", "The folders of sys.path, by which files get the names of modules.")},
    {"name_threads", name_threads, METH_O, DOC("name_threads($self, names, /)", "Names of threads, by their ident.")},
    {"adopt", vmscope_flight_adopt, METH_VARARGS,
     DOC("adopt($self, event_type, number, /)", "Events of this type, which gets this number, go into its chunks.")},
    {NULL},
};

static PyGetSetDef getters[] = {{"statistics", statistics, NULL, "Counts, by name.", NULL}, {NULL}};

static PyType_Slot slots[] = {
    {Py_tp_new, flight_new},
    {Py_tp_init, flight_init},
    {Py_tp_dealloc, flight_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_doc,
     "FlightRecorder(metadata, numbers, own_folder)\n--\n\nRecords events of this process in chunks of JFR's format."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "vmscope.native.FlightRecorder",
    .basicsize = sizeof(Recorder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* The type is made when the first recorder is: a start does not pay for it. */
static PyObject *
make_recorder(PyObject *module, PyObject *args)
{
    static const char name[] = "FlightRecorder";
    PyObject *type = PyObject_HasAttrString(module, name) ? PyObject_GetAttrString(module, name) : NULL;
    if (type == NULL) {
        PyErr_Clear();
        type = (PyObject *)vmscope_add_type(module, &spec, NULL);
    }
    PyObject *recorder = type == NULL ? NULL : PyObject_Call(type, args, NULL);
    Py_XDECREF(type);
    return recorder;
}

static PyMethodDef functions[] = {
    {"flight_recorder", make_recorder, METH_VARARGS,
     DOC("flight_recorder(metadata, numbers, own_folder, /)",
         "A recorder: the bytes of the metadata event, which goes into each chunk, the numbers of its types, and the\n"
         "folder of Python code that is not the program's.")},
    {"event_type", vmscope_flight_event_type, METH_VARARGS,
     DOC("event_type(fields, /)", "A type of events, which is off, with a letter for each field: EventType.")},
    {NULL},
};

int
vmscope_add_flight(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}

#else

int
vmscope_add_flight(PyObject *Py_UNUSED(module))
{
    return 0;
}

#endif
