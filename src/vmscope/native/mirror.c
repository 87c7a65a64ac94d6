/* The mirror: carries the live values into the region's image and from there into its file.
 *
 * A thread of its own does the carrying, without the GIL, so that no update ever waits for a disk. It
 * writes with pwrite: a store through a mapping that stalls would hold the page-fault lock and with it
 * every fork. It has a descriptor table of its own, so that the program neither sees nor closes its
 * file and no child inherits it.
 *
 * The image has two writers that never touch the same bytes: Python appends entries beyond `used`, the
 * mirror updates the values of bound slots. `commit` publishes what was appended. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* wire/layout.py has the whole prologue */
#define PROLOGUE_SIZE 32
#define PROLOGUE_USED 8
#define PROLOGUE_OVERFLOW 12
#define PROLOGUE_MOD_TIME_STAMP 16
#define PROLOGUE_NUM_ENTRIES 28

#define PAGE 4096
#define CHUNK 128
#define IDLE_INTERVAL 500000000 /* ns: two visits a second while nothing changes */
#define THREAD_STACK (1 << 20)
#define FORK_TIMEOUT 5000000 /* ns: a thread stuck on a frozen disk must not hold up a fork */
#define TEXT_WORDS (VMSCOPE_MAX_TEXT / 8 + 1)

typedef struct {
    PyObject *slot; /* a strong reference, kept until the mirror goes */
    uint32_t offset;
    uint32_t sequence; /* of the text that the image has */
    int is_text;
} Binding;

typedef struct Chunk {
    Binding bindings[CHUNK];
    struct Chunk *next;
} Chunk;

typedef struct {
    PyObject_HEAD
    unsigned char *image;
    size_t capacity;
    int64_t epoch;   /* CLOCK_MONOTONIC ns from which the clock and the time stamps count */
    LongSlot *clock; /* a bound slot that shows the ns since then */

    /* Append-only, so that it is walked without a lock; `count` is written last. */
    Chunk *first, *last;
    _Atomic size_t count;
    _Atomic unsigned char *dirty; /* a byte for each page of the image that the file lacks */

    pthread_mutex_t mutex; /* held for some instructions only, never across a system call */
    pthread_cond_t wake;
    uint32_t used; /* under the mutex, with the prologue in the image */

    /* The thread's state, under the mutex. */
    pthread_t thread;
    int joinable, running, stopping, paused;
    int64_t interval, delay; /* ns; delay: before the first visit */
    PyObject *on_start;      /* called once, with the GIL, before the first visit */

    /* The file, and what of the image it has: the thread's own while it runs. */
    char *path;
    dev_t device;
    ino_t inode;
    int fd;
    uint32_t published;
    unsigned char prologue[PROLOGUE_SIZE];
    uint64_t scratch[TEXT_WORDS], save_scratch[TEXT_WORDS];

    _Atomic uint64_t visits, writes;
    _Atomic int error; /* errno of the last failure on the file */
} Mirror;

/* The process's one running mirror, a strong reference: what fork looks at. */
static _Atomic(Mirror *) active;

static int64_t
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct timespec
deadline_after(clockid_t clock, int64_t nanoseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    int64_t sum = (int64_t)time.tv_nsec + nanoseconds;
    time.tv_sec += (time_t)(sum / 1000000000);
    time.tv_nsec = (long)(sum % 1000000000);
    return time;
}

/* -- from the slots to the image ------------------------------------------------------------------ */

static void
mark_dirty(Mirror *self, size_t offset, size_t length)
{
    for (size_t page = offset / PAGE; page <= (offset + length - 1) / PAGE; page++) {
        atomic_store(&self->dirty[page], 1);
    }
}

static int
refresh_long(Mirror *self, Binding *binding)
{
    _Atomic int64_t *word = (_Atomic int64_t *)(self->image + binding->offset);
    int64_t value = atomic_load_explicit(&((LongSlot *)binding->slot)->value, memory_order_relaxed);
    if (value == atomic_load_explicit(word, memory_order_relaxed)) {
        return 0;
    }
    atomic_store_explicit(word, value, memory_order_relaxed);
    mark_dirty(self, binding->offset, sizeof value);
    return binding->slot != (PyObject *)self->clock;
}

static int
refresh_text(Mirror *self, Binding *binding, uint64_t *scratch)
{
    TextSlot *slot = (TextSlot *)binding->slot;
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    if (sequence == binding->sequence || vmscope_text_copy(slot, scratch) < 0) {
        return 0; /* unchanged, or just being written: the next visit sees it whole */
    }
    memcpy(self->image + binding->offset, scratch, slot->capacity); /* the NUL after it stays */
    binding->sequence = sequence;
    mark_dirty(self, binding->offset, (size_t)slot->capacity + 1);
    return 1;
}

/* Copies what changed into the image; true when more than the clock did. */
static int
refresh_image(Mirror *self, uint64_t *scratch)
{
    int changed = 0;
    if (self->clock != NULL) {
        atomic_store_explicit(&self->clock->value, now() - self->epoch, memory_order_relaxed);
    }
    size_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    Chunk *chunk = self->first;
    for (size_t i = 0; i < count; i++) {
        if (i != 0 && i % CHUNK == 0) {
            chunk = chunk->next;
        }
        Binding *binding = &chunk->bindings[i % CHUNK];
        changed |= binding->is_text ? refresh_text(self, binding, scratch) : refresh_long(self, binding);
    }
    return changed;
}

/* -- from the image to the file ------------------------------------------------------------------- */

static int
write_range(int fd, const unsigned char *from, size_t offset, size_t length)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, from, length, (off_t)offset);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -1;
        }
        from += written;
        offset += (size_t)written;
        length -= (size_t)written;
    }
    return 0;
}

static int
write_dirty_pages(Mirror *self)
{
    size_t pages = (self->published + PAGE - 1) / PAGE;
    for (size_t page = 0; page < pages; page++) {
        size_t end = page;
        while (end < pages && atomic_exchange(&self->dirty[end], 0)) {
            end++;
        }
        if (end == page) {
            continue;
        }
        size_t from = page == 0 ? PROLOGUE_SIZE : page * PAGE;
        size_t to = end * PAGE < self->published ? end * PAGE : self->published;
        if (to > from && write_range(self->fd, self->image + from, from, to - from) < 0) {
            mark_dirty(self, from, to - from);
            return -1;
        }
        page = end;
    }
    return 0;
}

/* New entries: the first one's length last, so that a reader meets either the end or whole entries. */
static int
publish_entries(Mirror *self, uint32_t used)
{
    uint32_t start = self->published;
    if (write_range(self->fd, self->image + start + 4, start + 4, used - start - 4) < 0 ||
        write_range(self->fd, self->image + start, start, 4) < 0) {
        return -1;
    }
    self->published = used;
    return 0;
}

static int
write_file(Mirror *self)
{
    struct stat status;
    if (fstat(self->fd, &status) < 0) {
        return -1;
    }
    if ((size_t)status.st_size < self->capacity) { /* somebody cut it short: it must not grow again */
        errno = EIO;
        return -1;
    }
    unsigned char prologue[PROLOGUE_SIZE];
    pthread_mutex_lock(&self->mutex);
    uint32_t used = self->used;
    memcpy(prologue, self->image, PROLOGUE_SIZE);
    pthread_mutex_unlock(&self->mutex);
    if (write_dirty_pages(self) < 0 || (used > self->published && publish_entries(self, used) < 0)) {
        return -1;
    }
    if (memcmp(prologue, self->prologue, PROLOGUE_SIZE) != 0) {
        if (write_range(self->fd, prologue, 0, PROLOGUE_SIZE) < 0) {
            return -1;
        }
        memcpy(self->prologue, prologue, PROLOGUE_SIZE);
    }
    return 0;
}

/* One visit; true when more than the clock changed. */
static int
carry(Mirror *self)
{
    int changed = refresh_image(self, self->scratch);
    if (self->fd >= 0) {
        if (write_file(self) < 0) {
            atomic_store(&self->error, errno);
        }
        atomic_fetch_add_explicit(&self->writes, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&self->visits, 1, memory_order_relaxed);
    return changed;
}

/* -- the thread ----------------------------------------------------------------------------------- */

/* Opens the file in a descriptor table that only this thread has. */
static void
open_file(Mirror *self)
{
#ifdef SYS_close_range
    /* 2: CLOSE_RANGE_UNSHARE. A kernel without it leaves an ordinary close-on-exec descriptor. */
    (void)syscall(SYS_close_range, 0U, ~0U, 2U);
#endif
    if (self->path == NULL) {
        return;
    }
    struct stat status;
    int fd = open(self->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == self->device && status.st_ino == self->inode) {
        self->fd = fd;
        return;
    }
    atomic_store(&self->error, fd < 0 ? errno : ESTALE); /* ESTALE: somebody put another file there */
    if (fd >= 0) {
        close(fd);
    }
}

static int
is_stopping(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

static void
call_on_start(Mirror *self)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *callback = self->on_start;
    if (callback != NULL && !is_stopping(self)) { /* a stop may have come while this waited for the GIL */
        self->on_start = NULL;
        PyObject *result = PyObject_CallNoArgs(callback);
        if (result == NULL) {
            PyErr_Clear(); /* it reports its own failures; a host is never troubled */
        }
        Py_XDECREF(result);
        Py_DECREF(callback);
    }
    PyGILState_Release(gil);
}

/* Waits; true when the thread shall end. */
static int
wait_for(Mirror *self, int64_t nanoseconds)
{
    struct timespec deadline = deadline_after(CLOCK_MONOTONIC, nanoseconds);
    pthread_mutex_lock(&self->mutex);
    while (!self->stopping && pthread_cond_timedwait(&self->wake, &self->mutex, &deadline) != ETIMEDOUT) {
    }
    int stopping = self->stopping;
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

/* True once `running` is cleared; false when the stop was taken back while a last copy was stuck. */
static int
leave(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    int stopping = self->stopping;
    if (stopping) {
        self->running = 0;
    }
    pthread_mutex_unlock(&self->mutex);
    return stopping;
}

static void *
mirror_thread(void *argument)
{
    Mirror *self = argument;
    if (self->delay > 0 && wait_for(self, self->delay) && leave(self)) {
        return NULL;
    }
    self->delay = 0;
    if (self->on_start != NULL) {
        call_on_start(self);
    }
    open_file(self);
    int64_t pause = self->interval;
    do {
        do {
            int64_t idle = self->interval > IDLE_INTERVAL ? self->interval : IDLE_INTERVAL;
            pause = carry(self) ? self->interval : pause * 2 < idle ? pause * 2 : idle;
        } while (!wait_for(self, pause));
        carry(self);
    } while (!leave(self));
    if (self->fd >= 0) {
        close(self->fd); /* with a descriptor open the thread would stay visible for a millisecond */
        self->fd = -1;
    }
    return NULL;
}

/* 0, or the errno of pthread_create. */
static int
start_thread(Mirror *self)
{
    pthread_mutex_lock(&self->mutex);
    self->stopping = 0;
    int running = self->running, joinable = self->joinable;
    pthread_mutex_unlock(&self->mutex);
    if (running) { /* it was still stuck in its last copy, and goes on */
        return 0;
    }
    if (joinable) {
        pthread_join(self->thread, NULL);
    }
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    self->running = 1;
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are not for this thread */
    int status = pthread_create(&self->thread, &attributes, mirror_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    self->running = self->joinable = status == 0;
    return status;
}

/* Asks the thread for a last copy and waits for its end; true when it has ended. */
static int
stop_thread(Mirror *self, int64_t timeout)
{
    pthread_mutex_lock(&self->mutex);
    int joinable = self->joinable;
    self->stopping = 1;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->mutex);
    if (joinable) {
        struct timespec deadline = deadline_after(CLOCK_REALTIME, timeout);
        if (pthread_timedjoin_np(self->thread, NULL, &deadline) != 0) {
            return 0;
        }
        self->joinable = 0;
    }
    return 1;
}

/* -- fork ----------------------------------------------------------------------------------------- */

static PyObject *
before_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Mirror *self = atomic_load(&active);
    if (self != NULL && !self->paused) {
        self->paused = 1;
        Py_BEGIN_ALLOW_THREADS
        (void)stop_thread(self, FORK_TIMEOUT);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static int
resume(void *Py_UNUSED(ignored))
{
    Mirror *self = atomic_load(&active);
    if (self != NULL && self->paused) {
        self->paused = 0;
        (void)start_thread(self);
    }
    return 0;
}

/* After this hook os.fork counts the threads, to warn. A pending call of the main thread comes later
 * than that; on any other thread the program has threads of its own and is warned in any case. */
static PyObject *
after_fork_in_parent(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (syscall(SYS_gettid) != getpid() || Py_AddPendingCall(resume, NULL) != 0) {
        resume(NULL);
    }
    Py_RETURN_NONE;
}

static void
init_thread_state(Mirror *self)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&self->mutex, NULL);
    self->joinable = self->running = self->stopping = self->paused = 0;
    self->fd = -1;
}

static void
forget_file(Mirror *self)
{
    PyMem_RawFree(self->path);
    self->path = NULL;
}

static PyObject *
mirror_after_fork(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object;
    init_thread_state(self);
    forget_file(self);
    Py_CLEAR(self->on_start);
    Py_RETURN_NONE;
}

/* -- the Python face ------------------------------------------------------------------------------ */

static PyObject *
mirror_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"capacity", "epoch", NULL};
    Py_ssize_t capacity;
    long long epoch;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nL:Mirror", names, &capacity, &epoch)) {
        return NULL;
    }
    if (capacity < PROLOGUE_SIZE || capacity % 8 != 0 || capacity > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "an image is a multiple of 8 bytes, from 32 on, not %zd", capacity);
        return NULL;
    }
    Mirror *self = (Mirror *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    init_thread_state(self);
    self->capacity = (size_t)capacity;
    self->epoch = epoch;
    self->dirty = PyMem_RawCalloc(self->capacity / PAGE + 1, 1);
    self->first = self->last = PyMem_RawCalloc(1, sizeof *self->first);
    void *image = mmap(NULL, self->capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    self->image = image == MAP_FAILED ? NULL : image;
    if (self->dirty == NULL || self->first == NULL || self->image == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
mirror_dealloc(PyObject *object)
{
    Mirror *self = (Mirror *)object; /* no thread runs: a running one is `active`, or its mirror leaked */
    size_t count = atomic_load(&self->count), i = 0;
    for (Chunk *chunk = self->first; chunk != NULL;) {
        for (size_t k = 0; k < CHUNK && i < count; k++, i++) {
            Py_DECREF(chunk->bindings[k].slot);
        }
        Chunk *next = chunk->next;
        PyMem_RawFree(chunk);
        chunk = next;
    }
    if (self->image != NULL) {
        munmap(self->image, self->capacity);
    }
    PyMem_RawFree((void *)self->dirty);
    forget_file(self);
    Py_XDECREF(self->on_start);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static int
mirror_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    Mirror *self = (Mirror *)object;
    return PyBuffer_FillInfo(view, object, self->image, (Py_ssize_t)self->capacity, 0, flags);
}

static PyObject *
mirror_bind(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    PyObject *slot;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(args, "On:bind", &slot, &offset)) {
        return NULL;
    }
    NativeState *state = vmscope_state_of(object);
    if (state == NULL) {
        return NULL;
    }
    int is_text = PyObject_TypeCheck(slot, state->text_slot);
    if (!is_text && !PyObject_TypeCheck(slot, state->long_slot)) {
        return PyErr_Format(PyExc_TypeError, "bind() takes a slot, not %.100s", Py_TYPE(slot)->tp_name);
    }
    size_t size = is_text ? (size_t)((TextSlot *)slot)->capacity + 1 : sizeof(int64_t);
    if (offset < PROLOGUE_SIZE || (size_t)offset + size > self->capacity || (!is_text && offset % 8 != 0)) {
        return PyErr_Format(PyExc_ValueError, "no value of %zu bytes can stand at offset %zd", size, offset);
    }
    size_t count = atomic_load(&self->count);
    if (count != 0 && count % CHUNK == 0) {
        Chunk *chunk = PyMem_RawCalloc(1, sizeof *chunk);
        if (chunk == NULL) {
            return PyErr_NoMemory();
        }
        self->last->next = chunk;
        self->last = chunk;
    }
    Binding *binding = &self->last->bindings[count % CHUNK];
    *binding = (Binding){.slot = Py_NewRef(slot), .offset = (uint32_t)offset, .is_text = is_text};
    binding->sequence = 1; /* no finished text has an odd number: the first visit copies */
    atomic_store_explicit(&self->count, count + 1, memory_order_release);
    Py_RETURN_NONE;
}

static PyObject *
mirror_set_clock(PyObject *object, PyObject *slot)
{
    NativeState *state = vmscope_state_of(object);
    if (state == NULL) {
        return NULL;
    }
    if (!PyObject_TypeCheck(slot, state->long_slot)) {
        return PyErr_Format(PyExc_TypeError, "the clock is a LongSlot, not %.100s", Py_TYPE(slot)->tp_name);
    }
    ((Mirror *)object)->clock = (LongSlot *)slot; /* bound, hence kept */
    Py_RETURN_NONE;
}

static void
put_int32(unsigned char *at, int32_t value)
{
    memcpy(at, &value, sizeof value);
}

static PyObject *
mirror_commit(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    int used, num_entries, overflow;
    if (!PyArg_ParseTuple(args, "iii:commit", &used, &num_entries, &overflow)) {
        return NULL;
    }
    if (used < 0 || (size_t)used > self->capacity || (used != 0 && used < PROLOGUE_SIZE)) {
        return PyErr_Format(PyExc_ValueError, "used is 32 to the capacity, not %d", used);
    }
    pthread_mutex_lock(&self->mutex);
    if ((uint32_t)used != self->used) {
        int64_t stamp = now() - self->epoch;
        memcpy(self->image + PROLOGUE_MOD_TIME_STAMP, &stamp, sizeof stamp);
    }
    put_int32(self->image + PROLOGUE_USED, used);
    put_int32(self->image + PROLOGUE_OVERFLOW, overflow);
    put_int32(self->image + PROLOGUE_NUM_ENTRIES, num_entries);
    self->used = (uint32_t)used;
    pthread_mutex_unlock(&self->mutex);
    Py_RETURN_NONE;
}

static PyObject *
mirror_refresh(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Mirror *self = (Mirror *)object;
    refresh_image(self, self->save_scratch);
    Py_RETURN_NONE;
}

static PyObject *
mirror_set_file(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    const char *path;
    unsigned long long device, inode;
    if (!PyArg_ParseTuple(args, "yKK:set_file", &path, &device, &inode)) {
        return NULL;
    }
    char *copy = PyMem_RawMalloc(strlen(path) + 1);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    forget_file(self);
    self->path = strcpy(copy, path);
    self->device = (dev_t)device;
    self->inode = (ino_t)inode;
    self->published = self->used;
    memset(self->prologue, 0, sizeof self->prologue); /* so that the first visit writes it */
    Py_RETURN_NONE;
}

static PyObject *
mirror_start(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interval", "delay", "on_start", NULL};
    Mirror *self = (Mirror *)object;
    long long interval, delay = 0;
    PyObject *on_start = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|LO:start", names, &interval, &delay, &on_start)) {
        return NULL;
    }
    if (interval <= 0 || delay < 0) {
        PyErr_SetString(PyExc_ValueError, "the interval is more than 0 ns, the delay at least 0");
        return NULL;
    }
    Mirror *none = NULL;
    if (atomic_load(&active) != self) {
        if (!atomic_compare_exchange_strong(&active, &none, self)) {
            PyErr_SetString(PyExc_RuntimeError, "this process has a running mirror");
            return NULL;
        }
        Py_INCREF(self);
    }
    self->interval = interval;
    self->delay = delay;
    Py_XSETREF(self->on_start, on_start == Py_None ? NULL : Py_NewRef(on_start));
    int status = start_thread(self);
    if (status != 0) {
        atomic_store(&active, NULL);
        Py_DECREF(self);
        errno = status;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_stop(PyObject *object, PyObject *args)
{
    Mirror *self = (Mirror *)object;
    long long timeout;
    if (!PyArg_ParseTuple(args, "L:stop", &timeout)) {
        return NULL;
    }
    int ended;
    Py_BEGIN_ALLOW_THREADS
    ended = stop_thread(self, timeout);
    Py_END_ALLOW_THREADS
    Mirror *own = self;
    if (atomic_compare_exchange_strong(&active, &own, NULL) && ended) {
        Py_DECREF(self); /* else the thread may still come back to it: never freed */
    }
    return PyBool_FromLong(ended);
}

static PyObject *
mirror_save(PyObject *object, PyObject *path)
{
    Mirror *self = (Mirror *)object;
    const char *name = PyBytes_AsString(path);
    if (name == NULL) {
        return NULL;
    }
    int status = 0;
    Py_BEGIN_ALLOW_THREADS
    refresh_image(self, self->save_scratch);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write_range(fd, self->image, 0, self->capacity) < 0) {
        status = errno;
    }
    if (fd >= 0 && close(fd) < 0 && status == 0) {
        status = errno;
    }
    Py_END_ALLOW_THREADS
    if (status != 0) {
        errno = status;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    Py_RETURN_NONE;
}

static PyObject *
mirror_image(PyObject *object, void *Py_UNUSED(closure))
{
    return PyMemoryView_FromObject(object);
}

static PyObject *
mirror_visits(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(atomic_load(&((Mirror *)object)->visits));
}

static PyObject *
mirror_writes(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(atomic_load(&((Mirror *)object)->writes));
}

static PyObject *
mirror_error(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(atomic_load(&((Mirror *)object)->error));
}

static PyMethodDef mirror_methods[] = {
    {"bind", mirror_bind, METH_VARARGS, "bind(slot, offset): from now on the image shows the slot's value there."},
    {"set_clock", mirror_set_clock, METH_O, "Makes a bound slot show the ns since the epoch, at each visit."},
    {"commit", mirror_commit, METH_VARARGS, "commit(used, num_entries, overflow): publishes what was appended."},
    {"refresh", mirror_refresh, METH_NOARGS, "Copies the slots into the image now."},
    {"set_file", mirror_set_file, METH_VARARGS,
     "set_file(path, device, inode): the file, which holds the image as it is now, that the thread will write."},
    {"start", (PyCFunction)(void (*)(void))mirror_start, METH_VARARGS | METH_KEYWORDS,
     "start(interval, delay=0, on_start=None): starts the thread; times in ns."},
    {"stop", mirror_stop, METH_VARARGS, "stop(timeout): a last copy, then the end; False if it did not end in time."},
    {"save", mirror_save, METH_O, "Writes the whole image, brought up to date, to a file (OSError)."},
    {"after_fork", mirror_after_fork, METH_NOARGS, "In a forked child: forgets the parent's thread and file."},
    {NULL},
};

static PyGetSetDef mirror_getset[] = {
    {"image", mirror_image, NULL, "The image, a writable memoryview of `capacity` bytes.", NULL},
    {"visits", mirror_visits, NULL, "How many visits were made.", NULL},
    {"writes", mirror_writes, NULL, "How many of them had a file to write.", NULL},
    {"error", mirror_error, NULL, "The errno of the last failure on the file; 0: none.", NULL},
    {NULL},
};

static PyType_Slot mirror_type_slots[] = {
    {Py_tp_doc, "Mirror(capacity, epoch)\n--\n\nA region's image, and the thread that keeps it and its file current."},
    {Py_tp_new, mirror_new},
    {Py_tp_dealloc, mirror_dealloc},
    {Py_tp_methods, mirror_methods},
    {Py_tp_getset, mirror_getset},
    {Py_bf_getbuffer, mirror_getbuffer},
    {0, NULL},
};

static PyType_Spec mirror_spec = {"vmscope.native.Mirror", sizeof(Mirror), 0, Py_TPFLAGS_DEFAULT, mirror_type_slots};

static PyMethodDef fork_hooks[] = {
    {"before_fork", before_fork, METH_NOARGS, "For os.register_at_fork: stops the running mirror."},
    {"after_fork_in_parent", after_fork_in_parent, METH_NOARGS, "Starts it again once os.fork has returned."},
    {NULL},
};

int
vmscope_add_mirror(PyObject *module)
{
    PyTypeObject *type = vmscope_add_type(module, &mirror_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    Py_DECREF(type);
    return PyModule_AddFunctions(module, fork_hooks);
}
